"""What a process that makes load is told, and what it tells: lines of JSON over its pipes."""

from __future__ import annotations

from typing import Literal

import msgspec

from .histogram import Histogram


class Job(msgspec.Struct, frozen=True):
    """For as long as the process lives."""

    url: str
    learner: str
    prefix: str  # of its event ids, its own
    body: Literal["json", "compact"] = "json"
    arms: int = 20
    dimension: int = 32
    missing: float = 0.1
    connections: int = 16
    rewards: float = 0.0  # share of selects that get one
    reward_delay_s: float = 0.5  # mean
    duplicates: float = 0.0  # share of selects and rewards that are sent twice
    timeout_s: float = 10.0
    drain_s: float = 30.0
    check: bool = True
    rewards_only: bool = False  # for events that were made before
    seed: int = 1
    api_key: str = ""


class Step(msgspec.Struct, frozen=True):
    """One stretch of load; without a rate a closed loop."""

    duration_s: float
    rate: float | None = None  # selects due per second, of this process
    arrivals: Literal["poisson", "even"] = "poisson"
    last: bool = True  # outstanding rewards are sent before it ends


class Buckets(msgspec.Struct, frozen=True):
    at: list[int]
    counts: list[int]
    longest_s: float
    total_s: float

    @classmethod
    def of(cls, histogram: Histogram) -> Buckets:
        return msgspec.convert(histogram.to_dict(), cls)

    def histogram(self) -> Histogram:
        return Histogram.from_parts(self.at, self.counts, self.longest_s, self.total_s)


class Account(msgspec.Struct):
    """The ledger of one process: what the service has acknowledged."""

    selects: int = 0  # events that were answered
    repeats: int = 0  # answered again, with the same id
    recorded: int = 0  # rewards known to be stored, each event once
    reward_sum: float = 0.0  # of those
    duplicates: int = 0  # answers that said so
    late: int = 0
    retries: int = 0
    doubtful_selects: int = 0  # sent, never answered
    doubtful_rewards: int = 0
    unsent_rewards: int = 0  # when time was up
    errors: dict[str, int] = msgspec.field(default_factory=dict)
    wrong: list[str] = msgspec.field(default_factory=list)  # answers that cannot be right


class Tick(msgspec.Struct, frozen=True, tag="tick"):
    """Since the last one."""

    elapsed_s: float
    selects: Buckets
    rewards: Buckets
    lag: Buckets  # how late this process itself was with what was due
    waiting: int  # due, and no connection is free
    busy: int
    account: Account  # since the start


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    pass


class Done(msgspec.Struct, frozen=True, tag="done"):
    elapsed_s: float  # until the last select had its answer
    account: Account


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    why: str


Message = Tick | Ready | Done | Failed
