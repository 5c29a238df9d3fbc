"""What an engine does besides answering: follow the log, read others' moments, book default
rewards, write snapshots, merge the moments of workers that are gone. Any worker may do all of it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from service.learner import Moments, dump_model, dump_moments, load_moments
from service.store import packing
from service.store.errors import StoreError
from service.store.learner_store import Snapshot

from .loading import MARKS
from .replica import Replica

if TYPE_CHECKING:
    from .engine import Engine

MERGE_INTERVAL_S = 10.0
SNAPSHOT_INTERVAL_S = 30.0  # for the few entries of a quiet learner


class House:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.due = False
        self._moments_at = 0.0  # when our moments may be written again
        self._others_at = 0.0  # when others' are looked at again
        self._merge_at = time.monotonic() + MERGE_INTERVAL_S
        self._snapshot_at = 0.0
        self._snapshot_position = -1

    @property
    def _replica(self) -> Replica:
        return self.engine.replica

    def moments_due(self) -> bool:
        """Large moments are written less often: so many bytes per second, not more."""
        return time.monotonic() >= self._moments_at

    def moments_were_written(self, size: int) -> None:
        per_s = self.engine.settings.moments_bytes_per_s
        self._moments_at = time.monotonic() + size / per_s

    async def keep(self) -> None:
        """One turn; the order is that of urgency."""
        engine, now = self.engine, time.monotonic()
        if self._replica.unacked.arms > 0 and self.moments_due():
            await engine.write_moments()
        await engine.follow()
        await self._sweep()
        if now >= self._others_at:
            await self._look_at_others()
        if now >= self._merge_at:
            self._merge_at = now + MERGE_INTERVAL_S
            await self._merge_silent()
        await self._snapshot_if_due(now)

    async def close(self) -> None:
        """Leave nothing behind that only this worker knows."""
        try:
            await self._replica.refreshed()
            if self.engine.degraded:
                await self.engine.come_back()
            if self._replica.unacked.arms > 0:
                await self.engine.write_moments()
            await self.engine.follow()
            await self._replica.refreshed()
            await self.snapshot()
            if self._replica.has_field:
                await self._merge(self._replica.worker)
        except StoreError as error:
            self.engine.log_unsaved(error)

    async def _look_at_others(self) -> None:
        fields = await self.engine.store.moments()
        size = sum(map(len, fields.values()))
        settings = self.engine.settings
        pause_s = max(settings.moments_interval_s, size / settings.moments_bytes_per_s)
        self._others_at = time.monotonic() + pause_s
        self._replica.take_moments(fields)

    async def _sweep(self) -> None:
        """Book default rewards that fell due, with the script that rewards use."""
        engine = self.engine
        configuration = self._replica.configuration
        while due := await engine.store.due(engine.settings.sweep_limit):
            if configuration.default_reward is None:
                await engine.store.forget_due(due)  # expired without a reward
            else:
                reward = packing.pack_reward(configuration.default_reward)
                await engine.book_defaults([(event_id, reward) for event_id in due])
            if len(due) < engine.settings.sweep_limit:
                return

    async def _merge_silent(self) -> None:
        for_ms = int(self.engine.settings.worker_silent_s * 1_000)
        for worker in await self.engine.store.silent_workers(for_ms):
            if worker != self._replica.worker:
                await self._merge(worker)

    async def _merge(self, worker: str) -> None:
        """A worker's sums into the base; the script refuses if either has changed meanwhile."""
        store = self.engine.store
        fields = await store.moments()
        value, base = fields.get(worker.encode()), fields.get(b"base")
        if value is None:
            return
        total = load_moments(value)
        if base is not None:
            merged: Moments = load_moments(base)
            merged.merge(total)
            total = merged
        if await store.merge(worker, value, base, dump_moments(total)):
            self.engine.stats.merged_workers += 1

    async def _snapshot_if_due(self, now: float) -> None:
        new = self._replica.position - self._snapshot_position
        if new >= self.engine.settings.snapshot_every or (new > 0 and now >= self._snapshot_at):
            self._snapshot_at = now + SNAPSHOT_INTERVAL_S
            await self.snapshot()

    async def snapshot(self) -> None:
        replica = self._replica
        if replica.refreshing or replica.position == self._snapshot_position:
            return
        learner = replica.learner
        keep = learner.config.history_limit + MARKS if learner.policy.refreshes else 0
        new = Snapshot(
            self.engine.configured,
            replica.position,
            replica.last_id,
            dump_model(learner),
            len(learner.history),
            keep,
        )
        if await self.engine.store.snapshot(new):
            self.engine.stats.snapshots += 1
        self._snapshot_position = replica.position
