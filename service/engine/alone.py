"""Without the store: answer from the last model, keep what was decided, store it on return."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from service.errors import StoreDown
from service.learner import Arms
from service.store import packing
from service.store.errors import StoreDenied, StoreError, StoreUnavailable
from service.store.messages import LearnerGone, StoreBehind
from service.store.packing import Answer

from . import loading
from .requests import Chosen, Claim, Selected, reject

if TYPE_CHECKING:
    from .engine import Engine

log = logging.getLogger("lacuna.engine")

# What makes a worker go on alone: no store, none that lets us in, one that came back older.
AWAY = (StoreUnavailable, StoreDenied, StoreBehind)
PARTS_PER_TURN = 4  # commits of kept decisions between two batches
_NO_ARMS = Arms(np.empty((0, 1)), np.empty((0, 0), dtype=np.bool_), [0])


@dataclass(slots=True)
class _Kept:
    chosen: Chosen
    answer: Answer


def _size(one: Chosen) -> int:
    return one.selection.arms.z.nbytes + one.selection.arms.observed.nbytes


class Alone:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.since: float | None = None
        self._back_at: float | None = None
        self._behind = False  # the store has forgotten what we have folded
        self.store_answers = False  # again, so that we can come back
        self._probe: asyncio.Task[None] | None = None
        self._retry_at = 0.0
        self._backoff_s = engine.settings.retry_first_s
        self._kept: dict[str, _Kept] = {}  # answered alone, oldest first
        self._with_arms: deque[str] = deque()  # those whose arms we still have, oldest first
        self._arms_bytes = 0
        self._told: dict[str, Answer] = {}  # the latest answers, for selects that come again

    def __len__(self) -> int:
        return len(self._kept)

    def remember(self, told: list[Selected]) -> None:
        """Answers, so that a select that comes again while the store is away is told the same."""
        for one in told:
            self._told[one.event_id] = one.answer
        while len(self._told) > self.engine.settings.answers_kept:
            del self._told[next(iter(self._told))]

    def told(self, event_id: str) -> Answer | None:
        kept = self._kept.get(event_id)
        return self._told.get(event_id) if kept is None else kept.answer

    def answer(self, chosen: list[Chosen], claims: list[Claim]) -> list[Selected]:
        told = []
        for one in chosen:
            selected = one.selected
            answer = replace(selected.answer, degraded=True)
            one.record = packing.as_degraded(one.record)
            self._keep(one, answer)
            told.append(Selected(selected.event_id, answer, selected.choices, selected.request))
        self.engine.stats.degraded_selects += len(chosen)
        for claim in claims:
            reject(claim.done, StoreDown("rewards are taken again when the store is back"))
        return told

    def _keep(self, one: Chosen, answer: Answer) -> None:
        """What must be stored on return, and while there is room, what its arms were: should the
        event turn out to be decided already, they are taken out of the moments again."""
        settings, event_id = self.engine.settings, one.selection.event_id
        # Of the choice, only the record is needed; its batch may be large.
        selected = Selected(event_id, one.selected.answer, None, 0)
        self._kept[event_id] = _Kept(
            Chosen(one.selection, selected, one.record, one.generation), answer
        )
        self._with_arms.append(event_id)
        self._arms_bytes += _size(one)
        if len(self._kept) > settings.buffer_limit:
            self._forget(next(iter(self._kept)))
            self.engine.stats.dropped_decisions += 1
        while self._arms_bytes > settings.buffer_bytes and self._with_arms:
            oldest = self._kept.get(self._with_arms.popleft())
            if oldest is not None:
                self._arms_bytes -= _size(oldest.chosen)
                oldest.chosen.selection.arms = _NO_ARMS

    def _forget(self, event_id: str) -> None:
        self._arms_bytes -= _size(self._kept.pop(event_id).chosen)

    @property
    def just_back(self) -> bool:
        """Others may still be away, with decisions that only they know."""
        if self._back_at is None:
            return False
        return time.monotonic() - self._back_at < self.engine.settings.others_back_s

    # Away and back --------------------------------------------------------------------------

    def went_away(self, error: Exception) -> None:
        now = time.monotonic()
        self.engine.stats.store_errors += 1
        self._behind = self._behind or isinstance(error, StoreBehind)
        if self.since is None:
            self.store_answers = self._behind  # nothing to wait for
            self.since = now
            self._backoff_s = self.engine.settings.retry_first_s
            log.error("learner %s: degraded: %s", self.engine.store.name, error)
        self._retry_at = now + self._backoff_s * random.uniform(0.5, 1.0)
        self._backoff_s = min(2 * self._backoff_s, self.engine.settings.retry_most_s)

    async def turn(self) -> None:
        """Between two batches: try to come back, without letting requests wait for it."""
        if self.since is None:
            self.store_answers = False  # we came back on another way
        elif self.store_answers:
            self.store_answers = False
            await self.engine.guard(self.come_back(PARTS_PER_TURN))
        elif self._probe is None and time.monotonic() >= self._retry_at:
            self._probe = asyncio.create_task(self._try())

    async def _try(self) -> None:
        try:
            await self.engine.store.probe()
            self.store_answers = True
        except StoreError as error:
            if self.since is not None:
                self.went_away(error)
        finally:
            self._probe = None
        self.engine.wake()

    async def come_back(self, most_parts: int | None = None) -> None:
        """Store what was decided alone; when all of it is stored, we are online again."""
        if self._behind:
            await self.reload()
        committing, size = self.engine.committing, self.engine.settings.batch_selects
        while most_parts is None or most_parts > 0:
            part = [kept.chosen for _, kept in zip(range(size), self._kept.values(), strict=False)]
            last = len(part) == len(self._kept)
            commit = committing.new(with_moments=last)
            commit.decisions = [(one.selection.event, one.record) for one in part]
            done = await committing.send(commit)
            for one, found in zip(part, done.decisions, strict=True):
                self._stored(one, found)
            await committing.fold(done)
            if last:
                self._came_back()
                return
            if most_parts is not None:
                most_parts -= 1
        self.store_answers = True
        self.engine.wake()

    def _stored(self, one: Chosen, found: int | bytes) -> None:
        if isinstance(found, bytes) and packing.answer(found).nonce != one.selected.answer.nonce:
            self.engine.stats.lost_decisions += 1
            if one.selection.arms is not _NO_ARMS:
                self.engine.replica.retract(one.selection.arms, one.generation)
        self._forget(one.selection.event_id)

    def _came_back(self) -> None:
        self._with_arms.clear()
        if self.since is None:
            return
        self._back_at = time.monotonic()
        away_s = self._back_at - self.since
        self.since = None
        self.engine.stats.degraded_s += away_s
        log.warning("learner %s: the store is back after %.1f s", self.engine.store.name, away_s)

    async def reload(self) -> None:
        """The store came back with older data: its log is the truth now, our own sums still are.

        Our moments are cumulative, so writing them again makes good what the store has lost.
        """
        engine = self.engine
        loaded = await engine.store.load()
        if loaded is None or loaded.born != engine.born:
            raise LearnerGone(f"learner {engine.store.name!r} is not in the store any more")
        log.error("learner %s: the log is not the one we followed; reloaded", engine.store.name)
        engine.stats.reloads += 1
        before = engine.replica
        engine.replica = await loading.load(engine.store, loaded, engine.stats)
        await before.give_up()
        engine.replica.keep_own_moments(before, loaded.moments)
        engine.committing.rounds = loaded.counter("rounds")
        self._behind = False

    async def close(self) -> None:
        if self._probe is not None:
            self._probe.cancel()
            await asyncio.gather(self._probe, return_exceptions=True)
