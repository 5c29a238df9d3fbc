"""What this worker itself has seen, on its way into its field of the store.

The field is cumulative: writing it twice is harmless. A write whose answer was lost is in doubt;
until it is known, the same bytes go again, so that there is one write in doubt and not many. That
matters when the field is merged away meanwhile: then the base holds either that write or the one
before, and the store remembers which.
"""

from __future__ import annotations

import secrets

from service.learner import BadInput, Moments, dump_moments
from service.store.learner_store import sha1


class OwnMoments:
    def __init__(self, dimension: int) -> None:
        self.worker = secrets.token_hex(8)
        self.has_field = False
        self.generation = 0  # that new arms will be written with; grows with every new write
        self.acked = Moments.zero(dimension)  # in our field
        self.unacked = Moments.zero(dimension)  # since the last write
        self._sent: Moments | None = None  # between the two: written, as far as we know
        self._total = self.acked  # acked and sent
        self._blob = b""

    @property
    def unsaved_arms(self) -> int:
        return self.unacked.arms + (0 if self._sent is None else self._sent.arms)

    def total(self) -> Moments:
        total = self.acked.copy()
        if self._sent is not None:
            total.merge(self._sent)
        total.merge(self.unacked)
        return total

    def retract(self, taken: Moments, generation: int) -> bool:
        """Take out the arms of a select that turned out to be a repetition.

        A write goes out together with the decisions whose arms it holds, all or nothing, and is
        refused if one of them is a repetition: so the write that holds this one did not happen.
        """
        if self._sent is not None and generation < self.generation:
            self._take_back()
        try:
            self.unacked.subtract(taken)
        except BadInput:
            return False  # long since counted: its decision had expired meanwhile
        return True

    def to_write(self) -> bytes:
        if self._sent is None:
            self._sent = self.unacked
            self.unacked = Moments.zero(self.acked.dimension)
            self.generation += 1
            self._total = self.acked.copy()
            self._total.merge(self._sent)
            self._blob = dump_moments(self._total)
        return self._blob

    def written(self) -> None:
        self.has_field = True
        self.acked, self._sent = self._total, None

    def field_lost(self, merged_sha1: str) -> None:
        """Our field is in the base now: from here on, only what that does not hold."""
        if self._sent is not None and sha1(self._blob) != merged_sha1:
            self._take_back()
        self._sent = None
        self.worker = secrets.token_hex(8)
        self.has_field = False
        self.acked = Moments.zero(self.acked.dimension)

    def start_over(self, fields: dict[bytes, bytes]) -> None:
        """The store came back older: all we have seen is to be written again."""
        self.unacked, self._sent = self.total(), None
        self.acked = Moments.zero(self.acked.dimension)
        self.has_field = self.worker.encode() in fields

    def _take_back(self) -> None:
        assert self._sent is not None
        self._sent.merge(self.unacked)
        self.unacked, self._sent = self._sent, None
