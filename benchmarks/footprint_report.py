"""What was found of memory, CPU and starts, and how it is shown."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from .report import Report, Table


@dataclass(frozen=True, slots=True)
class Start:
    cold_s: float  # kernels compiled
    cold_cpu_s: float
    warm_s: float
    warm_cpu_s: float


@dataclass(frozen=True, slots=True)
class Rest:
    """Nobody asks anything; no learner is in memory."""

    parent_mib: float
    worker_mib: float
    store_mib: float
    worker_cores: float
    store_cores: float


@dataclass(frozen=True, slots=True)
class Learners:
    """Many learners in a worker that are used no more, each by itself."""

    dimension: int
    worker_bytes: float
    store_bytes: float
    worker_cores: float
    store_cores: float


@dataclass(frozen=True, slots=True)
class Rows:
    """Many decisions of one learner, then a reward for each."""

    dimension: int
    pending_bytes: float  # in the store, per decision that waits
    rewarded_bytes: float  # in the store, per rewarded decision that has not expired
    row_bytes: float  # of that, its row in the log, which stays
    worker_bytes: float  # in a worker, per row of history
    peak_bytes: float  # the same at the worst moment, a refresh
    follow_us: float  # CPU of a worker that only follows, per reward of another
    taken_us: float  # CPU of the worker that took it


@dataclass(frozen=True, slots=True)
class Busy:
    worker_mib: float
    store_mib: float
    worker_cores: float
    store_cores: float
    rate: float


def report(
    quick: bool, start: Start, rest: Rest, learners: list[Learners], rows: list[Rows], busy: Busy
) -> Report:
    found: dict[str, Any] = {"start": asdict(start), "rest": asdict(rest), "busy": asdict(busy)}
    found |= {"learners": [asdict(one) for one in learners], "rows": [asdict(one) for one in rows]}
    tables = [
        Table(
            "A start, from the command until it is ready",
            [
                ["", "seconds", "of CPU"],
                ["kernels compiled", f"{start.cold_s:.1f}", f"{start.cold_cpu_s:.1f}"],
                ["kernels from the cache", f"{start.warm_s:.1f}", f"{start.warm_cpu_s:.1f}"],
            ],
        ),
        Table(
            f"Resident memory, MiB, and cores in use; busy: {busy.rate:,.0f} selects per second, "
            "K=20, d=32",
            [
                ["", "parent", "worker", "store", "worker cores", "store cores"],
                [
                    "at rest",
                    *(f"{v:.0f}" for v in (rest.parent_mib, rest.worker_mib, rest.store_mib)),
                    *(f"{v:.3f}" for v in (rest.worker_cores, rest.store_cores)),
                ],
                [
                    "busy",
                    "",
                    *(f"{v:.0f}" for v in (busy.worker_mib, busy.store_mib)),
                    *(f"{v:.2f}" for v in (busy.worker_cores, busy.store_cores)),
                ],
            ],
        ),
        Table(
            "A learner that is in memory and idle",
            [
                ["d", "worker bytes", "store bytes", "worker cores", "store cores"],
                *(
                    [
                        f"{one.dimension}",
                        f"{one.worker_bytes:,.0f}",
                        f"{one.store_bytes:,.0f}",
                        f"{one.worker_cores:.5f}",
                        f"{one.store_cores:.5f}",
                    ]
                    for one in learners
                ),
            ],
        ),
        Table(
            "A decision and its reward: bytes in the store and in a worker, µs of CPU",
            [
                ["d", "pending", "rewarded", "log row", "worker", "at its peak", "took", "follows"],
                *(
                    [
                        f"{one.dimension}",
                        f"{one.pending_bytes:,.0f}",
                        f"{one.rewarded_bytes:,.0f}",
                        f"{one.row_bytes:,.0f}",
                        f"{one.worker_bytes:,.0f}",
                        f"{one.peak_bytes:,.0f}",
                        f"{one.taken_us:,.0f}",
                        f"{one.follow_us:,.0f}",
                    ]
                    for one in rows
                ),
            ],
        ),
    ]
    return Report("footprint", quick, tables, [], found, None)
