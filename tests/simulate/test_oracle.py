"""The oracle against the joint Gaussian, against sampling, and on the paper's toy example."""

import numpy as np
import pytest

from clients.simulate.environments import Model
from clients.simulate.oracle import Oracle


def joint_gaussian(theta, nu, sigma_f, sigma_n, x):
    """Mean and variance of zᵀθ* given x_S, from the joint Gaussian of (zᵀθ*, x_S), by one arm.

    Neither x̄ nor θ̄ occurs: cov(zᵀθ*, x_S) = (Σ_f θ*)_S.
    """
    seen = np.flatnonzero(~np.isnan(x))
    cross = (sigma_f @ theta)[seen]
    weights = np.linalg.lstsq((sigma_f + sigma_n)[np.ix_(seen, seen)], cross, rcond=None)[0]
    return theta @ nu + weights @ (x - nu)[seen], theta @ sigma_f @ theta - weights @ cross


def drawn(d, seed):
    model = Model.draw(seed, d)
    parts = (model.theta, model.nu, model.f.T @ model.f, model.g.T @ model.g)
    return model, parts, Oracle(*parts)


@pytest.mark.parametrize(("d", "p"), [(1, 0.5), (2, 0.7), (5, 0.3), (12, 0.9), (12, 0.1)])
def test_value_and_variance_are_those_of_the_joint_gaussian(d, p):
    model, parts, oracle = drawn(d, seed=d)
    rng = np.random.default_rng(d)
    x = model.views(rng, model.features(rng, 20, 7), np.full(d, p))
    value, variance = oracle.value(x), oracle.variance(np.isnan(x))
    assert value.shape == variance.shape == (20, 7)
    for place in np.ndindex(20, 7):
        mean, spread = joint_gaussian(*parts, x[place])
        assert value[place] == pytest.approx(mean, abs=1e-9)
        assert variance[place] == pytest.approx(spread, abs=1e-9)


def test_value_is_the_mean_reward_of_like_views():
    """Monte Carlo: among many arms whose views fall into one small cell, the mean of zᵀθ*."""
    model, _, oracle = drawn(2, seed=4)
    rng = np.random.default_rng(4)
    z = model.features(rng, 1, 500_000)[0]
    x = z + rng.standard_normal(z.shape) @ model.g
    x[:, 1] = np.nan
    for centre in (model.nu[0] - 1.0, model.nu[0], model.nu[0] + 1.0):
        cell = np.abs(x[:, 0] - centre) < 0.05
        worth = z[cell] @ model.theta
        error = 5 * worth.std() / np.sqrt(cell.sum())
        assert oracle.value(x[cell]).mean() == pytest.approx(worth.mean(), abs=error)
        spread = oracle.variance(np.isnan(x[cell]))[0]
        assert worth.var() == pytest.approx(spread, rel=5 * np.sqrt(2 / cell.sum()) + 0.01)


def test_completion_keeps_what_is_seen_and_gives_the_mean_where_nothing_is():
    _, (_, nu, _, _), oracle = drawn(4, seed=9)
    full = np.array([[1.0, -2.0, 0.5, 3.0]])
    assert np.array_equal(oracle.complete(full), full)
    assert oracle.complete(np.full((1, 4), np.nan))[0] == pytest.approx(nu)
    half = np.array([[1.0, np.nan, 0.5, np.nan]])
    assert oracle.complete(half)[0, [0, 2]].tolist() == [1.0, 0.5]
    assert np.isnan(half).sum() == 2  # the caller's array is left as it was


def test_arms_that_miss_different_features_do_not_disturb_each_other():
    model, _, oracle = drawn(6, seed=2)
    rng = np.random.default_rng(2)
    x = model.views(rng, model.features(rng, 1, 200), np.full(6, 0.5))[0]
    alone = np.concatenate([oracle.value(row[None]) for row in x])
    assert oracle.value(x) == pytest.approx(alone, abs=1e-12)


def test_toy_example_of_the_paper_the_oracle_picks_arm_2():
    """fig:toy: features on the first axis, noise on the second; θ* points at arm 1."""
    r = 1 / np.sqrt(2)
    theta = np.array([r, r])
    x = np.array([[r, r], [2 * r, -2 * r]])
    assert x @ theta == pytest.approx([1.0, 0.0])  # taken at face value, arm 1
    value = Oracle(theta, np.zeros(2), np.diag([1.0, 0.0]), np.diag([0.0, 1.0])).value(x)
    assert value == pytest.approx([0.5, 1.0])
    assert value.argmax() == 1
