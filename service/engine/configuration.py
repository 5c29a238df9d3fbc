"""A learner's configuration as callers give it: what it learns with, and how it is served."""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from service.errors import BadRequest
from service.learner import MAX_MAGNITUDE, BadInput, LearnerConfig

MAX_SECONDS = 366 * 86_400.0
MAX_NAME = 128
_SERVED = ("features", "reward_wait_s", "default_reward", "decision_ttl_s")
_LEARNT = tuple(f.name for f in fields(LearnerConfig))


@dataclass(frozen=True, slots=True)
class Configuration:
    learner: LearnerConfig
    features: tuple[str, ...] | None = None
    reward_wait_s: float | None = None
    default_reward: float | None = None
    decision_ttl_s: float = 86_400.0

    @property
    def decision_ttl_ms(self) -> int:
        return math.ceil(self.decision_ttl_s * 1_000)

    @property
    def reward_wait_ms(self) -> int:
        """0 where no default reward is ever booked."""
        return 0 if self.reward_wait_s is None else max(1, math.ceil(self.reward_wait_s * 1_000))

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Configuration:
        """`dimension` or `features` must be there; everything else has a default."""
        unknown = sorted(set(given) - set(_SERVED) - set(_LEARNT))
        if unknown:
            raise BadRequest(str(unknown[0]), "is not a setting of a learner")
        features = _feature_names(given.get("features"))
        learnt = {name: given[name] for name in _LEARNT if name in given}
        if features is not None:
            if learnt.get("dimension") not in (None, len(features)):
                raise BadRequest(
                    "dimension", f"is {learnt['dimension']}, but there are {len(features)} features"
                )
            learnt["dimension"] = len(features)
        if learnt.get("dimension") is None:
            raise BadRequest("dimension", "is required, or features")
        if learnt.get("constants") is None:
            learnt.pop("constants", None)
        if learnt.get("seed") is None:
            learnt["seed"] = secrets.randbits(53)  # exact in every JSON reader
        if learnt.get("preset") == "paper" and learnt.get("missingness") in (None, "per_feature"):
            learnt["missingness"] = "uniform"  # the paper knows no other
        try:
            learner = LearnerConfig.from_dict(learnt)
        except BadInput as error:
            raise BadRequest(error.field, error.problem) from error
        wait_s = _seconds(given.get("reward_wait_s"), "reward_wait_s", 0.0)
        default = given.get("default_reward")
        if default is not None:
            default = _number(default, "default_reward")
        if (wait_s is None) != (default is None):
            missing = "reward_wait_s" if wait_s is None else "default_reward"
            raise BadRequest(missing, "reward_wait_s and default_reward go together")
        ttl_s = _seconds(given.get("decision_ttl_s", 86_400), "decision_ttl_s", 1e-3)
        if ttl_s is None:
            raise BadRequest("decision_ttl_s", "must be a number of seconds")
        if wait_s is not None and wait_s >= ttl_s:
            raise BadRequest("decision_ttl_s", "must be longer than reward_wait_s")
        return cls(learner, features, wait_s, default, ttl_s)

    def to_dict(self) -> dict[str, Any]:
        """As in the API, every default spelt out."""
        learnt = self.learner.to_dict()
        ordered: dict[str, Any] = {"dimension": learnt.pop("dimension")}
        ordered["features"] = None if self.features is None else list(self.features)
        history_limit = learnt.pop("history_limit")
        ordered |= learnt
        ordered["reward_wait_s"] = self.reward_wait_s
        ordered["default_reward"] = self.default_reward
        ordered["decision_ttl_s"] = self.decision_ttl_s
        ordered["history_limit"] = history_limit
        return ordered

    def to_json(self) -> bytes:
        return json.dumps(self.to_dict(), separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, text: bytes) -> Configuration:
        return cls.from_dict(json.loads(text))


def _feature_names(given: object) -> tuple[str, ...] | None:
    if given is None:
        return None
    if not isinstance(given, list | tuple) or not given:
        raise BadRequest("features", "must be a list of names")
    for position, name in enumerate(given):
        if not isinstance(name, str) or not 1 <= len(name) <= MAX_NAME:
            raise BadRequest(f"features.{position}", f"must be 1 to {MAX_NAME} characters")
        try:
            name.encode()
        except UnicodeEncodeError as error:
            raise BadRequest(f"features.{position}", "must be valid Unicode") from error
    if len(set(given)) != len(given):
        raise BadRequest("features", "must not name a feature twice")
    return tuple(given)


def _number(value: object, name: str) -> float:
    problem = f"must be a number, at most {MAX_MAGNITUDE:g} in size"
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadRequest(name, problem)
    if not abs(value) <= MAX_MAGNITUDE:  # true for NaN
        raise BadRequest(name, problem)
    return float(value)


def _seconds(value: object, name: str, least: float) -> float | None:
    if value is None:
        return None
    seconds = _number(value, name)
    if not least <= seconds <= MAX_SECONDS:
        raise BadRequest(name, f"must be from {least:g} to {MAX_SECONDS:g} seconds")
    return seconds
