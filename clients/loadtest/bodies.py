"""Requests as bytes, made before the clock starts: only the event id is put in later."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

COMPACT_TYPE = "application/vnd.lacuna.f32"
DIGITS = 7  # about what a float32 holds


@dataclass(frozen=True, slots=True)
class Shape:
    """Of one select."""

    arms: int = 20  # K
    dimension: int = 32  # d
    missing: float = 0.1


def features(shape: Shape, count: int, seed: int) -> NDArray[np.float64]:
    """(count, K, d), NaN where missing; neighbours are correlated, so there is what to learn."""
    rng = np.random.default_rng(seed)
    size = (count, shape.arms, shape.dimension)
    common = rng.standard_normal((count, shape.arms, 1))
    x = 0.5 + 0.4 * common + 0.4 * rng.standard_normal(size)
    x[rng.random(size) < shape.missing] = np.nan
    return x.round(DIGITS)


def json_tails(shape: Shape, count: int, seed: int) -> list[bytes]:
    """What follows the event id in a JSON select: `,"arms":[…]}`."""
    tails = []
    for one in features(shape, count, seed):
        rows = [[None if v != v else v for v in row] for row in one.tolist()]
        arms = [{"id": f"ad-{number}", "features": row} for number, row in enumerate(rows)]
        tails.append(b',"arms":' + json.dumps(arms, separators=(",", ":")).encode() + b"}")
    return tails


def compact_bodies(shape: Shape, count: int, seed: int) -> list[bytes]:
    head = struct.pack("<HH", shape.arms, shape.dimension)
    return [head + one.astype("<f4").tobytes() for one in features(shape, count, seed)]
