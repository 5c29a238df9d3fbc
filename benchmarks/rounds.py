"""The rounds that speed is measured on: the paper's synthetic features, a tenth of them missing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clients.simulate.environments import ROUNDS, Model, stream
from service.learner import Choices, Learner, LearnerConfig

Floats = NDArray[np.float64]

MISSING = 0.1
SEED = 100


@dataclass(frozen=True, slots=True)
class Rounds:
    x: Floats  # (B, K, d), NaN where missing
    reward: Floats  # (B, K) what each arm would pay

    @property
    def dimension(self) -> int:
        return int(self.x.shape[2])


def draw(count: int, arms: int, dimension: int) -> Rounds:
    model, rng = Model.draw(SEED, dimension), stream(SEED, ROUNDS)
    z = model.features(rng, count, arms)
    x = model.views(rng, z, np.full(dimension, 1.0 - MISSING))
    return Rounds(x, z @ model.theta + rng.standard_normal((count, 1)))


class Ours:
    """A learner as configured by default, on rounds that come round again."""

    def __init__(self, rounds: Rounds) -> None:
        self.x = list(rounds.x)
        self.rewards = rounds.reward.tolist()
        self.learner = Learner(LearnerConfig(rounds.dimension))
        self.choices: Choices | None = None

    def round(self, number: int) -> None:
        choices = self.learner.select(self.x[number])
        self.learner.reward(choices, self.rewards[number][choices.index[0]])

    def select(self, number: int) -> None:
        self.choices = self.learner.select(self.x[number])

    def reward(self, number: int) -> None:
        """For the choice of the last `select`."""
        assert self.choices is not None
        self.learner.reward(self.choices, self.rewards[number][self.choices.index[0]])

    def play(self, count: int) -> None:
        for number in range(count):
            self.round(number % len(self.x))
