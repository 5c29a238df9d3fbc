"""The rewarded choices a refresh completes anew: (ẑ, mask, y), the newest `limit` of them.

ẑ = [1; x̄] agrees with x wherever x was observed, so a row is all that completing it again needs.
What falls out of the window stays in the model as it was last completed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arms import Floats, Mask
from .completion import complete
from .estimate import Estimate
from .regression import accumulate


@dataclass(slots=True)
class Rows:
    """Rewarded choices, oldest first."""

    z: Floats  # (m, d+1)  ẑ
    observed: Mask  # (m, d)
    y: Floats  # (m,)

    def __len__(self) -> int:
        return len(self.y)


@dataclass(slots=True)
class Refreshed:
    """Every kept row completed anew, and what the regression becomes of it."""

    z: Floats  # (m, d+1)  ẑ
    s: Floats  # (d+1, d+1)
    b: Floats  # (d+1,)


class History:
    def __init__(self, dimension: int, limit: int) -> None:
        n = dimension + 1
        self.limit = limit
        self.frozen_s = np.zeros((n, n))  # S of the rows that left
        self.frozen_b = np.zeros(n)
        self._first = 0
        self._end = 0
        self._z = np.empty((0, n))
        self._observed = np.empty((0, dimension), dtype=np.bool_)
        self._y = np.empty(0)

    def __len__(self) -> int:
        return self._end - self._first

    def rows(self) -> Rows:
        kept = slice(self._first, self._end)
        return Rows(self._z[kept], self._observed[kept], self._y[kept])

    def append(self, rows: Rows) -> None:
        end = self._end + len(rows.y)
        if end > len(self._y):
            self.reserve(len(rows))
            end = self._end + len(rows)
        self._z[self._end : end] = rows.z
        self._observed[self._end : end] = rows.observed
        self._y[self._end : end] = rows.y
        self._end = end
        if end - self._first > self.limit:
            self._freeze(end - self._first - self.limit)

    def _freeze(self, count: int) -> None:
        old = slice(self._first, self._first + count)
        accumulate(self._z[old], self._y[old], self.frozen_s, self.frozen_b)
        self._first += count

    def reserve(self, extra: int) -> None:
        """Room for so many rows more."""
        kept = self.rows()
        room = max(64, 2 * (len(kept) + extra))  # at least as much free as kept: O(1) per row
        self._z = _moved(kept.z, room)
        self._observed = _moved(kept.observed, room)
        self._y = _moved(kept.y, room)
        self._first, self._end = 0, len(kept)

    def completed_anew(self, estimate: Estimate) -> Refreshed:
        """All rows under today's estimate, and the S and b they give. Changes nothing."""
        rows = self.rows()
        z, s, b = rows.z.copy(), self.frozen_s.copy(), self.frozen_b.copy()
        complete(z, rows.observed, estimate)
        accumulate(z, rows.y, s, b)
        return Refreshed(z, s, b)

    def replace(self, z: Floats) -> None:
        """Take over what `completed_anew` made of the oldest len(z) rows."""
        self._z[self._first : self._first + len(z)] = z


def with_one(x: Floats) -> Floats:
    """[1; x]"""
    z = np.empty((len(x), x.shape[1] + 1))
    z[:, 0] = 1.0
    z[:, 1:] = x
    return z


def _moved(kept: NDArray[Any], room: int) -> NDArray[Any]:
    moved = np.empty((room, *kept.shape[1:]), dtype=kept.dtype)
    moved[: len(kept)] = kept
    return moved
