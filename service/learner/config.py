"""One learner's configuration: immutable, checked when made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, get_args

from .errors import BadInput

PolicyName = Literal["clbbf", "e-clbbf", "oful", "thompson", "random"]
Preset = Literal["practical", "paper"]
Missingness = Literal["per_feature", "uniform"]

MAX_DIMENSION = 1_024


@dataclass(frozen=True, slots=True)
class Constants:
    """The paper's C₂, C₄, C₅, C₆ (eq. conf and the line above it). Preset `paper` only."""

    c2: float = 1.0
    c4: float = 1.0
    c5: float = 1.0
    c6: float = 1.0


@dataclass(frozen=True, slots=True)
class LearnerConfig:
    """What a learner is told; what it learns is elsewhere.

    >>> LearnerConfig(dimension=3).policy
    'clbbf'
    """

    dimension: int
    policy: PolicyName = "clbbf"
    preset: Preset = "practical"
    missingness: Missingness = "per_feature"
    horizon: int | None = None  # T; None: the doubling trick
    constants: Constants = field(default_factory=Constants)
    ridge: float | None = None  # λ; None: the preset's
    width: float | None = None  # multiplies β; None: the preset's
    alpha: float = 0.5  # Algorithm 2's lower bound on p
    active_set: float | None = None  # c of the active set; None: all arms
    epsilon: float = 0.0
    seed: int = 0
    history_limit: int = 131_072  # rows a refresh completes anew

    def __post_init__(self) -> None:
        _whole(self.dimension, "dimension", 1, MAX_DIMENSION)
        _one_of(self.policy, "policy", get_args(PolicyName))
        _one_of(self.preset, "preset", get_args(Preset))
        _one_of(self.missingness, "missingness", get_args(Missingness))
        if self.horizon is not None:
            _whole(self.horizon, "horizon", 1, 2**53)
        if not isinstance(self.constants, Constants):
            raise BadInput("constants", "must be an object")
        for name in ("c2", "c4", "c5", "c6"):
            _number(getattr(self.constants, name), f"constants.{name}", 0.0, 1e100)
        # λ = C₄ d ln(KT) is what makes V invertible before the first reward.
        if self.constants.c4 == 0.0 and self.ridge is None:
            raise BadInput("constants.c4", "must be above 0 unless ridge is set")
        if self.ridge is not None:
            _number(self.ridge, "ridge", 1e-9, 1e100)
        if self.width is not None:
            _number(self.width, "width", 0.0, 1e100)
        _number(self.alpha, "alpha", 1e-3, 1.0)
        if self.active_set is not None:
            _number(self.active_set, "active_set", 1e-9, 1e100)
        _number(self.epsilon, "epsilon", 0.0, 1.0)
        _whole(self.seed, "seed", 0, 2**64 - 1)
        _whole(self.history_limit, "history_limit", 0, 2**31)

    @property
    def uniform_missingness(self) -> bool:
        """The paper knows one missing rate for all features; so does its preset."""
        return self.preset == "paper" or self.missingness == "uniform"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> LearnerConfig:
        known = {f.name for f in fields(cls)}
        for name in values:
            if name not in known:
                raise BadInput(str(name), "is not a setting of a learner")
        if "dimension" not in values:
            raise BadInput("dimension", "is required")
        given = dict(values)
        constants = given.get("constants")
        if isinstance(constants, Mapping):
            for name in constants:
                if name not in ("c2", "c4", "c5", "c6"):
                    raise BadInput(f"constants.{name}", "is not a constant of the paper")
            given["constants"] = Constants(**constants)
        return cls(**given)


def _whole(value: object, name: str, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadInput(name, "must be a whole number")
    if not low <= value <= high:
        raise BadInput(name, f"must be from {low:,} to {high:,}")


def _number(value: object, name: str, low: float, high: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadInput(name, "must be a number")
    if not low <= value <= high:  # false for NaN; exact for any int
        raise BadInput(name, f"must be from {low:g} to {high:g}")


def _one_of(value: object, name: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise BadInput(name, f"must be one of {', '.join(allowed)}")
