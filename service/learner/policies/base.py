"""The one interface every policy is behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ..arms import Floats, Mask
from ..config import LearnerConfig
from ..presets import Round
from ..regression import Regression


@dataclass(slots=True)
class Scoring:
    """Requests that are scored together, and what their arms look like to the model."""

    rounds: list[Round]  # R of them
    starts: list[int]  # R + 1
    z: Floats  # (A, n)  ẑ
    width: Floats  # (A,)  ‖ẑ‖_{V⁻¹}
    active: Mask | None  # (A,)  arms that may be chosen; None: all
    p_hat: float
    model: Regression

    def arms(self, request: int) -> slice:
        return slice(self.starts[request], self.starts[request + 1])

    def allowed(self, request: int) -> NDArray[np.intp]:
        """The arms of a request that may be chosen, by position."""
        arms = self.arms(request)
        if self.active is None:
            return np.arange(arms.stop - arms.start)
        return np.flatnonzero(self.active[arms])


class Policy(Protocol):
    """How arms are looked at, how they are weighed, what is remembered."""

    completes: ClassVar[bool]  # holes are filled by completion; else with 0
    refreshes: ClassVar[bool]  # past choices are kept, and completed anew now and then
    config: LearnerConfig

    def explores(self, this: Round) -> bool:
        """Whether this round is uniform over the arms, whatever the model says."""
        ...

    def learns(self, this: Round) -> bool:
        """Whether the reward of this round goes into the model."""
        ...

    def bonus(self, scoring: Scoring) -> Floats:
        """What is added to every arm's mean, (A,); the largest sum is chosen."""
        ...

    def propensity(self, scoring: Scoring, best: list[int], chosen: list[int]) -> list[float]:
        """With which probability `best`, as far as it is random, comes out as `chosen`."""
        ...


class Optimistic:
    """Shared by the policies that choose argmax ẑᵀθ̂ + β‖ẑ‖_{V⁻¹}: they differ in β."""

    completes: ClassVar[bool] = True
    refreshes: ClassVar[bool] = False

    def __init__(self, config: LearnerConfig) -> None:
        self.config = config

    def explores(self, this: Round) -> bool:
        return this.number == 1

    def learns(self, this: Round) -> bool:
        return True

    def beta(self, this: Round, model: Regression, p_hat: float) -> float:
        raise NotImplementedError

    def bonus(self, scoring: Scoring) -> Floats:
        betas = [self.beta(this, scoring.model, scoring.p_hat) for this in scoring.rounds]
        if len(betas) == 1:
            return betas[0] * scoring.width
        return np.repeat(betas, np.diff(scoring.starts)) * scoring.width

    def propensity(self, scoring: Scoring, best: list[int], chosen: list[int]) -> list[float]:
        return [float(a == b) for a, b in zip(best, chosen, strict=True)]
