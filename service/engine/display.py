"""What is kept for people to look at: a timeline, and what the arms of some decisions were worth.

Choosing and learning need none of it. As many decisions are explained as a small allowance covers,
so that a busy learner pays little and a quiet one shows everything. Those whose caller asked for an
explanation may overdraw it, up to a point.
"""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

from service.store.explanation import Explanation
from service.store.messages import EXPLAINED

from .requests import Selected, Selection

if TYPE_CHECKING:
    from .engine import Engine

ALLOWANCE = 16.0  # decisions that may be explained at once
ALLOWANCE_PER_S = 2.0
COVERED_BYTES = 16_384  # by one of them; a larger decision takes more
MAX_BYTES = 262_144  # what is larger is not kept


class Display:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        # Packed at once: the arrays of the batches they came in may be large.
        self._waiting: deque[tuple[bytes, bytes]] = deque(maxlen=EXPLAINED)
        self._allowance = ALLOWANCE
        self._allowed_at = time.monotonic()
        self._interval = -1
        self._sampled: tuple[int, int] | None = None  # rounds, rewards

    def offer(self, selects: list[Selection], told: list[Selected]) -> None:
        """The selects of a batch, just answered."""
        now = time.monotonic()
        gained = (now - self._allowed_at) * ALLOWANCE_PER_S
        self._allowance, self._allowed_at = min(ALLOWANCE, self._allowance + gained), now
        if self._allowance < 1.0 and not any(select.explain for select in selects):
            return  # nearly always, where there is load
        for select, one in zip(selects, told, strict=True):
            size = select.arms.z.nbytes
            if one.choices is None or size > MAX_BYTES:  # None: it was answered before
                continue
            cost = max(1.0, size / COVERED_BYTES)
            if self._allowance >= (cost - ALLOWANCE if select.explain else cost):
                self._allowance -= cost
                self._waiting.append((select.event, _explanation(select, one).pack()))

    async def write(self) -> None:
        """Explanations into the store, where every worker finds them."""
        waiting = list(self._waiting)
        if waiting:
            await self.engine.store.keep_explained(waiting)
            for _ in waiting:
                self._waiting.popleft()

    async def sample(self) -> None:
        """How far the learner is, once per interval in which something happened."""
        # Our clock says when to ask; the server's, which all workers share, which interval it is.
        interval_ms = self.engine.settings.timeline_interval_ms
        interval = time.time_ns() // (interval_ms * 1_000_000)
        if interval == self._interval:
            return
        self._interval = interval
        model = self.engine.replica.learner.model
        now = self.engine.committing.rounds, model.count
        if now != self._sampled:
            await self.engine.store.sample(interval_ms, model.count, model.sum_y, model.sum_yy)
            self._sampled = now


def _explanation(select: Selection, one: Selected) -> Explanation:
    choices = one.choices
    assert choices is not None
    start, stop = choices.arms.starts[one.request : one.request + 2]
    return Explanation(
        select.arm_ids,
        choices.mean[start:stop],
        choices.bonus[start:stop],
        choices.arms.observed[start:stop],
        choices.z[start:stop, 1:],
    )
