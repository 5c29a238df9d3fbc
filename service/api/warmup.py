"""Kernels compiled, or loaded from their cache, before the first request."""

from __future__ import annotations

import numpy as np

from service.learner import Arms, Learner, LearnerConfig


def warm_up() -> None:
    random = np.random.default_rng(0)
    for policy in ("clbbf", "thompson"):
        for preset in ("practical", "paper"):
            learner = Learner(LearnerConfig(dimension=5, policy=policy, preset=preset))
            for missing in (0.1, 0.9, 0.5, 0.5):  # each solves on the smaller side
                x = random.normal(size=(6, 5))
                x[random.random(x.shape) < missing] = np.nan
                learner.preview(Arms.of(x))
                choices = learner.select_batch(
                    Arms.join([Arms.of(x), Arms.of(x, np.ones(x.shape))])
                )
                learner.reward(choices, 1.0, 0)
                learner.reward(choices, 0.0, 1)
                learner.moments.subtract(type(learner.moments).of(Arms.of(x)))
                learner.moments.add(Arms.of(x))
