"""Worker processes from the outside: start, tell, listen, kill -9; and the ledger of what was told.

Blocking, for tests that are not asyncio themselves.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
import os
import threading
import time
from collections.abc import Iterator
from typing import Any

from service.engine.registry import Engines
from service.store.connect import connect
from service.store.packing import unpack_reward
from tests.engine import worker as worker_module
from tests.engine.worker import UNIT
from tests.servers import Server

SOAK = os.environ.get("LACUNA_SOAK") == "1"
IMPATIENT = {
    "follow_interval_s": 0.05,
    "moments_interval_s": 0.05,
    "retry_first_s": 0.05,
    "retry_most_s": 0.3,
}

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["tests.engine.worker"])


class Process:
    def __init__(self, url: str, **settings: Any) -> None:
        self.pipe, theirs = _context.Pipe()
        arguments = (theirs, url, IMPATIENT | settings)
        self.process = _context.Process(target=worker_module.main, args=arguments, daemon=True)
        self.process.start()
        theirs.close()
        self.heard: list[list[Any]] = []
        self._news = threading.Condition()
        # All the time, or a full pipe would hold the worker up.
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        self.hear("ready", within_s=60)

    def _listen(self) -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                message = json.loads(self.pipe.recv_bytes())
                with self._news:
                    self.heard.append(message)
                    self._news.notify()

    def tell(self, name: str, **given: Any) -> None:
        self.pipe.send_bytes(json.dumps([name, given]).encode())

    def hear(self, what: str, within_s: float = 120.0) -> list[Any]:
        """Wait for this message; what came before it stays to be entered into a ledger."""
        deadline_s = time.monotonic() + within_s
        with self._news:
            while True:
                for at, message in enumerate(self.heard):
                    if message[0] == what:
                        return self.heard.pop(at)
                assert self.process.is_alive(), "the worker died"
                assert time.monotonic() < deadline_s, f"within {within_s:g} s: {what}"
                self._news.wait(0.1)

    def ask(self, name: str, **given: Any) -> Any:
        self.tell(name, **given)
        answer = self.hear(name)[1]
        self.hear("done")
        return answer

    def take(self) -> list[list[Any]]:
        with self._news:
            heard, self.heard = self.heard, []
        return heard

    def kill(self) -> None:
        """kill -9; all that it has said is heard when this returns."""
        self.process.kill()
        self.process.join()
        self._listener.join(10)

    def stop(self) -> None:
        if self.process.is_alive():
            self.tell("stop")
            self.process.join(20)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self._listener.join(10)
        self.pipe.close()


@contextlib.contextmanager
def processes(url: str, count: int, **settings: Any) -> Iterator[list[Process]]:
    started: list[Process] = []
    try:
        started.extend(Process(url, **settings) for _ in range(count))
        yield started
    finally:
        for one in started:
            one.stop()


class Ledger:
    """All that clients were told, and the log that must agree with it."""

    def __init__(self) -> None:
        self.arms: dict[int, set[str]] = {}
        self.selected: set[int] = set()
        self.degraded: set[int] = set()
        self.sent: set[int] = set()
        self.recorded: list[int] = []
        self.acknowledged: set[int] = set()
        self.failed: list[str] = []

    def enter(self, process: Process) -> None:
        """What the process has said since it was last entered."""
        heard = process.take()
        for what, *rest in heard:
            if what == "selected":
                n, arm, degraded = rest
                self.selected.add(n)
                self.arms.setdefault(n, set()).add(arm)
                if degraded:
                    self.degraded.add(n)
            elif what == "sent":
                self.sent.add(rest[0])
            elif what == "acknowledged":
                n, status = rest
                self.acknowledged.add(n)
                if status == "recorded":
                    self.recorded.append(n)
            elif what == "failed":
                self.failed.append(rest[1])

    def check(self, server: Server, learner: str) -> list[int]:
        """Acknowledged ⊆ logged ⊆ sent, each once; the events in the order of the log."""
        logged = logged_events(server, learner)
        assert len(set(logged)) == len(logged), "an event was counted twice"
        assert self.acknowledged <= set(logged), "an acknowledged reward is lost"
        assert set(logged) <= self.sent, "a reward that was not sent is there"
        assert len(set(self.recorded)) == len(self.recorded), "one event was recorded twice"
        assert all(len(arms) == 1 for arms in self.arms.values()), "an event has two answers"
        return logged


def logged_events(server: Server, learner: str) -> list[int]:
    """By their rewards, which are unlike one another."""
    with server.admin() as admin:
        entries = admin.xrange(f"lacuna:{{{learner}}}:rewards")
    rewards = [values[b"r"][-8:] for _, values in entries if b"r" in values]
    return [round(unpack_reward(value) / UNIT) for value in rewards]


def configure(server: Server, learner: str, **configuration: Any) -> None:
    """As `Engines.put` would, from a test that is not asyncio."""

    async def put() -> None:
        client = connect(server.url)
        await Engines(client).put(learner, {"dimension": 4, "seed": 7, **configuration})
        await client.aclose()

    asyncio.run(put())
