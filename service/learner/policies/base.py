"""The one interface every policy is behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

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


class Policy:
    """How arms are looked at, how they are weighed, what is remembered.

    The arm with the largest mean + bonus is chosen. As it stands here a policy is optimistic,
    bonus = β‖ẑ‖_{V⁻¹}, and those that are differ in β.
    """

    completes: ClassVar[bool] = True  # holes are filled by completion; else with 0
    refreshes: ClassVar[bool] = False  # past choices are kept, and completed anew now and then
    deterministic: ClassVar[bool] = True  # but for rounds that explore

    def __init__(self, config: LearnerConfig) -> None:
        self.config = config

    def explores(self, this: Round) -> bool:
        """Whether this round is uniform over the arms, whatever the model says."""
        return this.number == 1

    def learns(self, this: Round) -> bool:
        """Whether the reward of this round goes into the model."""
        return True

    def beta(self, this: Round, model: Regression, p_hat: float) -> float:
        """β; 0 where the bonus is of another kind."""
        return 0.0

    def bonus(self, scoring: Scoring, width: Floats) -> Floats:
        """What is added to every arm's mean, (A,), given ‖ẑ‖_{V⁻¹}, (A,)."""
        betas = [self.beta(this, scoring.model, scoring.p_hat) for this in scoring.rounds]
        return np.repeat(betas, np.diff(scoring.starts)) * width

    def propensity(self, scoring: Scoring, best: list[int], chosen: list[int]) -> list[float]:
        """With which probability `best`, as far as it is random, comes out as `chosen`."""
        return [float(a == b) for a, b in zip(best, chosen, strict=True)]
