"""Every Redis key there is.

All keys of a learner share the hash tag {name}, so that they live in one cluster slot and a script
may touch them together. A learner's name has no braces, and whatever a caller chooses (an event
id) comes last: nothing escapes its key.

Decisions carry the learner's birth in their key. A learner that was reset or made anew is another
birth: it cannot meet the decisions of its predecessor, which expire by themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

LEARNERS = b"lacuna:learners"  # set: the names there are


@dataclass(frozen=True, slots=True)
class LearnerKeys:
    """The keys of one learner."""

    name: str

    def _key(self, part: str) -> bytes:
        return f"lacuna:{{{self.name}}}:{part}".encode()

    @property
    def config(self) -> bytes:
        """string: configuration, JSON"""
        return self._key("config")

    @property
    def meta(self) -> bytes:
        """hash: born, and counters: rounds, appended, mark, configured, recorded, duplicates,
        late, defaults"""
        return self._key("meta")

    @property
    def moments(self) -> bytes:
        """hash: worker → its own cumulative sums; `base` → those of workers that are gone"""
        return self._key("moments")

    @property
    def workers(self) -> bytes:
        """zset: worker → when it last wrote, ms"""
        return self._key("workers")

    @property
    def due(self) -> bytes:
        """zset: pending event id → when its default reward, or else its expiry, falls due, ms"""
        return self._key("due")

    @property
    def rewards(self) -> bytes:
        """stream: the ordered log of rewarded rows (field r) and refresh marks (field m)"""
        return self._key("rewards")

    @property
    def model(self) -> bytes:
        """hash: position, upto, kept, snapshot; and estimate, the one last made"""
        return self._key("model")

    @property
    def recent(self) -> bytes:
        """list: the latest event ids, newest first"""
        return self._key("recent")

    def decision(self, born: str, event_id: str) -> bytes:
        """string with TTL: the chosen row; after its reward, what was recorded"""
        return self._key(f"decision:{born}:{event_id}")

    def ready(self, born: str, part: str) -> bytes:
        """with TTL: the log and the due of an import that is on its way"""
        return self._key(f"import:{born}:{part}")

    def state(self) -> list[bytes]:
        """All but the configuration and the decisions."""
        return [
            self.meta,
            self.moments,
            self.workers,
            self.due,
            self.rewards,
            self.model,
            self.recent,
        ]
