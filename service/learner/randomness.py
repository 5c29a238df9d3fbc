"""Randomness that belongs to a round, not to a process.

The draws of round t depend on (seed, t) alone: a restart, an import or another worker that plays
the same round draws the same numbers.
"""

from __future__ import annotations

import numpy as np


def of_round(seed: int, number: int) -> np.random.Generator:
    # In the high words of the counter: rounds lie 2⁶⁴ blocks apart, so their streams never overlap.
    return np.random.Generator(np.random.Philox(key=seed, counter=number << 64))
