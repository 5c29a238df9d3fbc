"""The parent of the workers: starts them, starts again what died, and ends them without a loss.

A worker is tied to its parent by a socket pair. The worker says `ready` on it; and when the parent
is gone, however it went, the worker sees the end of it and drains.
"""

from __future__ import annotations

import logging
import os
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from time import monotonic
from types import FrameType

from service.door import Door
from service.settings import Settings

log = logging.getLogger("lacuna.serve")

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 10.0
SETTLED_S = 10.0  # a worker that lived so long was sound
KILLED_AFTER_S = 10.0  # beyond the time it has to drain
ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


class Worker:
    def __init__(self, number: int, door: Door, settings: Settings) -> None:
        self.number = number
        self.started_at = monotonic()
        self.ready = False
        self.leash, theirs = socket.socketpair()
        environment = {**os.environ, **settings.changed({"worker_number": number}).to_environment()}
        for name in ONE_THREAD:  # the matrices are small: threads would only wait for each other
            environment.setdefault(name, "1")
        entrance = door.entrance()
        fds = (entrance.fileno(), theirs.fileno())
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "service.worker"),
                *("--listen-fd", str(fds[0]), "--leash-fd", str(fds[1])),
            ],
            pass_fds=fds,
            env=environment,
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the parent alone
        )
        entrance.close()
        theirs.close()

    def say(self, number: signal.Signals) -> None:
        if self.process.poll() is None:
            self.process.send_signal(number)


class Supervisor:
    def __init__(self, door: Door, settings: Settings, on_ready: Callable[[], None]) -> None:
        self.door = door
        self.settings = settings
        self.on_ready = on_ready
        self.workers: dict[int, Worker] = {}
        self._restart_at: dict[int, float] = {}
        self._pause_s = FIRST_PAUSE_S
        self._was_ready = False
        self._signals: list[int] = []
        self._selector = selectors.DefaultSelector()

    def run(self) -> int:
        """Until a signal comes; the exit status."""
        ours, theirs = socket.socketpair()
        for end in (ours, theirs):
            end.setblocking(False)
        self._selector.register(ours, selectors.EVENT_READ)
        before = {
            number: signal.signal(number, self._on_signal)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        }
        signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
        try:
            return self._run(ours)
        finally:
            self._end_all()
            signal.set_wakeup_fd(-1)
            for number, handler in before.items():
                signal.signal(number, handler)
            self._selector.close()
            ours.close()
            theirs.close()

    def _run(self, woken: socket.socket) -> int:
        for number in range(self.settings.workers):
            self._start(number)
        while not self._signals:
            for key, _ in self._selector.select(timeout=self._next_s()):
                if isinstance(key.data, Worker):
                    self._hear(key.data)
                else:
                    woken.recv(64)
            for number, at in list(self._restart_at.items()):
                if monotonic() >= at:
                    del self._restart_at[number]
                    self._start(number)
            if not self._was_ready and not self.workers:
                log.error("no worker could start")
                return 1
        return 0

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        self._signals.append(number)
        if len(self._signals) > 1:  # asked twice: now
            for worker in self.workers.values():
                worker.say(signal.SIGKILL)

    def _next_s(self) -> float | None:
        if not self._restart_at:
            return None
        return max(0.0, min(self._restart_at.values()) - monotonic())

    def _start(self, number: int) -> None:
        worker = Worker(number, self.door, self.settings)
        self.workers[number] = worker
        self._selector.register(worker.leash, selectors.EVENT_READ, worker)

    def _hear(self, worker: Worker) -> None:
        try:
            heard = worker.leash.recv(64)
        except ConnectionError:
            heard = b""
        if heard:
            worker.ready = True
            if not self._was_ready and all(
                number in self.workers and self.workers[number].ready
                for number in range(self.settings.workers)
            ):
                self._was_ready = True
                self.on_ready()
            return
        self._selector.unregister(worker.leash)
        worker.leash.close()
        code = worker.process.wait()
        del self.workers[worker.number]
        if self._signals:
            return
        log.error("worker %d (pid %d) ended with %d", worker.number, worker.process.pid, code)
        if not self._was_ready:
            return  # what fails at the first start fails again
        lived_s = monotonic() - worker.started_at
        self._pause_s = (
            FIRST_PAUSE_S if lived_s > SETTLED_S else min(2 * self._pause_s, LONGEST_PAUSE_S)
        )
        self._restart_at[worker.number] = monotonic() + self._pause_s

    def _end_all(self) -> None:
        self.door.close()  # first: or callers might still connect, to nobody
        for worker in self.workers.values():
            # One that is not ready has nothing to lose, and hears nothing while it compiles.
            worker.say(signal.SIGTERM if worker.ready else signal.SIGKILL)
        deadline_s = (
            monotonic() + self.settings.drain_idle_s + self.settings.drain_s + KILLED_AFTER_S
        )
        for worker in self.workers.values():
            try:
                worker.process.wait(max(0.0, deadline_s - monotonic()))
            except subprocess.TimeoutExpired:
                log.error("worker %d does not end: killed", worker.number)
                worker.process.kill()
                worker.process.wait()
            worker.leash.close()
