"""What goes to a learner's store and what comes back, and what it may refuse with."""

from __future__ import annotations

from dataclasses import dataclass, field

from .errors import StoreError

RECENT = 200  # latest decisions that can be listed
TIMELINE_KEPT = 720  # samples
EXPLAINED = 50  # decisions whose arms can still be looked at
LOG_BATCH = 1_024  # log entries per reply
MERGED_MS = 86_400_000  # a worker cut off for longer may count its last arms twice
START = b"0-0"  # before the first log entry
READY_S = 3_600  # what an import that broke off leaves behind is gone after so long

LogEntry = tuple[bytes, bytes, bytes]  # id, kind (r or m), value


class LearnerGone(StoreError):
    """The learner was removed or reset since it was loaded."""


class StoreBehind(StoreError):
    """The server has forgotten log entries that this worker has folded: it came back older."""


@dataclass(slots=True)
class Loaded:
    """All that a worker starts from."""

    config: bytes
    born: str
    meta: dict[bytes, bytes]
    moments: dict[bytes, bytes]
    model: dict[bytes, bytes]

    def counter(self, name: str) -> int:
        return int(self.meta.get(name.encode(), b"0"))


@dataclass(slots=True)
class RowsPage:
    rows: bytes  # log entries r, one behind the other, oldest first
    mark: bytes | None  # the newest refresh mark among them
    since_mark: int  # rows newer than it; without a mark, all


@dataclass(slots=True)
class StoredDecision:
    event_id: str
    record: bytes
    ttl_ms: int
    due_ms: int | None = None  # on the server's clock; None where nothing is waited for


@dataclass(slots=True)
class Commit:
    """What a worker sends in one step."""

    worker: str
    has_field: bool
    position: int
    last_id: bytes
    moments: bytes = b""
    estimate: bytes = b""
    decision_ttl_ms: int = 86_400_000
    reward_wait_ms: int = 0
    # event ids are bytes here
    decisions: list[tuple[bytes, bytes]] = field(default_factory=list)
    rewards: list[tuple[bytes, bytes, bytes]] = field(default_factory=list)  # id, reward, R or D


@dataclass(slots=True)
class Snapshot:
    configured: int  # how often the learner had been reconfigured
    position: int
    upto: bytes  # the log id of that position
    model: bytes
    kept_rows: int  # before it, that a refresh still completes
    keep_entries: int  # of the log before it


@dataclass(frozen=True, slots=True)
class Sample:
    """How far a learner was at a moment: rounds, and rewards in the model, y and y² added up."""

    at_ms: int
    rounds: int
    rewards: int
    sum_y: float
    sum_yy: float


@dataclass(slots=True)
class Committed:
    rounds: int
    appended: int
    configured: int  # how often the learner was reconfigured
    moments_written: bool
    field_lost: bool
    merged_sha1: str  # of the sums with which the lost field went into the base, or ""
    due_in_ms: int | None  # until the first pending event falls due
    decisions: list[int | bytes]  # round, or the record that was there already
    rewards: list[tuple[str, bytes]]  # status, and the reward that stands
    log: list[LogEntry]
