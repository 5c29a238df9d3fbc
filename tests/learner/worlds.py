"""Requests to play against, for the tests of the learner."""

from __future__ import annotations

import numpy as np


class World:
    """Correlated features with holes, and rewards that depend on them linearly."""

    def __init__(self, d, seed=0, p=0.7):
        self.rng = np.random.default_rng(seed)
        self.d, self.p = d, p
        self.mix = self.rng.normal(size=(d, d))
        self.theta = self.rng.normal(size=d) / np.sqrt(d)

    def arms(self, k=None):
        """(K, d) with NaN where missing; K from 1 to 8 unless given."""
        k = int(self.rng.integers(1, 9)) if k is None else k
        self.full = self.rng.normal(size=(k, self.d)) @ self.mix + 0.5
        return np.where(self.rng.random((k, self.d)) < self.p, self.full, np.nan)

    def reward(self, index):
        return float(self.full[index] @ self.theta + 0.3 * self.rng.normal())


def train(learner, rounds, seed=0, k=None):
    world = World(learner.config.dimension, seed)
    for _ in range(rounds):
        choices = learner.select(world.arms(k))
        learner.reward(choices, world.reward(choices.index[0]))
    return world
