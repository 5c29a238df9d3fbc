"""The arms of one or many requests, checked once at the door."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import BadInput

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Products of four such numbers, summed, must stay finite: a bonus is one.
MAX_MAGNITUDE = 1e50

NO_MASK = np.empty((0, 0))


@dataclass(slots=True)
class Arms:
    """All arms of R requests, one below the other; request r owns rows starts[r]:starts[r+1]."""

    z: Floats  # (A, d+1)  [1; x], 0 where missing
    observed: Mask  # (A, d)  the paper's mask m
    starts: list[int]  # R + 1 of them

    @property
    def x(self) -> Floats:
        return self.z[:, 1:]

    @property
    def requests(self) -> int:
        return len(self.starts) - 1

    @classmethod
    def of(
        cls, features: ArrayLike, mask: ArrayLike | None = None, *, dimension: int | None = None
    ) -> Arms:
        """One request: (K, d) numbers, NaN where missing; `mask` 0 also means missing.

        >>> Arms.of([[1.0, float("nan")]]).observed
        array([[ True, False]])
        """
        raw = _matrix(features, dimension)
        rows, d = raw.shape
        kept = NO_MASK if mask is None else _mask(mask, raw.shape)
        z = np.empty((rows, d + 1))
        observed = np.empty((rows, d), dtype=np.bool_)
        bad = _split(raw, kept, z, observed)
        if bad >= 0:
            row, column = divmod(bad, d)
            raise BadInput(
                f"features[{row}][{column}]",
                f"must be finite and at most {MAX_MAGNITUDE:g} in size, or NaN where missing",
            )
        return cls(z, observed, [0, rows])

    @classmethod
    def join(cls, requests: Sequence[Arms]) -> Arms:
        """Many requests as one batch, in order."""
        if len(requests) == 1:
            return requests[0]
        if len({arms.z.shape[1] for arms in requests}) != 1:
            raise BadInput("requests", "must be at least one, all with the same number of features")
        return cls(
            np.concatenate([arms.z for arms in requests]),
            np.concatenate([arms.observed for arms in requests]),
            list(accumulate((len(arms.z) for arms in requests), initial=0)),
        )


def _matrix(features: ArrayLike, dimension: int | None) -> Floats:
    raw = _numbers(features, "features", "must be rows of numbers, all of one length")
    if raw.ndim != 2:
        raise BadInput("features", f"must have two axes, (arms, features); it has {raw.ndim}")
    if raw.shape[0] == 0:
        raise BadInput("features", "must hold at least one arm")
    if raw.shape[1] == 0:
        raise BadInput("features", "must hold at least one feature per arm")
    if dimension is not None and raw.shape[1] != dimension:
        raise BadInput("features", f"must have {dimension} features per arm; it has {raw.shape[1]}")
    return raw


def _mask(mask: ArrayLike, shape: tuple[int, ...]) -> Floats:
    kept = _numbers(mask, "mask", "must be rows of 0 and 1")
    if kept.shape != shape:
        raise BadInput("mask", f"must have the shape of features, {shape}; it has {kept.shape}")
    if not np.isin(kept, (0.0, 1.0)).all():
        raise BadInput("mask", "must hold only 0 (missing) and 1 (observed)")
    return kept


def _numbers(values: ArrayLike, name: str, problem: str) -> Floats:
    """As doubles; None becomes NaN. NumPy would also read text and dates as numbers: refused."""
    if type(values) is np.ndarray and values.dtype == np.float64 and values.flags.c_contiguous:
        return values
    try:
        array = np.asarray(values)
        kinds = set(map(type, array.ravel().tolist())) if array.dtype == object else ()
        if array.dtype.kind in "fiubO" and not any(issubclass(k, str | bytes) for k in kinds):
            return np.ascontiguousarray(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise BadInput(name, problem) from error
    raise BadInput(name, problem)


@numba.njit(cache=True, nogil=True)
def _split(raw, kept, z, observed):  # type: ignore[no-untyped-def]
    """Values and mask apart; the flat position of the first unusable value, or −1."""
    rows, d = raw.shape
    for i in range(rows):
        z[i, 0] = 1.0
        usable = True
        for j in range(d):  # no branches: this loop is vectorised
            value = raw[i, j]
            seen = value == value  # not NaN
            observed[i, j] = seen
            z[i, j + 1] = value if seen else 0.0
            usable &= not abs(value) > MAX_MAGNITUDE
        if kept.shape[0] > 0:
            usable = True
            for j in range(d):
                if kept[i, j] == 0.0:
                    observed[i, j] = False
                    z[i, j + 1] = 0.0
                usable &= not abs(z[i, j + 1]) > MAX_MAGNITUDE
        if not usable:
            for j in range(d):
                if abs(z[i, j + 1]) > MAX_MAGNITUDE:
                    return i * d + j
    return -1
