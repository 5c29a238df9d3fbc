"""A uniform sample of a stream of unknown length, in memory that does not grow with it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeVar

import numpy as np

T = TypeVar("T")


def reservoir(items: Iterable[T], size: int, seed: int) -> list[T]:
    """Algorithm L (Li 1994): the number of items to pass over is drawn, not a coin for each.

    In the order of the stream as long as it fits.

    >>> reservoir("abc", 5, 0)
    ['a', 'b', 'c']
    """
    rng = np.random.default_rng(seed)
    kept: list[T] = []
    w, wanted = 1.0, size
    for number, item in enumerate(items):
        if number < size:
            kept.append(item)
            if number == size - 1:
                w, wanted = _next(w, number, size, rng)
        elif number == wanted:
            kept[int(rng.integers(size))] = item
            w, wanted = _next(w, number, size, rng)
    return kept


def _next(w: float, number: int, size: int, rng: np.random.Generator) -> tuple[float, int]:
    w *= math.exp(math.log(1.0 - rng.random()) / size)
    skip = math.floor(math.log(1.0 - rng.random()) / math.log1p(-w)) if w < 1.0 else 0
    return w, number + skip + 1
