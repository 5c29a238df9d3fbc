"""Runs over HTTP: a learner of its own for each, made here and removed when its run is done.

Event ids name learner and round. A round that is sent again after an interruption gets the same
answer, and its reward is counted once.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress

from clients.client import AsyncClient, ClientError, NotFound, Selected
from clients.simulate.players import config_of

from .errors import ServiceFailed
from .local import SAVE_EVERY_S, rounds_of
from .prepare import Prepared
from .protocol import BLOCK_ROUNDS, Block
from .state import Job, Progress, Store

Report = Callable[[int, int, int], None]  # number of the job, rounds and hits so far


def run(
    jobs: Sequence[Job],
    data: Prepared,
    store: Store,
    report: Report,
    *,
    url: str,
    at_once: int,
    concurrency: int,
) -> list[Progress]:
    """All jobs; KeyboardInterrupt after what is in flight has been saved."""
    try:
        return asyncio.run(_all(jobs, data, store, report, url, at_once, concurrency))
    except ClientError as error:
        raise ServiceFailed(f"--url: {error}") from error


async def _all(
    jobs: Sequence[Job],
    data: Prepared,
    store: Store,
    report: Report,
    url: str,
    at_once: int,
    concurrency: int,
) -> list[Progress]:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    with suppress(ValueError, RuntimeError, NotImplementedError):  # not in the main thread
        loop.add_signal_handler(signal.SIGINT, stop.set)
    places = asyncio.Semaphore(at_once)
    async with AsyncClient(url, api_key=os.environ.get("LACUNA_API_KEY"), timeout_s=30.0) as client:

        async def one(number: int, job: Job) -> Progress:
            async with places:
                played = _Run(job, data, store, client, stop)
                return await played.play(lambda done, hits: report(number, done, hits), concurrency)

        tasks = [asyncio.create_task(one(number, job)) for number, job in enumerate(jobs)]
        try:
            results = list(await asyncio.gather(*tasks))
        finally:  # the first to fail ends the others
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    if stop.is_set():
        raise KeyboardInterrupt
    return results


class _Run:
    def __init__(
        self, job: Job, data: Prepared, store: Store, client: AsyncClient, stop: asyncio.Event
    ) -> None:
        self.job, self.data, self.store, self.client, self.stop = job, data, store, client, stop
        self.progress = store.load(job)
        self.name = self.progress.learner.decode()

    async def play(self, tick: Callable[[int, int], None], concurrency: int) -> Progress:
        progress, total = self.progress, self.job.setting.rounds
        tick(progress.done, int(progress.hits.sum()))
        if progress.done >= total or self.stop.is_set():
            return progress
        await self._begin()
        rounds = rounds_of(self.job, self.data)
        saved = time.perf_counter()
        while progress.done < total and not self.stop.is_set():
            number = progress.done // BLOCK_ROUNDS
            block = rounds.block(number)
            start = time.perf_counter()
            await self._block(block, number * BLOCK_ROUNDS, concurrency)
            now = time.perf_counter()
            progress.seconds += now - start
            progress.done += len(block.x)
            tick(progress.done, int(progress.hits[: progress.done].sum()))
            if now - saved > SAVE_EVERY_S:
                self.store.save(self.job, progress)
                saved = now
        if progress.done >= total:
            progress.learner = b""
        self.store.save(self.job, progress)
        if progress.done >= total:
            with suppress(NotFound):
                await self.client.delete_learner(self.name)
        return progress

    async def _begin(self) -> None:
        job = self.job
        if self.name:
            try:
                await self.client.get_learner(self.name)
                return
            except NotFound:  # the service has lost it, or it is another service
                self.progress.hits[:] = False
                self.progress.done, self.progress.seconds = 0, 0.0
        # Replays at the same time, or one cut short before, must not meet in a learner.
        self.name = f"replay-{job.policy}-{job.seed}-{uuid.uuid4().hex[:8]}"
        config = config_of(
            job.policy,
            dimension=self.data.codes.shape[1],
            horizon=job.setting.rounds,
            seed=job.seed,
        )
        await self.client.put_learner(self.name, **config.to_dict())
        self.progress.learner = self.name.encode()
        self.store.save(job, self.progress)

    async def _block(self, block: Block, first: int, concurrency: int) -> None:
        """`concurrency` rounds in flight; their rewards may be learnt in any order."""
        waiting = iter(range(len(block.x)))

        async def worker() -> None:
            for place in waiting:
                event = f"{self.name}-{first + place}"
                chosen: Selected = await self.client.select(
                    block.x[place], learner=self.name, event_id=event
                )
                hit = bool(block.paid[place, chosen.index])
                await self.client.reward(event, float(hit), learner=self.name)
                self.progress.hits[first + place] = hit

        await asyncio.gather(*(worker() for _ in range(concurrency)))
