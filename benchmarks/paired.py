"""Two policies on the same seeds: how far apart they are, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from clients.simulate.report import half_width


@dataclass(frozen=True, slots=True)
class PairedRatio:
    """Mean over mean, with its 95 % band."""

    value: float
    half_width: float

    @property
    def low(self) -> float:
        return self.value - self.half_width

    @property
    def high(self) -> float:
        return self.value + self.half_width

    def __str__(self) -> str:
        return f"{self.value:.3f} ± {self.half_width:.3f}"


def paired_ratio(above: ArrayLike, below: ArrayLike) -> PairedRatio:
    """r = ā/b̄ with the band of the mean of (aᵢ − r bᵢ)/b̄: what the pairs share cancels.

    >>> str(paired_ratio([1.0, 2.0, 3.0], [2.0, 4.0, 6.0]))
    '0.500 ± 0.000'
    """
    a, b = np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64)
    value = float(a.mean() / b.mean())
    return PairedRatio(value, float(half_width((a - value * b) / b.mean())))
