"""What an engine does besides answering: follow the log, read others' moments, book default
rewards, write snapshots, merge the moments of workers that are gone. Any worker may do all of it.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from service.learner import Moments, dump_model, dump_moments, load_moments
from service.store import packing
from service.store.errors import StoreError
from service.store.messages import MERGED_MS, LearnerGone, Snapshot

from .loading import entries_to_keep
from .replica import Replica

if TYPE_CHECKING:
    from .engine import Engine

log = logging.getLogger("lacuna.engine")

SNAPSHOT_INTERVAL_S = 30.0  # for the few entries of a quiet learner


class House:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.due = False
        self._others_at = 0.0  # when others' moments are looked at again
        self._merge_at = time.monotonic() + engine.settings.merge_interval_s
        self._snapshot_at = 0.0
        self._snapshot_position = -1

    @property
    def _replica(self) -> Replica:
        return self.engine.replica

    async def keep(self) -> None:
        """One turn; the order is that of urgency."""
        engine, now = self.engine, time.monotonic()
        if self._replica.incomplete:
            await engine.alone.reload()
        if engine.committing.moments_due():
            await engine.committing.write_moments()
        await engine.committing.follow()
        if engine.committing.due_in_ms == 0:
            await self._sweep()
        if now >= self._others_at:
            await self._look_at_others()
        if now >= self._merge_at:
            self._merge_at = now + engine.settings.merge_interval_s
            await self._merge_silent()
        await self._snapshot_if_due(now)
        await engine.display.write()
        await engine.display.sample()

    async def flush(self) -> None:
        """Everything this worker knows into the store, and all others' news from it."""
        engine = self.engine
        if engine.degraded:
            await engine.alone.come_back()
        await engine.committing.write_moments()
        await engine.committing.follow()
        self._replica.take_moments(await engine.store.moments())
        await engine.display.write()

    async def close(self) -> None:
        """Leave nothing behind that only this worker knows."""
        name = self.engine.store.name
        try:
            await self.flush()
            await self._replica.settled()
            await self.snapshot()
            if self._replica.own.has_field:
                # Nobody needs to wait until we have been silent for long enough.
                await self._merge(self._replica.own.worker, remember_ms=0)
        except LearnerGone:
            return  # removed or remade: what we have is of no use to anybody
        except StoreError as error:
            log.error(
                "learner %s: stopped; the store does not have %d decisions and %d arms: %s",
                name,
                len(self.engine.alone),
                self._replica.own.unsaved_arms,
                error,
            )
        except Exception:
            log.exception("learner %s: stopped in disorder", name)

    async def _look_at_others(self) -> None:
        fields = await self.engine.store.moments()
        size = sum(map(len, fields.values()))
        settings = self.engine.settings
        pause_s = max(settings.moments_interval_s, size / settings.moments_bytes_per_s)
        self._others_at = time.monotonic() + pause_s
        self._replica.take_moments(fields)

    async def _sweep(self) -> None:
        """Book default rewards that fell due, with the script that rewards use."""
        store, limit = self.engine.store, self.engine.settings.sweep_limit
        default = self._replica.configuration.default_reward
        due = await store.due(limit)
        if due and default is None:
            await store.forget_due(due)  # expired without a reward
        elif due and default is not None:
            await self.engine.committing.book_defaults(due, packing.pack_reward(default))
        if len(due) == limit:
            self.due = True  # the rest after the requests that wait
            self.engine.wake()

    async def _merge_silent(self) -> None:
        for_ms = int(self.engine.settings.worker_silent_s * 1_000)
        for worker in await self.engine.store.silent_workers(for_ms):
            if worker != self._replica.own.worker:
                await self._merge(worker)

    async def _merge(self, worker: str, remember_ms: int = MERGED_MS) -> None:
        """A worker's sums into the base; the script refuses if either has changed meanwhile."""
        store = self.engine.store
        fields = await store.moments()
        value, base = fields.get(worker.encode()), fields.get(b"base")
        if value is None:
            await store.forget_worker(worker)
            return
        total = load_moments(value)
        if base is not None:
            merged: Moments = load_moments(base)
            merged.merge(total)
            total = merged
        if await store.merge(worker, value, base, dump_moments(total), remember_ms):
            self.engine.stats.merged_workers += 1

    async def _snapshot_if_due(self, now: float) -> None:
        new = self._replica.position - self._snapshot_position
        if new >= self.engine.settings.snapshot_every or (new > 0 and now >= self._snapshot_at):
            self._snapshot_at = now + SNAPSHOT_INTERVAL_S
            await self.snapshot()

    async def snapshot(self) -> None:
        replica = self._replica
        if replica.busy or replica.incomplete or replica.position == self._snapshot_position:
            return
        learner = replica.learner
        refreshes = learner.policy.refreshes
        new = Snapshot(
            self.engine.configured,
            replica.position,
            replica.last_id,
            dump_model(learner),
            kept_rows=len(learner.history) if refreshes else 0,
            keep_entries=entries_to_keep(learner.config.history_limit if refreshes else 0),
        )
        if await self.engine.store.snapshot(new):
            self.engine.stats.snapshots += 1
        self._snapshot_position = replica.position
