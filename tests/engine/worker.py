"""A worker process of tests: engines of its own, told what to do over a pipe, killed at will.

It is forked from a server process that has this module, and with it all compiled kernels, loaded.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from service.engine.registry import Engines
from service.engine.settings import EngineSettings
from service.errors import Overloaded, StoreDown
from service.learner import Learner, LearnerConfig
from service.store.connect import connect
from tests.engine.traffic import features, reward, select

UNIT = 2.0**-20  # rewards are whole multiples: unlike one another, and their sums are exact


def warm_up() -> None:
    learner = Learner(LearnerConfig(dimension=4))
    rng = np.random.default_rng(0)
    for _ in range(4):
        learner.reward(learner.select(features(rng, 4, 3)), 1.0)


warm_up()


class Worker:
    def __init__(self, pipe: Connection, engines: Engines) -> None:
        self.pipe = pipe
        self.engines = engines

    def say(self, *what: Any) -> None:
        self.pipe.send_bytes(json.dumps(what).encode())

    async def traffic(
        self,
        learner: str,
        numbers: list[int],
        *,
        d: int = 4,
        k: int = 5,
        rewarded: float = 1.0,
        at_once: int = 16,
        pause_s: float = 0.0,
    ) -> None:
        """Event n has the features of seed n and the reward n · UNIT, whoever plays it."""
        waiting = iter(numbers)

        async def one_after_another() -> None:
            for n in waiting:
                await self.event(learner, n, d, k, rewarded)
                await asyncio.sleep(pause_s)

        await asyncio.gather(*(one_after_another() for _ in range(at_once)))

    async def event(self, learner: str, n: int, d: int, k: int, rewarded: float) -> None:
        rng = np.random.default_rng([11, n])
        event_id = f"event-{n}"
        x = features(rng, d, k)
        try:
            told = await select(self.engines, learner, x, event_id)
        except Exception as error:
            self.say("failed", n, repr(error))
            return
        self.say("selected", n, told.answer.arm, told.answer.degraded)
        if rng.random() < rewarded:
            await self.send_reward(learner, n)

    async def send_reward(self, learner: str, n: int) -> None:
        self.say("sent", n)
        while True:
            try:
                status, _ = await reward(self.engines, learner, f"event-{n}", n * UNIT)
            except (StoreDown, Overloaded):
                await asyncio.sleep(0.05)
            else:
                self.say("acknowledged", n, status)
                return

    async def rewards(self, learner: str, numbers: list[int], at_once: int = 32) -> None:
        waiting = iter(numbers)

        async def one_after_another() -> None:
            for n in waiting:
                await self.send_reward(learner, n)

        await asyncio.gather(*(one_after_another() for _ in range(at_once)))

    async def digest(self, learner: str) -> None:
        """What must be the same everywhere, to the bit; and the moments."""
        engine = await self.engines.get(learner)
        await engine.run(engine.flush)
        await engine.replica.settled()
        model, moments = engine.replica.learner.model, engine.replica.learner.moments
        bits = hashlib.sha256(model.s.tobytes() + model.b.tobytes()).hexdigest()
        self.say(
            "digest",
            {
                "bits": bits,
                "count": model.count,
                "sum_y": model.sum_y,
                "rounds": moments.rounds,
                "arms": moments.arms,
                "p": moments.p.tolist(),
                "xi": moments.xi.tolist(),
                "z": moments.z.tolist(),
                "refreshes": engine.stats.refreshes,
                "reloads": engine.stats.reloads,
            },
        )

    async def count(self, learner: str) -> None:
        self.say("count", (await self.engines.get(learner)).replica.learner.model.count)


async def serve(pipe: Connection, url: str, settings: dict[str, Any]) -> None:
    client = connect(url, timeout_s=2.0)
    engines = Engines(client, EngineSettings(**settings))
    await engines.start()
    worker = Worker(pipe, engines)
    worker.say("ready")
    while True:
        name, given = json.loads(await asyncio.to_thread(pipe.recv_bytes))
        if name == "stop":
            break
        await getattr(worker, name)(**given)
        worker.say("done", name)
    await engines.stop()
    await client.aclose()
    worker.say("stopped")


def main(pipe: Connection, url: str, settings: dict[str, Any]) -> None:
    logging.disable(logging.CRITICAL)
    with contextlib.suppress(EOFError, KeyboardInterrupt):
        asyncio.run(serve(pipe, url, settings))
