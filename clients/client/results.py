"""What the service answers, typed. Fields that a newer service adds are passed over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Worth:
    """What an arm was worth, and its features as completed."""

    id: str
    score: float | None
    mean: float | None
    bonus: float | None
    observed: list[int]
    features: list[float | None]


@dataclass(frozen=True, slots=True)
class Selected:
    event_id: str | None  # None in a dry run
    learner: str
    arm: str
    index: int
    round: int
    probability: float
    model_version: int
    degraded: bool
    arms: list[Worth] | None = None  # with explain or dry_run


@dataclass(frozen=True, slots=True)
class Rewarded:
    event_id: str
    status: Literal["recorded", "duplicate", "late"]
    reward: float  # the one that stands


@dataclass(frozen=True, slots=True)
class Learner:
    """A configuration, every default spelt out."""

    name: str
    dimension: int
    features: list[str] | None
    policy: str
    preset: str
    missingness: str
    horizon: int | None
    constants: dict[str, float]
    ridge: float | None
    width: float | None
    alpha: float
    active_set: float | None
    epsilon: float
    seed: int
    reward_wait_s: float | None
    default_reward: float | None
    decision_ttl_s: float
    history_limit: int


@dataclass(frozen=True, slots=True)
class Statistics(Learner):
    """A configuration, and what became of it."""

    rounds: int
    rewards: int
    pending: int
    mean_reward: float | None
    arms: int
    observed_rate: list[float]
    p_hat: float | None
    defaults: int
    duplicates: int
    late: int
    bytes_held: int
    workers: int
    staleness_s: float
    degraded: bool


@dataclass(frozen=True, slots=True)
class Model:
    """The estimate and the model; `theta` and `gram` have the intercept first."""

    nu: list[float] | None
    sigma: list[list[float]] | None
    p_hat: float | None
    theta: list[float]
    gram: list[list[float]]
    ridge: float
    counts: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Decision:
    event_id: str
    arm: str
    index: int
    arms: int
    round: int
    probability: float
    model_version: int
    degraded: bool
    reward: float | None
    status: Literal["pending", "rewarded", "defaulted"]
