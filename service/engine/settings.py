"""How engines run; the service's own settings fill this in."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EngineSettings:
    follow_interval_s: float = 0.25  # how often an idle worker looks into the log
    batch_selects: int = 128  # most selects in one commit
    batch_rewards: int = 512  # most rewards in one commit
    queue_limit: int = 8_192  # most requests that may wait for one learner
    buffer_limit: int = 10_000  # decisions kept while the store is away
    buffer_bytes: int = 64_000_000  # of their arms, kept to be taken out of the moments again
    answers_kept: int = 4_096  # latest answers, for selects that come again while it is away
    inline_dimension: int = 256  # above it, estimates are made in a thread
    moments_bytes_per_s: float = 4e6  # of moments written, and of moments read, per learner
    moments_interval_s: float = 0.5  # how often others' moments are looked at, at the most
    snapshot_every: int = 1_000  # log entries
    worker_silent_s: float = 60.0  # then its moments are merged into the base
    merge_interval_s: float = 10.0  # how often that is looked for
    timeline_interval_ms: int = 5_000  # one sample of the counters per interval, for people to see
    sweep_limit: int = 512  # defaults booked per turn
    retry_first_s: float = 0.1  # back-off while the store is away
    retry_most_s: float = 2.0
    others_back_s: float = 5.0  # after our return, others may still keep decisions for so long
    idle_s: float = 900.0  # a learner unused for so long is put away
