"""What is kept of a learner for people to look at, and for nothing else."""

from __future__ import annotations

import struct

from .administration import LearnerAdministration
from .messages import EXPLAINED, TIMELINE_KEPT, Sample
from .packing import VERSION
from .translate import translate_errors

_COUNTERS = struct.Struct("<BQdd")  # version · rewards in the model · Σy · Σy²


class LearnerDisplay(LearnerAdministration):
    """The timeline, and the explanations of the latest decisions that have one."""

    async def sample(self, interval_ms: int, rewards: int, sum_y: float, sum_yy: float) -> bool:
        """How far the model is, for this interval; whether we were the first to say so."""
        keys = [self.keys.meta, self.keys.timeline]
        counters = _COUNTERS.pack(VERSION, rewards, sum_y, sum_yy)
        args = (self.born, interval_ms, TIMELINE_KEPT, counters)
        return bool(await self._call("sample", keys, *args))

    async def samples(self) -> list[Sample]:
        """Oldest first. Of an interval in which nothing happened there is none."""
        self.calls += 1
        with translate_errors():
            found = await self.client.xrange(self.keys.timeline)
        return [
            Sample(
                int(id_.partition(b"-")[0]),
                int(fields[b"rounds"]),
                *_COUNTERS.unpack(fields[b"model"])[1:],
            )
            for id_, fields in found
        ]

    async def keep_explained(self, explained: list[tuple[bytes, bytes]]) -> None:
        """Event ids and explanations, oldest first."""
        keys = [self.keys.meta, self.keys.explained, self.keys.explained_order]
        args = [part for pair in explained for part in pair]
        await self._call("explain", keys, self.born, EXPLAINED, *args)

    async def explained(self) -> list[str]:
        """Event ids, newest first."""
        self.calls += 1
        with translate_errors():
            found = await self.client.lrange(self.keys.explained_order, 0, -1)
        return [event_id.decode() for event_id in found]

    async def explanation(self, event_id: str) -> bytes | None:
        self.calls += 1
        with translate_errors():
            found: bytes | None = await self.client.hget(self.keys.explained, event_id)
        return found
