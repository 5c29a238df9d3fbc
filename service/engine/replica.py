"""A worker's copy of a learner, kept in step with the store.

Moments are a counter: this worker's own sums plus those of all others. Rewards are a log: every
worker folds the same entries in the same order.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import numpy as np

from service.learner import Arms, Estimate, Learner, Moments, Rows, load_moments
from service.store import packing
from service.store.messages import START, LogEntry

from .configuration import Configuration
from .own_moments import OwnMoments
from .stats import Stats

INLINE_ROWS = 2_048  # a refresh of more rows runs in a thread

ReadHistory = Callable[[], Awaitable[list[Rows] | None]]  # None: some of it is gone


class Replica:
    def __init__(self, configuration: Configuration, stats: Stats) -> None:
        self.configuration = configuration
        self.stats = stats
        self.learner = Learner(configuration.learner)
        self.own = OwnMoments(configuration.learner.dimension)
        self._others: dict[bytes, bytes] | None = None
        self.position = 0  # log entries folded
        self.last_id = START
        self.marked = 0  # the highest power of two for which there is a refresh mark
        self._aside: asyncio.Task[None] | None = None  # a refresh, or the history being read
        self._late: list[Rows] = []  # learnt while that runs
        self.incomplete = False  # the log was cut while the history was being read

    # Moments --------------------------------------------------------------------------------

    def observe(self, arms: Arms) -> int:
        """The generation of the own moments that these arms belong to."""
        if arms.requests > 1:  # sums are added faster than arms
            batch = Moments.of(arms)
            self.learner.moments.merge(batch)
            self.own.unacked.merge(batch)
        else:
            self.learner.moments.add(arms)
            self.own.unacked.add(arms)
        return self.own.generation

    def retract(self, arms: Arms, generation: int) -> None:
        """Undo `observe` of a select that turned out to be a repetition."""
        taken = Moments.of(arms)
        if self.own.retract(taken, generation):
            self.learner.moments.subtract(taken)

    def take_moments(self, fields: dict[bytes, bytes]) -> None:
        """The sums of all workers, as the store has them now."""
        own = self.own.worker.encode()
        others = {worker: value for worker, value in fields.items() if worker != own}
        if others == self._others:
            return
        self._others = others
        total = Moments.zero(self.configuration.learner.dimension)
        for value in others.values():
            total.merge(load_moments(value))
        total.merge(self.own.total())
        self.learner.moments = total

    def keep_own_moments(self, before: Replica, fields: dict[bytes, bytes]) -> None:
        """Go on as the same worker with what it has seen, whatever the store kept of it."""
        self.own = before.own
        self.own.start_over(fields)
        self._others = None
        self.take_moments(fields)

    # The log --------------------------------------------------------------------------------

    async def fold(self, entries: list[LogEntry]) -> None:
        start = 0
        for at, (_, kind, value) in enumerate(entries):
            if kind == b"m":
                self._learn(entries[start:at])
                await self._fold_mark(packing.read_mark(value))
                self._advance(entries[at : at + 1])
                start = at + 1
        self._learn(entries[start:])

    def _learn(self, entries: list[LogEntry]) -> None:
        if not entries:
            return
        rewarded = [value for _, kind, value in entries if kind == b"r"]
        if rewarded:
            rows = rows_of(packing.rows(rewarded, self.configuration.learner.dimension))
            if self._aside is None:
                self.learner.learn(rows)
            else:
                self.learner.learn_meanwhile(rows)
                self._late.append(rows)
        self._advance(entries)

    def _advance(self, entries: list[LogEntry]) -> None:
        self.position += len(entries)
        self.last_id = entries[-1][0]

    # Refresh --------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """The history is not as the log says: it is being read or refreshed."""
        return self._aside is not None

    def refresh_due(self) -> bool:
        return not self.busy and self.learner.refresh_due() and self._power() > self.marked

    def _power(self) -> int:
        """The power of two that r + 1 has reached."""
        return 1 << ((self.learner.model.count + 1).bit_length() - 1)

    def new_mark(self) -> tuple[int, bytes]:
        """The refresh that is due, as a mark for the log: everybody refreshes with these bits."""
        estimate = self.learner.new_estimate()
        self.learner.estimate = estimate
        return self._power(), estimate_bytes(estimate, self._power())

    async def _fold_mark(self, mark: packing.Mark) -> None:
        self.marked = max(self.marked, mark.power)
        if not self.learner.policy.refreshes:
            return
        await self.settled()  # at most one at a time, in the order of the log
        estimate = Estimate.of(mark.p_hat, mark.nu, mark.sigma, mark.arms)
        if len(self.learner.history) <= INLINE_ROWS:
            started = time.perf_counter()
            self.learner.refresh(estimate)
            self._count_refresh(started)
        else:
            self._aside = asyncio.create_task(self._refresh_aside(estimate))

    async def _refresh_aside(self, estimate: Estimate) -> None:
        started = time.perf_counter()
        history = self.learner.history  # nothing is appended to it meanwhile
        refreshed = await asyncio.to_thread(history.completed_anew, estimate)
        self.learner.adopt(refreshed, self._late)
        self._late, self._aside = [], None
        self._count_refresh(started)

    def read_history(self, read: ReadHistory) -> None:
        """The rows before the snapshot are not needed until the next refresh: read them aside."""
        self._aside = asyncio.create_task(self._history_aside(read))

    async def _history_aside(self, read: ReadHistory) -> None:
        found = await read()
        self.incomplete = found is None
        await asyncio.to_thread(self._append, found or [])  # until here nobody else uses it
        self._append(self._late)
        self._late, self._aside = [], None

    def _append(self, parts: list[Rows]) -> None:
        for rows in parts:
            self.learner.history.append(rows)

    async def settled(self) -> None:
        """Wait for what runs aside."""
        if self._aside is not None:
            await self._aside

    async def give_up(self) -> None:
        if self._aside is not None:
            self._aside.cancel()
            await asyncio.gather(self._aside, return_exceptions=True)

    def _count_refresh(self, started: float) -> None:
        self.stats.refreshes += 1
        self.stats.refresh_s += time.perf_counter() - started


def rows_of(read: tuple[packing.Mask, packing.Floats, packing.Floats]) -> Rows:
    observed, xbar, y = read
    z = np.empty((len(y), xbar.shape[1] + 1))
    z[:, 0] = 1.0
    z[:, 1:] = xbar
    return Rows(z, observed, y)


def estimate_bytes(estimate: Estimate, power: int = 0) -> bytes:
    return packing.mark(power, estimate.arms, estimate.p_hat, estimate.nu, estimate.sigma)


def estimate_of(value: bytes) -> Estimate:
    mark = packing.read_mark(value)
    return Estimate.of(mark.p_hat, mark.nu, mark.sigma, mark.arms)
