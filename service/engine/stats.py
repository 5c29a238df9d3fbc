"""What an engine has done: plain numbers, read by whoever shows them."""

from __future__ import annotations

from dataclasses import dataclass, field

BATCH_BUCKETS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


@dataclass(slots=True)
class Stats:
    selects: int = 0
    repeated_selects: int = 0
    degraded_selects: int = 0
    rewards: dict[str, int] = field(default_factory=dict)  # by status
    defaults: int = 0
    batches: int = 0
    batch_sizes: list[int] = field(default_factory=lambda: [0] * (len(BATCH_BUCKETS) + 1))
    batched_requests: int = 0
    round_trips: int = 0
    store_errors: int = 0  # calls to the store that failed
    entries: int = 0  # features that came, observed or not
    missing_entries: int = 0
    refreshes: int = 0
    refresh_s: float = 0.0
    estimates: int = 0
    degraded_s: float = 0.0
    reloads: int = 0  # the store came back older, or the learner was remade
    dropped_decisions: int = 0  # made while the store was away, more than the buffer holds
    lost_decisions: int = 0  # made while the store was away, and another's was stored first
    merged_workers: int = 0
    snapshots: int = 0

    def count_batch(self, size: int) -> None:
        self.batches += 1
        self.batched_requests += size
        for bucket, most in enumerate(BATCH_BUCKETS):
            if size <= most:
                self.batch_sizes[bucket] += 1
                return
        self.batch_sizes[-1] += 1

    def count_reward(self, status: str) -> None:
        self.rewards[status] = self.rewards.get(status, 0) + 1
