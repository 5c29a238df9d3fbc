"""A whole learner, or its moments alone, as bytes and back: what comes back decides the same."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import codec
from .codec import Kind, half, whole
from .config import LearnerConfig
from .errors import BadInput, BadState
from .estimate import Estimate
from .history import History, Rows, with_one
from .learner import Learner
from .moments import Moments

PART = 4_096  # rows


def dump(learner: Learner) -> bytes:
    """All of it."""
    return b"".join(dump_parts(learner))


def dump_parts(learner: Learner) -> list[bytes]:
    """The same in parts that follow each other."""
    rows = learner.history.rows()
    scalars, arrays = _model_parts(learner)
    scalars |= {
        "config": learner.config.to_dict(),
        "arms": learner.moments.arms,
        "rounds": learner.moments.rounds,
    }
    arrays |= _moment_arrays(learner.moments)
    arrays |= {
        "xbar": rows.z[:, 1:],
        "observed": np.packbits(rows.observed, axis=1),
        "y": rows.y,
    }
    if learner.estimate is not None:
        scalars["estimate"] = [learner.estimate.p_hat, learner.estimate.arms]
        arrays["nu"] = learner.estimate.nu
        arrays["sigma"] = half(learner.estimate.sigma)
    return codec.pack_parts(Kind.LEARNER, scalars, arrays)


def load(blob: bytes | memoryview) -> Learner:
    with _reading("learner"):
        scalars, arrays = codec.unpack(Kind.LEARNER, blob)
        learner = Learner(LearnerConfig.from_dict(scalars["config"]))
        d = learner.config.dimension
        learner.moments = _moments(d, scalars, arrays)
        _restore_model(learner, scalars, arrays)
        _restore_rows(learner.history, d, arrays)
        if "estimate" in scalars:
            p_hat, arms = scalars["estimate"]
            learner.estimate = Estimate.of(
                _positive(p_hat), _own(arrays["nu"], d), whole(arrays["sigma"], d), _count(arms)
            )
        return learner


def dump_model(learner: Learner) -> bytes:
    """The model without moments and history: small, and enough to go on from."""
    return codec.pack(Kind.MODEL, *_model_parts(learner))


def load_model(learner: Learner, blob: bytes) -> None:
    """Into a new learner of the same configuration."""
    with _reading("model"):
        _restore_model(learner, *codec.unpack(Kind.MODEL, blob))


def _model_parts(learner: Learner) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    model = learner.model
    scalars = {
        "count": model.count,
        "sum_y": model.sum_y,
        "sum_yy": model.sum_yy,
        "ridge": model.ridge,
        "trace_inverse": model.trace_inverse,
        "fit": model.fit,
        "since_check": model.since_check,
        "next_refresh": learner.next_refresh,
    }
    arrays = {
        "s": half(model.s),
        "b": model.b,
        "factor": half(model.factor),  # as updated, so that what comes back has the same bits
        "theta": model.theta,
        "frozen_s": half(learner.history.frozen_s),
        "frozen_b": learner.history.frozen_b,
    }
    return scalars, arrays


def _restore_model(
    learner: Learner, scalars: dict[str, Any], arrays: dict[str, NDArray[Any]]
) -> None:
    n = learner.config.dimension + 1
    model, history = learner.model, learner.history
    model.s, model.b = _squares(arrays["s"], n), _own(arrays["b"], n)
    model.factor = np.ascontiguousarray(np.triu(whole(arrays["factor"], n)))
    if not (np.diagonal(model.factor) > 0.0).all():
        raise ValueError("V is not positive definite")
    model.theta = _own(arrays["theta"], n)
    model.count, model.ridge = _count(scalars["count"]), _positive(scalars["ridge"])
    model.sum_y, model.sum_yy = _finite(scalars["sum_y"]), _finite(scalars["sum_yy"])
    model.trace_inverse, model.fit = _finite(scalars["trace_inverse"]), _finite(scalars["fit"])
    model.since_check = _count(scalars["since_check"])
    learner.next_refresh = _count(scalars["next_refresh"])
    history.frozen_s = _squares(arrays["frozen_s"], n)
    history.frozen_b = _own(arrays["frozen_b"], n)


def _restore_rows(history: History, d: int, arrays: dict[str, NDArray[Any]]) -> None:
    kept = len(arrays["y"])
    xbar, y = _shaped(arrays["xbar"], kept, d), _shaped(arrays["y"], kept)
    bits = _shaped(arrays["observed"], kept, (d + 7) // 8, kind=np.uint8)
    history.reserve(kept)
    for start in range(0, kept, PART):  # they may be most of the memory: no second copy of all
        part = slice(start, start + PART)
        observed = np.unpackbits(bits[part], axis=1, count=d).astype(np.bool_)
        history.append(Rows(with_one(xbar[part]), observed, y[part]))


@contextmanager
def _reading(what: str) -> Iterator[None]:
    try:
        yield
    except BadInput as error:
        raise BadState(f"this {what}'s configuration cannot be used: {error}") from error
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise BadState(
            f"this {what} lacks a part, or has one of the wrong kind: {error}"
        ) from error


def dump_moments(moments: Moments) -> bytes:
    scalars = {"dimension": moments.dimension, "arms": moments.arms, "rounds": moments.rounds}
    return codec.pack(Kind.MOMENTS, scalars, _moment_arrays(moments))


def load_moments(blob: bytes) -> Moments:
    with _reading("sum of moments"):
        scalars, arrays = codec.unpack(Kind.MOMENTS, blob)
        return _moments(_count(scalars["dimension"]), scalars, arrays)


def _moment_arrays(moments: Moments) -> dict[str, NDArray[Any]]:
    return {"xi": moments.xi, "z": half(moments.z), "p": half(moments.p)}


def _moments(d: int, scalars: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Moments:
    return Moments(
        _own(arrays["xi"], d),
        whole(arrays["z"], d),  # what was subtracted may leave a rounding below 0
        _squares(arrays["p"], d),
        _count(scalars["arms"]),
        _count(scalars["rounds"]),
    )


# A blob may be whole and still not be ours; what the arithmetic relies on is checked.


def _shaped(array: NDArray[Any], *shape: int, kind: type = np.float64) -> NDArray[Any]:
    if array.shape != shape or array.dtype != kind:
        raise ValueError(f"an array is {array.dtype}{array.shape}, not {np.dtype(kind)}{shape}")
    return array


def _own(array: NDArray[Any], *shape: int) -> NDArray[Any]:
    """A copy, to go on with."""
    return _shaped(array, *shape).copy()


def _squares(upper: NDArray[Any], n: int) -> NDArray[Any]:
    matrix = whole(upper, n)
    if (np.diagonal(matrix) < 0.0).any():
        raise ValueError("a sum of squares is negative")
    return matrix


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**63:
        raise ValueError(f"{value!r} is not a count")
    return value


def _finite(value: Any) -> float:
    if not math.isfinite(value):
        raise ValueError(f"{value!r} is not finite")
    return float(value)


def _positive(value: Any) -> float:
    if not value > 0.0:
        raise ValueError(f"{value!r} is not positive")
    return _finite(value)
