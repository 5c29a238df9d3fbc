"""Impressions as they are in the log: every field a few features, all missing where it is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .datasets import Row

INDICATORS = 2  # categories per field with a feature of their own


def names(fields: Sequence[str]) -> list[str]:
    parts = ("frequency", *(f"top_{place + 1}" for place in range(INDICATORS)))
    return [f"{field}.{part}" for field in fields for part in parts]


def features(rows: Sequence[Row], fields: Sequence[str]) -> NDArray[np.float32]:
    """(rows, 3 × fields): log frequency of the category, and whether it is the 1st or 2nd most
    frequent. A field that the log does not know is NaN in all three. Observed values have mean 0
    and variance 1."""
    columns = []
    for field in range(len(fields)):
        counts = Counter(row[field] for row in rows if row[field] is not None)
        ordered = sorted(counts, key=lambda name: (-counts[name], name or ""))
        top = ordered[:INDICATORS]
        known = {
            name: (math.log(count), *(float(name == one) for one in top))
            for name, count in counts.items()
        }
        width = 1 + INDICATORS
        block = np.full((len(rows), width), np.nan)
        for number, row in enumerate(rows):
            if row[field] is not None:
                values = known[row[field]]
                block[number, : len(values)] = values
        columns.append(block)
    x = np.hstack(columns)
    seen = ~np.isnan(x)
    count = np.maximum(seen.sum(axis=0), 1)
    mean = np.where(seen, x, 0.0).sum(axis=0) / count
    deviation = np.sqrt(np.where(seen, (x - mean) ** 2, 0.0).sum(axis=0) / count)
    return np.asarray((x - mean) / np.where(deviation > 0.0, deviation, 1.0), dtype=np.float32)
