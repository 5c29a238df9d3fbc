"""All selects of a batch: into the moments, the estimate if due, one vectorised choice."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from service.learner import Arms, Choices
from service.store import packing
from service.store.packing import Answer

from .replica import estimate_bytes
from .requests import Chosen, Selected, Selection

if TYPE_CHECKING:
    from .engine import Engine

HEAVY = 50_000_000  # rows · d²; a batch above it is scored in a thread


class Choosing:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        # Tells a worker its own decision from another's with the same event id.
        self._nonce = int.from_bytes(os.urandom(8), "little")

    async def choose(self, selects: list[Selection]) -> list[Chosen]:
        """Every select's choice and its record for the store."""
        engine = self.engine
        arms = Arms.join([select.arms for select in selects])
        replica, learner = engine.replica, engine.replica.learner
        generation = replica.observe(arms)
        if not engine.degraded and replica.refresh_due():
            await engine.guard(self._mark())
        if learner.estimate_due():
            await self._estimate()
        if len(arms.z) * learner.config.dimension**2 > HEAVY:
            choices = await asyncio.to_thread(learner.choose, arms)
        else:
            choices = learner.choose(arms)
        stats = engine.stats
        stats.selects += len(selects)
        stats.entries += arms.observed.size
        stats.missing_entries += arms.observed.size - int(arms.observed.sum())
        return self._records(selects, choices, generation)

    async def _estimate(self) -> None:
        learner = self.engine.replica.learner
        heavy = learner.config.dimension > self.engine.settings.inline_dimension
        new = learner.new_estimate
        learner.estimate = await asyncio.to_thread(new) if heavy else new()
        self.engine.stats.estimates += 1
        if learner.config.preset != "paper":  # which makes one every round
            self.engine.committing.estimate_to_store = estimate_bytes(learner.estimate)

    async def _mark(self) -> None:
        replica = self.engine.replica
        power, mark = replica.new_mark()
        appended, entries = await self.engine.store.mark(
            replica.position, replica.last_id, power, mark
        )
        replica.marked = max(replica.marked, power)
        await replica.fold(entries)
        if replica.position < appended:
            await self.engine.committing.follow()

    def _records(self, selects: list[Selection], choices: Choices, generation: int) -> list[Chosen]:
        degraded = self.engine.degraded
        starts, indexes = choices.arms.starts, choices.index
        at = [start + index for start, index in zip(starts, indexes, strict=False)]
        rows = packing.rows_apart(choices.arms.observed[at], choices.z[at, 1:])
        chosen = []
        for r, select in enumerate(selects):
            index = indexes[r]
            self._nonce = (self._nonce + 1) & 0xFFFFFFFFFFFFFFFF
            answer = Answer(
                select.arm_ids[index],
                index,
                len(select.arm_ids),
                choices.model_version,
                choices.probability[r],
                degraded,
                self._nonce.to_bytes(8, "little"),
                choices.rounds[r].number,
            )
            record = packing.decision(answer, choices.learns[r], rows[r])
            selected = Selected(select.event_id, answer, choices, r)
            chosen.append(Chosen(select, selected, record, generation))
        return chosen
