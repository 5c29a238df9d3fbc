"""Kernels compiled, or loaded from their cache, before the first request."""

from __future__ import annotations

import numpy as np

from service.learner import Arms, Learner, LearnerConfig, Moments

FEATURES = 5


def warm_up() -> None:
    random = np.random.default_rng(0)
    configs = [
        LearnerConfig(FEATURES),
        LearnerConfig(FEATURES, policy="thompson"),
        LearnerConfig(FEATURES, preset="paper"),
    ]
    for learner in map(Learner, configs):
        for missing in (0.1, 0.9, 0.5):  # solved on the observed side, or on the missing one
            x = random.normal(size=(6, FEATURES))
            x[random.random(x.shape) < missing] = np.nan
            arms = Arms.join([Arms.of(x), Arms.of(x, np.ones(x.shape))])
            learner.preview(arms)
            choices = learner.select_batch(arms)
            learner.reward(choices, 1.0, 0)
            from_log = choices.row(1, 0.0)
            from_log.y.flags.writeable = False  # as it comes out of stored bytes
            learner.learn(from_log)
            learner.moments.subtract(Moments.of(arms))
            learner.moments.add(arms)
