"""A worker's copy of a learner, kept in step with the store.

Moments are a counter: this worker's own sums (acknowledged by the store, and not yet), plus those
of all others. Rewards are a log: every worker folds the same entries in the same order.
"""

from __future__ import annotations

import asyncio
import secrets
import time

import numpy as np

from service.learner import Arms, Estimate, Learner, Moments, Rows, dump_moments, load_moments
from service.store import packing
from service.store.learner_store import START, LogEntry

from .configuration import Configuration
from .stats import Stats

INLINE_ROWS = 2_048  # a refresh of more rows runs in a thread


class Replica:
    def __init__(self, configuration: Configuration, stats: Stats) -> None:
        self.configuration = configuration
        self.stats = stats
        self.learner = Learner(configuration.learner)
        d = configuration.learner.dimension
        self.worker = secrets.token_hex(8)
        self.has_field = False
        self.acked = Moments.zero(d)  # in our field of the store
        self.unacked = Moments.zero(d)  # since
        self._others: dict[bytes, bytes] | None = None
        self.position = 0  # log entries folded
        self.last_id = START
        self._refresh: asyncio.Task[None] | None = None
        self._late: list[Rows] = []  # learnt while a refresh runs

    # Moments --------------------------------------------------------------------------------

    def observe(self, arms: Arms) -> None:
        self.learner.moments.add(arms)
        self.unacked.add(arms)

    def retract(self, arms: Arms) -> None:
        """Undo `observe` of a select that turned out to be a repetition."""
        taken = Moments.of(arms)
        self.learner.moments.subtract(taken)
        self.unacked.subtract(taken)

    def own_moments(self) -> bytes:
        """All that this worker has seen: cumulative, so that sending it twice is harmless."""
        own = self.acked.copy()
        own.merge(self.unacked)
        return dump_moments(own)

    def moments_written(self) -> None:
        self.has_field = True
        self.acked.merge(self.unacked)
        self.unacked = Moments.zero(self.acked.dimension)

    def start_new_field(self) -> None:
        """Our field was merged into the base: from here on, only what was not acknowledged."""
        self.worker = secrets.token_hex(8)
        self.has_field = False
        self.acked = Moments.zero(self.acked.dimension)

    def take_moments(self, fields: dict[bytes, bytes]) -> None:
        """The sums of all workers, as the store has them now."""
        others = {worker: value for worker, value in fields.items() if worker != self._own_name()}
        if others == self._others:
            return
        self._others = others
        total = Moments.zero(self.acked.dimension)
        for value in others.values():
            total.merge(load_moments(value))
        total.merge(self.acked)
        total.merge(self.unacked)
        self.learner.moments = total

    def keep_own_moments(self, before: Replica, fields: dict[bytes, bytes]) -> None:
        """Go on as the same worker with what it has seen, whatever the store kept of it."""
        self.worker, self.has_field = before.worker, before.worker.encode() in fields
        self.acked = Moments.zero(self.acked.dimension)
        self.unacked = before.acked
        self.unacked.merge(before.unacked)
        self._others = None
        self.take_moments(fields)

    def _own_name(self) -> bytes:
        return self.worker.encode()

    # The log --------------------------------------------------------------------------------

    async def fold(self, entries: list[LogEntry]) -> None:
        rewarded: list[bytes] = []
        for id_, kind, value in entries:
            if kind == b"r":
                rewarded.append(value)
            elif kind == b"m":
                self._learn(rewarded)
                rewarded = []
                await self._fold_mark(packing.read_mark(value))
            self.position += 1
            self.last_id = id_
        self._learn(rewarded)

    def _learn(self, rewarded: list[bytes]) -> None:
        if not rewarded:
            return
        rows = rows_of(rewarded, self.configuration.learner.dimension)
        if self._refresh is None:
            self.learner.learn(rows)
        else:
            self.learner.learn_meanwhile(rows)
            self._late.append(rows)

    # Refresh --------------------------------------------------------------------------------

    def refresh_due(self) -> bool:
        return self._refresh is None and self.learner.refresh_due()

    @property
    def refreshing(self) -> bool:
        return self._refresh is not None

    def new_mark(self) -> tuple[int, bytes]:
        """The refresh that is due, as a mark for the log: everybody refreshes with these bits."""
        estimate = self.learner.new_estimate()
        self.learner.estimate = estimate
        power = 1 << ((self.learner.model.count + 1).bit_length() - 1)
        return power, estimate_bytes(estimate, power)

    async def _fold_mark(self, mark: packing.Mark) -> None:
        if not self.learner.policy.refreshes:
            return
        await self.refreshed()  # at most one at a time, in the order of the log
        estimate = Estimate.of(mark.p_hat, mark.nu, mark.sigma, mark.arms)
        if len(self.learner.history) <= INLINE_ROWS:
            started = time.perf_counter()
            self.learner.refresh(estimate)
            self._count_refresh(started)
        else:
            self._refresh = asyncio.create_task(self._refresh_aside(estimate))

    async def _refresh_aside(self, estimate: Estimate) -> None:
        started = time.perf_counter()
        history = self.learner.history  # nothing is appended to it meanwhile
        refreshed = await asyncio.to_thread(history.completed_anew, estimate)
        self.learner.adopt(refreshed, self._late)
        self._late = []
        self._refresh = None
        self._count_refresh(started)

    async def refreshed(self) -> None:
        """Wait for a refresh that runs aside."""
        if self._refresh is not None:
            await self._refresh

    def _count_refresh(self, started: float) -> None:
        self.stats.refreshes += 1
        self.stats.refresh_s += time.perf_counter() - started


def rows_of(rewarded: list[bytes], d: int) -> Rows:
    observed, xbar, y = packing.rows(rewarded, d)
    z = np.empty((len(y), d + 1))
    z[:, 0] = 1.0
    z[:, 1:] = xbar
    return Rows(z, observed, y)


def estimate_bytes(estimate: Estimate, power: int = 0) -> bytes:
    return packing.mark(power, estimate.arms, estimate.p_hat, estimate.nu, estimate.sigma)


def estimate_of(value: bytes) -> Estimate:
    mark = packing.read_mark(value)
    return Estimate.of(mark.p_hat, mark.nu, mark.sigma, mark.arms)
