"""fig:toy and Theorem noisyGerased: what the Bayesian oracle picks, and that it can be learnt."""

from __future__ import annotations

import numpy as np
import pytest

from service.learner import Learner, LearnerConfig
from tests.learner.naive import completed

ROOT_2 = np.sqrt(2.0)
NU = np.zeros(2)
FEATURES, NOISE = np.diag([1.0, 0.0]), np.diag([0.0, 1.0])  # Σ_f and Σ_n: orthogonal
ARMS = np.array([[1 / ROOT_2, 1 / ROOT_2], [ROOT_2, -ROOT_2]])
THETA = np.array([1 / ROOT_2, 1 / ROOT_2])


def oracle_value(x, m):
    """[1; x̄(ν, Σ_f + Σ_n, x)]ᵀ θ̄ with θ' = (Σ_f + Σ_n)⁻¹ Σ_f θ* (Proposition noisyG)."""
    theta = np.linalg.pinv(FEATURES + NOISE) @ FEATURES @ THETA
    bar = np.concatenate([[NU @ THETA - NU @ theta], theta])
    return np.concatenate([[1.0], completed(NU, FEATURES + NOISE, x, m)]) @ bar


def test_the_toy_example_the_bayesian_oracle_picks_arm_2():
    values = [oracle_value(x, [1, 1]) for x in ARMS]
    assert values == pytest.approx([0.5, 1.0])
    assert int(np.argmax(values)) + 1 == 2
    # Taking what is observed for the truth picks arm 1.
    np.testing.assert_allclose(ARMS @ THETA, [1.0, 0.0], atol=1e-12)


def test_with_the_noisy_axis_missing_the_oracle_picks_the_same():
    values = [oracle_value(np.where([1, 0], x, 0.0), [1, 0]) for x in ARMS]
    assert values == pytest.approx([0.5, 1.0])


def test_with_the_telling_axis_missing_the_oracle_is_left_with_the_mean():
    values = [oracle_value(np.where([0, 1], x, 0.0), [0, 1]) for x in ARMS]
    assert values == pytest.approx([0.0, 0.0])


@pytest.mark.parametrize("policy", ["clbbf", "thompson", "e-clbbf"])
def test_the_learner_comes_to_agree_with_the_oracle(policy):
    """It is told rewards of the hidden features only, and sees the noisy ones, some missing."""
    learner = Learner(LearnerConfig(2, policy=policy, seed=1, alpha=0.9, horizon=1_000))
    rng = np.random.default_rng(2)
    for _ in range(1_000):
        z = rng.normal(size=(5, 2)) * [1.0, 0.0]
        x = z + rng.normal(size=(5, 2)) * [0.0, 1.0]
        choices = learner.select(np.where(rng.random((5, 2)) < 0.9, x, np.nan))
        learner.reward(choices, float(z[choices.index[0]] @ THETA + 0.3 * rng.normal()))
    np.testing.assert_allclose(learner.model.theta, [0.0, 1 / ROOT_2, 0.0], atol=0.1)
    choices = learner.select(ARMS)
    assert int(np.argmax(choices.mean)) + 1 == 2
