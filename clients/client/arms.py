"""Candidates as callers have them, into the body that carries them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import BadArms

Row = Sequence[float | None] | Mapping[str, float | None] | NDArray[Any]
Arms = NDArray[Any] | Sequence[Row] | Mapping[str, Row]

COMPACT = "application/vnd.lacuna.f32"
# From here on decoding JSON is what a select costs: 16 arms of 32 features.
COMPACT_ENTRIES = 512
COMPACT_SIDE = 65_535  # K and d are uint16


def json_arms(
    arms: Arms, ids: Sequence[str] | None = None, mask: Any | None = None
) -> list[dict[str, Any]]:
    """The `arms` of a select: NaN and None become null."""
    if isinstance(arms, Mapping):
        if ids is not None:
            raise BadArms("ids: the arms are a mapping, whose keys are the ids")
        ids, arms = list(arms), list(arms.values())
    if isinstance(arms, np.ndarray):
        matrix = _matrix(arms)
        rows: list[Any] = matrix.astype(object, copy=False).tolist()
        if np.isnan(matrix).any():
            rows = [[None if value != value else value for value in row] for row in rows]
    else:
        rows = [_row(row, index) for index, row in enumerate(arms)]
    bodies = [{"features": row} for row in rows]
    for name, values in (("id", ids), ("mask", None if mask is None else _mask_rows(mask))):
        if values is None:
            continue
        if len(values) != len(bodies):
            raise BadArms(f"{name}: there are {len(bodies)} arms, but {len(values)} of these")
        for body, value in zip(bodies, values, strict=True):
            body[name] = value
    return bodies


def compact_arms(arms: Arms, *, least_entries: int = COMPACT_ENTRIES) -> bytes | None:
    """The compact body; None where the arms are few, named, or do not fit into float32."""
    if isinstance(arms, Mapping) or not len(arms):
        return None
    if not isinstance(arms, np.ndarray):
        first = arms[0]
        if isinstance(first, Mapping) or len(arms) * len(first) < least_entries:
            return None
        try:
            arms = np.array(arms, dtype=np.float64)  # None becomes NaN
        except (TypeError, ValueError):
            return None  # named or ragged: JSON says which
    matrix = _matrix(arms)
    if matrix.size < least_entries or max(matrix.shape) > COMPACT_SIDE:
        return None
    with np.errstate(over="ignore"):
        values = matrix.astype("<f4")
    if np.isinf(values).any():
        return None
    return np.array(values.shape, dtype="<u2").tobytes() + values.tobytes()


def _matrix(arms: NDArray[Any]) -> NDArray[np.float64]:
    try:
        matrix = np.asarray(arms, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise BadArms(f"arms: must be numbers, NaN where missing: {error}") from None
    if matrix.ndim != 2:
        raise BadArms(f"arms: must be of shape (arms, features), not {matrix.shape}")
    infinite = np.argwhere(np.isinf(matrix))
    if len(infinite):
        arm, feature = infinite[0]
        raise BadArms(f"arms[{arm}].features[{feature}]: must be finite, or NaN where missing")
    return matrix


def _row(row: Row, index: int) -> Any:
    if isinstance(row, Mapping):
        return {name: _value(value, f"{index}].features.{name}") for name, value in row.items()}
    values = row.tolist() if isinstance(row, np.ndarray) else row
    return [_value(value, f"{index}].features[{place}]") for place, value in enumerate(values)]


def _value(value: Any, place: str) -> float | None:
    if value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise BadArms(f"arms[{place}: must be a number or None, not {value!r}") from None
    if math.isinf(number):
        raise BadArms(f"arms[{place}: must be finite, or None where missing")
    return None if number != number else number


def _mask_rows(mask: Any) -> list[list[int]]:
    return [[int(value) for value in row] for row in mask]
