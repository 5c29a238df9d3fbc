"""Every Redis key there is.

All keys of a learner share the hash tag {name}, so that they live in one cluster slot and a script
may touch them together. A learner's name has no braces, and whatever a caller chooses (an event
id) comes last: nothing escapes its key.

Decisions carry the learner's birth in their key. A learner that was reset or made anew is another
birth: it cannot meet the decisions of its predecessor, which expire by themselves.
"""

from __future__ import annotations

LEARNERS = b"lacuna:learners"  # set: the names there are


class LearnerKeys:
    """The keys of one learner."""

    __slots__ = (
        "_prefix",
        "config",
        "due",
        "explained",
        "explained_order",
        "meta",
        "model",
        "moments",
        "recent",
        "rewards",
        "timeline",
        "workers",
    )

    def __init__(self, name: str) -> None:
        self._prefix = f"lacuna:{{{name}}}:".encode()
        # string: configuration, JSON
        self.config = self._prefix + b"config"
        # hash: born, and counters: rounds, appended, mark, configured, recorded, duplicates,
        # late, defaults
        self.meta = self._prefix + b"meta"
        # hash: worker → its own cumulative sums; `base` → those of workers that are gone
        self.moments = self._prefix + b"moments"
        # zset: worker → when it last wrote, ms
        self.workers = self._prefix + b"workers"
        # zset: pending event id → when its default reward, or else its expiry, falls due, ms
        self.due = self._prefix + b"due"
        # stream: the ordered log of rewarded rows (field r) and refresh marks (field m)
        self.rewards = self._prefix + b"rewards"
        # hash: position, upto, kept, snapshot; and estimate, the one last made
        self.model = self._prefix + b"model"
        # list: the latest event ids, newest first
        self.recent = self._prefix + b"recent"
        # stream: now and then, how far all counters were; the id is the time, ms
        self.timeline = self._prefix + b"timeline"
        # hash: event id → what its arms were worth; a sample, and its order, newest first
        self.explained = self._prefix + b"explained"
        self.explained_order = self._prefix + b"explained-order"

    def decisions(self, born: str) -> bytes:
        """What the keys of all decisions begin with; the event id follows."""
        return self._prefix + f"decision:{born}:".encode()

    def decision(self, born: str, event_id: str) -> bytes:
        """string with TTL: the chosen row; after its reward, what was recorded"""
        return self.decisions(born) + event_id.encode()

    def merged(self, worker: str) -> bytes:
        """string with TTL: SHA-1 of the sums with which a silent worker went into the base"""
        return self._prefix + f"merged:{worker}".encode()

    def ready(self, born: str, part: str) -> bytes:
        """with TTL: the log and the due of an import that is on its way"""
        return self._prefix + f"import:{born}:{part}".encode()

    def state(self) -> list[bytes]:
        """All but the configuration and what expires by itself."""
        return [
            self.meta,
            self.moments,
            self.workers,
            self.due,
            self.rewards,
            self.model,
            self.recent,
            self.timeline,
            self.explained,
            self.explained_order,
        ]
