"""Running moments of all features: plain sums, so they merge by addition.

ξ = Σ x,  Z = Σ x xᵀ,  P = Σ m mᵀ,  N arms,  t rounds  (Algorithm 1, "Update" lines; n = tr P).
Missing entries count as 0 in ξ and Z. All arms are in, chosen or not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from .arms import Arms, Floats
from .errors import BadInput

SMALL = 64  # features up to which a plain loop beats the call of a blocked routine


@dataclass(slots=True)
class Moments:
    """Sums over every arm of every round so far.

    Counts (P, N, t) are whole numbers below 2⁵³, so merging and subtracting them is exact; ξ and Z
    are doubles and come back to within the rounding of the larger sum.
    """

    xi: Floats  # (d,)   ξ
    z: Floats  # (d, d)  Z
    p: Floats  # (d, d)  P
    arms: int = 0  # N
    rounds: int = 0  # t

    @classmethod
    def zero(cls, dimension: int) -> Moments:
        square = (dimension, dimension)
        return cls(np.zeros(dimension), np.zeros(square), np.zeros(square))

    @classmethod
    def of(cls, arms: Arms) -> Moments:
        """The moments of a batch of requests."""
        moments = cls.zero(arms.observed.shape[1])
        moments.add(arms)
        return moments

    @property
    def dimension(self) -> int:
        return len(self.xi)

    @property
    def observed_entries(self) -> float:
        """The paper's n."""
        return float(np.trace(self.p))

    def add(self, arms: Arms) -> None:
        """This round's arms, or a whole batch of rounds of different K."""
        d = len(self.xi)
        if arms.observed.shape[1] != d:
            raise BadInput("features", f"must have {d} per arm; there are {arms.observed.shape[1]}")
        if d <= SMALL:
            _add_small(arms.z, arms.observed, self.xi, self.z, self.p)
        else:
            sums = arms.z.T @ arms.z  # [1; x][1; x]ᵀ summed: N, ξ and Z at once
            self.xi += sums[0, 1:]
            self.z += sums[1:, 1:]
            _count_pairs(arms.observed, self.p)
        self.arms += len(arms.z)
        self.rounds += len(arms.starts) - 1

    def merge(self, other: Moments) -> None:
        self._check(other)
        self.xi += other.xi
        self.z += other.z
        self.p += other.p
        self.arms += other.arms
        self.rounds += other.rounds

    def subtract(self, other: Moments) -> None:
        """Undo `merge(other)`."""
        self._check(other)
        if other.arms > self.arms or other.rounds > self.rounds or (other.p > self.p).any():
            raise BadInput("moments", "cannot take away more than was added")
        self.xi -= other.xi
        self.z -= other.z
        self.p -= other.p
        self.arms -= other.arms
        self.rounds -= other.rounds

    def copy(self) -> Moments:
        return Moments(self.xi.copy(), self.z.copy(), self.p.copy(), self.arms, self.rounds)

    def _check(self, other: Moments) -> None:
        if other.dimension != self.dimension:
            raise BadInput(
                "moments", f"are of dimension {other.dimension}, not {self.dimension} as these"
            )


@numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _add_products(z, xi, zz):  # type: ignore[no-untyped-def]
    """ξ += Σ x, Z += Σ x xᵀ for rows [1; x]; four rows at a time quarter the traffic to Z."""
    rows, n = z.shape
    whole = rows - rows % 4
    for row in range(0, whole, 4):
        a, b, c, d = z[row, 1:], z[row + 1, 1:], z[row + 2, 1:], z[row + 3, 1:]
        for i in range(n - 1):
            ai, bi, ci, di = a[i], b[i], c[i], d[i]
            xi[i] += (ai + bi) + (ci + di)
            for j in range(n - 1):
                zz[i, j] += (ai * a[j] + bi * b[j]) + (ci * c[j] + di * d[j])
    for row in range(whole, rows):
        a = z[row, 1:]
        for i in range(n - 1):
            xi[i] += a[i]
            for j in range(n - 1):
                zz[i, j] += a[i] * a[j]


@numba.njit(cache=True, nogil=True)
def _count_pairs(observed, p):  # type: ignore[no-untyped-def]
    """P += Σ m mᵀ by what is missing: 11ᵀ − u1ᵀ − 1uᵀ + uuᵀ with u = 1 − m, which is mostly 0."""
    rows, d = observed.shape
    missed = np.zeros(d)
    missing = np.empty(d, np.int64)
    for row in range(rows):
        n = 0
        for j in range(d):
            if not observed[row, j]:
                missing[n] = j
                n += 1
        for a in range(n):
            missed[missing[a]] += 1.0
            for b in range(n):
                p[missing[a], missing[b]] += 1.0
    for i in range(d):
        for j in range(d):
            p[i, j] += rows - missed[i] - missed[j]


@numba.njit(cache=True, nogil=True)
def _add_small(z, observed, xi, zz, p):  # type: ignore[no-untyped-def]
    _add_products(z, xi, zz)
    _count_pairs(observed, p)
