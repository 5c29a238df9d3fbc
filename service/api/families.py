"""What is measured: every family, its help and its labels. docs/metrics.md lists them."""

from __future__ import annotations

from dataclasses import dataclass

from service.engine.stats import BATCH_BUCKETS

SECONDS = (
    *(0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032),
    *(0.064, 0.125, 0.25, 0.5, 1.0, 2.5, 5.0),
)


@dataclass(frozen=True, slots=True)
class Family:
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


LEARNER = ("learner",)
WORKER = ("worker",)
HISTOGRAMS = {
    "request_seconds": Family(
        "Time from the request's head to the end of its answer", ("endpoint", "status"), SECONDS
    ),
    "batch_size": Family("Requests answered by one commit", LEARNER, BATCH_BUCKETS),
}
COUNTERS = {
    "requests": Family("Requests answered", ("endpoint", "status")),
    "selects": Family("Selects answered", ("learner", "degraded")),
    "rewards": Family("Rewards answered, by what became of them", ("learner", "status")),
    "repeated_selects": Family("Selects whose event was decided before", LEARNER),
    "defaults": Family("Default rewards booked", LEARNER),
    "round_trips": Family("Calls to the store", LEARNER),
    "store_errors": Family("Calls to the store that failed", LEARNER),
    "entries": Family("Features that came, observed or missing", LEARNER),
    "missing_entries": Family("Features that were missing", LEARNER),
    "refreshes": Family("Refreshes of past choices", LEARNER),
    "refresh_seconds": Family("Time spent in refreshes", LEARNER),
    "estimates": Family("Estimates of the features' distribution", LEARNER),
    "degraded_seconds": Family("Time without the store", LEARNER),
    "reloads": Family("Starts anew, because the store came back older or changed", LEARNER),
    "dropped_decisions": Family("Made without the store, too many to keep", LEARNER),
    "lost_decisions": Family("Made without the store, after another's", LEARNER),
    "merged_workers": Family("Moments of workers that were gone, taken over", LEARNER),
    "snapshots": Family("Snapshots of the model written", LEARNER),
    "worker_cpu_seconds": Family("Processor time of a worker and those before it", WORKER),
}
# Of several workers the largest is shown: the worst, or the same everywhere.
GAUGES = {
    "info": Family("The version that runs", ("version",)),
    "workers": Family("Worker processes that have been heard of lately"),
    "store_up": Family("1 where the store answered this scrape"),
    "pending": Family("Decisions whose reward may still come", LEARNER),
    "staleness_seconds": Family("Since a worker last held all rewards, the longest", LEARNER),
    "degraded": Family("1 where a worker decides without the store", LEARNER),
    "queue_length": Family("Requests that wait in a worker, the most", LEARNER),
    "buffered_decisions": Family("Kept in a worker until the store is back, the most", LEARNER),
    "model_version": Family("Rewards in the model", LEARNER),
    "reward_sum": Family("Sum of the rewards in the model", LEARNER),
    "arms": Family("Arms seen, chosen or not", LEARNER),
    "missing_rate": Family("Share of all features seen that were missing", LEARNER),
    "feature_observed_rate": Family(
        "Share of all arms seen in which a feature was there", ("learner", "feature")
    ),
    "worker_start_time_seconds": Family("When a worker started, Unix time", WORKER),
    "worker_resident_memory_bytes": Family("Memory of a worker", WORKER),
    "worker_silent_seconds": Family("Since a worker was last heard of", WORKER),
}
# An engine's own numbers, by the name of their counter.
FROM_STATS = {
    **{name: name for name in ("repeated_selects", "defaults", "round_trips", "entries")},
    **{name: name for name in ("missing_entries", "refreshes", "estimates", "reloads")},
    **{name: name for name in ("dropped_decisions", "lost_decisions", "merged_workers")},
    **{name: name for name in ("snapshots", "store_errors")},
    "refresh_seconds": "refresh_s",
}
# Labels that a counter has from its first count on: an increase from nothing is not seen as one.
FROM_THE_START = {
    "selects": ("false", "true"),
    "rewards": ("recorded", "duplicate", "late", "unknown"),
}
