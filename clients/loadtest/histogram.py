"""Latencies in buckets that grow by a fixed factor: small, mergeable, and off by at most 1 %.

Bucket i holds (L gⁱ⁻¹, L gⁱ] and stands for 2 L gⁱ / (g + 1), which no value of the bucket is
further from than (g − 1)/(g + 1) of itself. With g = 1.02 that is 0.99 %.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

LEAST_S = 1e-6  # L; what is shorter counts as this
GROWTH = 1.02  # g
BUCKETS = 1_048  # up to 1,000 s; what is longer counts as this, but for `longest_s`
RELATIVE_ERROR = (GROWTH - 1.0) / (GROWTH + 1.0)

_LOG_GROWTH = math.log(GROWTH)


class Histogram:
    __slots__ = ("counts", "longest_s", "total_s")

    def __init__(self) -> None:
        self.counts: NDArray[np.int64] = np.zeros(BUCKETS, dtype=np.int64)
        self.longest_s = 0.0
        self.total_s = 0.0

    def add(self, seconds: ArrayLike) -> None:
        values = np.asarray(seconds, dtype=np.float64)
        if not values.size:
            return
        index = np.ceil(np.log(np.maximum(values, LEAST_S) / LEAST_S) / _LOG_GROWTH)
        index = np.minimum(index, BUCKETS - 1).astype(np.int64)
        self.counts += np.bincount(index, minlength=BUCKETS)
        self.longest_s = max(self.longest_s, float(values.max()))
        self.total_s += float(values.sum())

    def merge(self, other: Histogram) -> None:
        self.counts += other.counts
        self.longest_s = max(self.longest_s, other.longest_s)
        self.total_s += other.total_s

    @property
    def count(self) -> int:
        return int(self.counts.sum())

    @property
    def mean_s(self) -> float:
        return self.total_s / self.count if self.count else math.nan

    def quantile_s(self, share: float) -> float:
        """The shortest time that at least this share of all did not exceed; NaN of nothing.

        >>> h = Histogram()
        >>> h.add([0.010] * 99 + [1.0])
        >>> f"{h.quantile_s(0.5):.2f} {h.quantile_s(0.99):.2f} {h.quantile_s(1.0):.2f}"
        '0.01 0.01 1.00'
        """
        count = self.count
        if not count:
            return math.nan
        rank = max(1, math.ceil(share * count - 1e-9))
        if rank == count:
            return self.longest_s
        bucket = int(np.searchsorted(np.cumsum(self.counts), rank))
        if bucket == 0:
            return LEAST_S
        middle = 2.0 * LEAST_S * GROWTH**bucket / (GROWTH + 1.0)
        return min(middle, self.longest_s)

    def quantiles_ms(self, shares: Iterable[float]) -> list[float]:
        return [1e3 * self.quantile_s(share) for share in shares]

    def to_dict(self) -> dict[str, object]:
        """Only what is not 0, so that it is short."""
        index = np.flatnonzero(self.counts)
        return {
            "at": index.tolist(),
            "counts": self.counts[index].tolist(),
            "longest_s": self.longest_s,
            "total_s": self.total_s,
        }

    @classmethod
    def from_parts(
        cls, at: Sequence[int], counts: Sequence[int], longest_s: float, total_s: float
    ) -> Histogram:
        made = cls()
        made.counts[np.asarray(at, dtype=np.int64)] = counts
        made.longest_s, made.total_s = longest_s, total_s
        return made
