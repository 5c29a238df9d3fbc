"""Runs over HTTP: a learner of its own for each, made here and removed when its run is done.

Event ids name learner and round. A round that is sent again after an interruption gets the same
answer, and its reward is counted once.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import suppress

from clients.client import Client, ClientError, NotFound
from clients.errors import ServiceFailed
from clients.pool import interrupts_noted
from clients.simulate.players import config_of

from .local import SAVE_EVERY_S, rounds_of
from .prepare import Prepared
from .protocol import BLOCK_ROUNDS, Block
from .state import Job, Progress, Store

TIMEOUT_S = 30.0
POLL_S = 0.2

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
    goes_on: bool = True,
) -> list[Progress]:
    """All jobs; KeyboardInterrupt after what is in flight has been saved.

    `goes_on`: what is interrupted may go on later, so its learners stay.
    """
    key = os.environ.get("LACUNA_API_KEY")
    # Threads: the async shell of httpx costs more than twice the processor time of this one.
    with (
        Client(url, api_key=key, timeout_s=TIMEOUT_S) as client,
        interrupts_noted() as stop,
        ThreadPoolExecutor(at_once) as runs,
        ThreadPoolExecutor(at_once * concurrency) as rounds,
    ):

        def one(number: int, job: Job) -> Progress:
            played = _Run(job, data, store, client, stop, rounds, concurrency, goes_on)
            return played.play(lambda done, hits: report(number, done, hits))

        futures = [runs.submit(one, number, job) for number, job in enumerate(jobs)]
        try:
            _wait(futures)
        except ClientError as error:
            raise ServiceFailed(f"--url: {error}") from error
        finally:  # the first to fail ends the others
            interrupted = stop.is_set()
            stop.set()
    if interrupted:
        raise KeyboardInterrupt
    return [future.result() for future in futures]


def _wait(futures: Sequence[Future[Progress]]) -> None:
    waiting = set(futures)
    while waiting:  # in steps, so that Ctrl-C is noticed
        done, waiting = wait(waiting, POLL_S, FIRST_EXCEPTION)
        for future in done:
            future.result()


class _Run:
    def __init__(
        self,
        job: Job,
        data: Prepared,
        store: Store,
        client: Client,
        stop: threading.Event,
        threads: ThreadPoolExecutor,
        concurrency: int,
        goes_on: bool,
    ) -> None:
        self.job, self.data, self.store, self.client, self.stop = job, data, store, client, stop
        self.threads, self.concurrency, self.goes_on = threads, concurrency, goes_on
        self.progress = store.load(job)
        self.name = self.progress.learner.decode()

    def play(self, tick: Callable[[int, int], None]) -> Progress:
        progress, total = self.progress, self.job.setting.rounds
        tick(progress.done, int(progress.hits.sum()))
        if progress.done >= total or self.stop.is_set():
            return progress
        self._begin()
        try:
            self._rounds(tick)
        finally:
            if progress.done >= total or not self.goes_on:
                with suppress(ClientError):
                    self.client.delete_learner(self.name)
        return progress

    def _rounds(self, tick: Callable[[int, int], None]) -> None:
        progress, total = self.progress, self.job.setting.rounds
        rounds = rounds_of(self.job, self.data)
        saved = time.perf_counter()
        while progress.done < total and not self.stop.is_set():
            number = progress.done // BLOCK_ROUNDS
            block = rounds.block(number)
            start = time.perf_counter()
            self._block(block, number * BLOCK_ROUNDS)
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

    def _begin(self) -> None:
        job = self.job
        if self.name:
            try:
                self.client.get_learner(self.name)
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
        self.client.put_learner(self.name, **config.to_dict())
        self.progress.learner = self.name.encode()
        self.store.save(job, self.progress)

    def _block(self, block: Block, first: int) -> None:
        """`concurrency` rounds in flight; their rewards may be learnt in any order."""

        def play(place: int) -> None:
            event = f"{self.name}-{first + place}"
            chosen = self.client.select(block.x[place], learner=self.name, event_id=event)
            hit = bool(block.paid[place, chosen.index])
            self.client.reward(event, float(hit), learner=self.name)
            self.progress.hits[first + place] = hit

        if self.concurrency == 1:
            for place in range(len(block.x)):
                play(place)
            return

        def share(worker: int) -> None:
            for place in range(worker, len(block.x), self.concurrency):
                play(place)

        for done in [self.threads.submit(share, worker) for worker in range(self.concurrency)]:
            done.result()
