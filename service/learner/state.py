"""A whole learner, or its moments alone, as bytes and back: what comes back decides the same."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import codec
from .codec import Kind, half, whole
from .config import LearnerConfig
from .errors import BadInput, BadState
from .estimate import Estimate
from .history import Rows, with_one
from .learner import Learner
from .moments import Moments


def dump(learner: Learner) -> bytes:
    model, history = learner.model, learner.history
    rows = history.rows()
    scalars: dict[str, Any] = {
        "config": learner.config.to_dict(),
        "arms": learner.moments.arms,
        "rounds": learner.moments.rounds,
        "count": model.count,
        "sum_y": model.sum_y,
        "sum_yy": model.sum_yy,
        "ridge": model.ridge,
        "next_refresh": learner.next_refresh,
    }
    arrays = (
        _moment_arrays(learner.moments)
        | {
            "s": half(model.s),
            "b": model.b,
            "factor": half(model.factor),  # as updated, so that what comes back has the same bits
            "theta": model.theta,
            "frozen_s": half(history.frozen_s),
            "frozen_b": history.frozen_b,
            "xbar": rows.z[:, 1:],
            "observed": np.packbits(rows.observed, axis=1),
            "y": rows.y,
        }
    )
    if learner.estimate is not None:
        scalars["estimate"] = [learner.estimate.p_hat, learner.estimate.arms]
        arrays["nu"] = learner.estimate.nu
        arrays["sigma"] = learner.estimate.sigma
        arrays["omega"] = learner.estimate.omega
    scalars["trace_inverse"] = model.trace_inverse
    scalars["fit"] = model.fit
    scalars["since_check"] = model.since_check
    return codec.pack(Kind.LEARNER, scalars, arrays)


def load(blob: bytes) -> Learner:
    scalars, arrays = codec.unpack(Kind.LEARNER, blob)
    try:
        return _restored(scalars, arrays)
    except BadInput as error:
        raise BadState(f"this learner's configuration cannot be used: {error}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise BadState(
            f"this learner lacks a part, or has one of the wrong kind: {error}"
        ) from error


def _restored(scalars: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Learner:
    learner = Learner(LearnerConfig.from_dict(scalars["config"]))
    d = learner.config.dimension
    n = d + 1
    learner.moments = _moments(d, scalars, arrays)
    model = learner.model
    model.s, model.b = whole(arrays["s"], n), _shaped(arrays["b"], n)
    model.factor = np.ascontiguousarray(np.triu(whole(arrays["factor"], n)))
    model.theta = _shaped(arrays["theta"], n)
    model.count, model.ridge = int(scalars["count"]), float(scalars["ridge"])
    model.sum_y, model.sum_yy = float(scalars["sum_y"]), float(scalars["sum_yy"])
    model.trace_inverse = float(scalars["trace_inverse"])
    model.fit = float(scalars["fit"])
    model.since_check = int(scalars["since_check"])
    history = learner.history
    history.frozen_s = whole(arrays["frozen_s"], n)
    history.frozen_b = _shaped(arrays["frozen_b"], n)
    kept = len(arrays["y"])
    bits = _shaped(arrays["observed"], kept, (d + 7) // 8)
    observed = np.unpackbits(bits, axis=1, count=d).astype(np.bool_)
    z = with_one(_shaped(arrays["xbar"], kept, d))
    history.append(Rows(z, observed, _shaped(arrays["y"], kept)))
    learner.next_refresh = int(scalars["next_refresh"])
    if "estimate" in scalars:
        p_hat, arms = scalars["estimate"]
        omega = arrays["omega"]
        if omega.size:
            omega = _shaped(omega, d, d)
        learner.estimate = Estimate(
            float(p_hat), _shaped(arrays["nu"], d), _shaped(arrays["sigma"], d, d), omega, int(arms)
        )
    return learner


def dump_moments(moments: Moments) -> bytes:
    scalars = {"dimension": moments.dimension, "arms": moments.arms, "rounds": moments.rounds}
    return codec.pack(Kind.MOMENTS, scalars, _moment_arrays(moments))


def load_moments(blob: bytes) -> Moments:
    scalars, arrays = codec.unpack(Kind.MOMENTS, blob)
    try:
        return _moments(int(scalars["dimension"]), scalars, arrays)
    except (KeyError, TypeError, ValueError) as error:
        raise BadState(f"these moments lack a part: {error}") from error


def _moment_arrays(moments: Moments) -> dict[str, NDArray[Any]]:
    return {"xi": moments.xi, "z": half(moments.z), "p": half(moments.p)}


def _moments(d: int, scalars: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Moments:
    return Moments(
        _shaped(arrays["xi"], d),
        whole(arrays["z"], d),
        whole(arrays["p"], d),
        int(scalars["arms"]),
        int(scalars["rounds"]),
    )


def _shaped(array: NDArray[Any], *shape: int) -> NDArray[Any]:
    if array.shape != shape:
        raise ValueError(f"an array has shape {array.shape}, not {shape}")
    return array
