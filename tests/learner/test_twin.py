"""The fast learner against the paper's loops: the same arms, and the same numbers to 1e-9."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.learner import Constants, Learner, LearnerConfig, randomness
from tests.learner.naive import Naive


def play(policy, d, p, rounds, seed, *, horizon=None, many_k=True, constants=None, most_arms=12):
    """Both learners on the same rounds; every number compared in every round."""
    rng = np.random.default_rng(seed)
    constants = constants or {}
    config = LearnerConfig(
        dimension=d,
        policy=policy,
        preset="paper",
        horizon=horizon,
        seed=seed,
        constants=Constants(**constants),
    )
    fast = Learner(config)
    slow = Naive(policy, d, horizon=horizon, **constants)
    mix = rng.normal(size=(d, d))
    truth = rng.normal(size=d)
    k = int(rng.integers(1, most_arms + 1))
    for _ in range(rounds):
        if many_k:
            k = int(rng.integers(1, most_arms + 1))
        full = rng.normal(size=(k, d)) @ mix + 0.5
        m = rng.random((k, d)) < p
        x = np.where(m, full, 0.0)

        choices = fast.select(np.where(m, full, np.nan))

        def uniform_choice(arms, t=slow.t + 1):
            return int(randomness.of_round(seed, t).random(2)[1] * arms)

        arm = slow.choose(x, m, uniform_choice)
        assert choices.index[0] == arm
        if policy != "oful":
            close(fast.estimate.p_hat, slow.p)
            close(fast.estimate.nu, slow.nu)
            close(fast.estimate.sigma, slow.sigma)
        close(choices.z[:, 1:], np.array(slow.xbar))
        close(fast.model.gram(), slow.v)
        close(fast.model.b, slow.b)
        # Early Σ̂ is indefinite and may throw x̄ far out; then V itself limits the digits of θ̂.
        close(fast.model.theta, slow.theta, digits_lost=np.linalg.cond(slow.v) / 1e6)
        close(choices.mean + choices.bonus, np.array(slow.scores))
        y = float(full[arm] @ truth + rng.normal())
        fast.reward(choices, y)
        slow.observe_reward(y)
    return fast, slow


def close(fast, slow, digits_lost=1.0):
    scale = max(1.0, float(np.abs(slow).max())) * max(1.0, digits_lost)
    np.testing.assert_allclose(fast, slow, rtol=0, atol=1e-9 * scale)


@pytest.mark.parametrize("policy", ["clbbf", "e-clbbf", "oful"])
def test_hundreds_of_rounds_choose_the_same_arms(policy):
    play(policy, d=4, p=0.7, rounds=400, seed=7)


def test_algorithm_2_leaves_its_exploration_and_still_agrees():
    fast, slow = play("e-clbbf", d=2, p=0.8, rounds=420, seed=3, horizon=50, most_arms=20)
    assert 0 < len(slow.past) == fast.model.count


@settings(max_examples=60, deadline=None)
@given(
    policy=st.sampled_from(["clbbf", "oful", "e-clbbf"]),
    d=st.integers(1, 9),
    p=st.floats(0.3, 1.0),
    seed=st.integers(0, 2**32),
    horizon=st.sampled_from([None, 40, 1000]),
    constants=st.sampled_from([{}, {"c6": 0.0}, {"c2": 0.1, "c4": 0.01, "c5": 0.1, "c6": 0.001}]),
)
def test_any_dimension_arms_and_missing_rate(policy, d, p, seed, horizon, constants):
    play(policy, d, p, rounds=35, seed=seed, horizon=horizon, constants=constants)


def test_the_bound_on_x_is_never_below_the_papers_sum():
    _, slow = play("clbbf", d=5, p=0.6, rounds=120, seed=11)
    rated = [row for row in slow.past if row.y is not None]
    slow.past = rated
    v = slow.lam * np.eye(6) + sum(np.outer(row.zhat, row.zhat) for row in rated)
    slow.v = v
    inverse = np.linalg.inv(v)
    exact, bound = slow.x_exactly(inverse), slow.x_bound(inverse)
    assert exact <= bound <= 2.0 * exact
