"""Time as a ratio: two sides in turns within one run, medians, quartiles."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Step = Callable[[int], object]  # one round, by its number


@dataclass(frozen=True, slots=True)
class Ratio:
    """Median over median; the quartiles are those of the pairs measured next to each other."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


def ratio(above: ArrayLike, below: ArrayLike) -> Ratio:
    """
    >>> str(ratio([6.0, 8.0, 10.0], [2.0, 2.0, 2.0]))
    '4.00 (3.50 to 4.50)'
    """
    a, b = np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64)
    low, high = np.quantile(a / b, (0.25, 0.75))
    return Ratio(float(np.median(a) / np.median(b)), float(low), float(high))


def mean_us(step: Step, rounds: int) -> float:
    """Microseconds per round over one chunk."""
    start = time.perf_counter()
    for number in range(rounds):
        step(number)
    return 1e6 * (time.perf_counter() - start) / rounds


def each_us(step: Step, rounds: int) -> Floats:
    """Microseconds of every round alone, (rounds,)."""
    clock = time.perf_counter_ns
    marks = np.empty((rounds, 2), dtype=np.int64)
    for number in range(rounds):
        marks[number, 0] = clock()
        step(number)
        marks[number, 1] = clock()
    spent: Floats = (marks[:, 1] - marks[:, 0]) / 1e3
    return spent


def interleaved(
    sides: Sequence[Callable[[], float]], chunks: int, tick: Callable[[], None] = lambda: None
) -> Floats:
    """Every side once per chunk, (chunks, sides), the order reversed from chunk to chunk.

    What slows the machine down for a while slows down all sides; what drifts favours none.
    """
    found = np.empty((chunks, len(sides)))
    for chunk in range(chunks):
        order = range(len(sides)) if chunk % 2 == 0 else reversed(range(len(sides)))
        for side in order:
            found[chunk, side] = sides[side]()
        tick()
    return found
