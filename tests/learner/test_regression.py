"""Ridge regression one reward at a time, against S and b solved anew."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.learner import regression
from service.learner.regression import DRIFT_CHECK_EVERY, DRIFT_TOLERANCE, SMALL, Regression


def rows(rng, m, d, scale=1.0):
    z = np.concatenate([np.ones((m, 1)), scale * rng.normal(size=(m, d))], axis=1)
    return z, z @ rng.normal(size=d + 1) + rng.normal(size=m)


def direct(z, y, ridge):
    v = ridge * np.eye(z.shape[1]) + z.T @ z
    return v, z.T @ y, np.linalg.solve(v, z.T @ y)


def folded(z, y, cuts, ridge=1.0):
    model = Regression.zero(z.shape[1] - 1, ridge)
    for part_z, part_y in zip(np.split(z, cuts), np.split(y, cuts), strict=True):
        model.add(part_z, part_y)
    return model


@settings(max_examples=80, deadline=None)
@given(
    d=st.integers(1, 20),
    m=st.integers(1, 60),
    ridge=st.sampled_from([1e-3, 1.0, 50.0]),
    seed=st.integers(0, 2**32),
    data=st.data(),
)
def test_any_cut_into_batches_gives_the_direct_solution(d, m, ridge, seed, data):
    z, y = rows(np.random.default_rng(seed), m, d)
    cuts = sorted(data.draw(st.sets(st.integers(1, m), max_size=m)))
    model = folded(z, y, cuts, ridge)
    v, b, theta = direct(z, y, ridge)
    np.testing.assert_allclose(model.gram(), v, atol=1e-9)
    np.testing.assert_allclose(model.b, b, atol=1e-9)
    condition = np.linalg.cond(v)
    tolerance = 1e-13 * condition * max(1.0, np.abs(theta).max()) + 1e-11
    np.testing.assert_allclose(model.theta, theta, atol=tolerance)
    np.testing.assert_allclose(model.factor.T @ model.factor, v, atol=1e-9)
    assert model.count == m
    inverse = np.linalg.inv(v)
    assert model.trace_inverse == pytest.approx(np.trace(inverse), rel=1e-9, abs=1e-12 / ridge)
    assert model.effective_dimension() == pytest.approx(np.trace(inverse @ (z.T @ z)), abs=1e-8)
    residual = ((y - z @ theta) ** 2).sum()
    assert model.residual_square() == pytest.approx(residual, abs=1e-9 * (1 + y @ y))
    assert model.sum_y == pytest.approx(y.sum())
    assert model.sum_yy == pytest.approx(y @ y)


@settings(max_examples=60, deadline=None)
@given(d=st.sampled_from([1, 3, 8, 31, 70]), seed=st.integers(0, 2**32), data=st.data())
def test_the_sums_have_the_same_bits_whatever_the_batches(d, seed, data):
    """Everyone who folds the same log holds the same S and b."""
    z, y = rows(np.random.default_rng(seed), 50, d)
    cuts = sorted(data.draw(st.sets(st.integers(1, 50), max_size=50)))
    one_by_one = folded(z, y, range(1, 50))
    other = folded(z, y, cuts)
    np.testing.assert_array_equal(one_by_one.s, other.s)
    np.testing.assert_array_equal(one_by_one.b, other.b)
    assert (one_by_one.count, one_by_one.sum_y, one_by_one.sum_yy) == (
        other.count,
        other.sum_y,
        other.sum_yy,
    )
    np.testing.assert_array_equal(other.s, other.s.T)


def test_a_million_updates_stay_accurate():
    """Rank-one all the way: 4 rows of 17 columns are folded, not factorised anew."""
    rng = np.random.default_rng(1)
    d, chunk, blocks = 16, 4, 250
    model = Regression.zero(d)
    refactorised = 0
    truth = rng.normal(size=d + 1)
    for _ in range(blocks):
        z = np.concatenate([np.ones((4_000, 1)), rng.normal(size=(4_000, d))], axis=1)
        y = z @ truth + rng.normal(size=4_000)
        for i in range(0, 4_000, chunk):
            before = model.factor
            model.add(z[i : i + chunk], y[i : i + chunk])
            refactorised += model.factor is not before
    assert model.count == 1_000_000
    v = model.gram()
    np.testing.assert_allclose(model.theta, np.linalg.solve(v, model.b), rtol=1e-9)
    np.testing.assert_allclose(model.factor.T @ model.factor, v, rtol=0, atol=1e-9 * v.max())
    trace = np.trace(np.linalg.inv(v))
    assert model.trace_inverse == pytest.approx(trace, abs=1e-9)
    assert model.effective_dimension() == pytest.approx(d + 1 - trace, abs=1e-9)
    probe, _ = rows(rng, 5, d)
    mean, width = model.score(probe)
    np.testing.assert_allclose(mean, probe @ np.linalg.solve(v, model.b), rtol=1e-8)
    expected = np.sqrt(np.einsum("ij,ji->i", probe, np.linalg.solve(v, probe.T)))
    np.testing.assert_allclose(width, expected, rtol=1e-8)
    np.testing.assert_allclose(model.theta, truth, atol=0.006)  # six standard errors
    assert refactorised < 100  # accurate because the updates are, not because they were redone


def corrupt_factor(model):
    model.factor[2, 3] += 0.5


def corrupt_theta(model):
    model.theta[1] += 1e-6


def nan_in_theta(model):
    model.theta[1] = np.nan


def nan_in_factor(model):
    model.factor[0, 0] = np.nan


@pytest.mark.parametrize("corrupt", [corrupt_factor, corrupt_theta, nan_in_theta, nan_in_factor])
def test_drift_is_noticed_within_the_next_check_and_mended(corrupt):
    rng = np.random.default_rng(2)
    d = 12
    z, y = rows(rng, 200, d)
    model = folded(z, y, range(1, 200))
    corrupt(model)
    more_z, more_y = rows(rng, DRIFT_CHECK_EVERY, d)
    for i in range(DRIFT_CHECK_EVERY):
        model.add(more_z[i : i + 1], more_y[i : i + 1])
    _, _, theta = direct(np.concatenate([z, more_z]), np.concatenate([y, more_y]), 1.0)
    np.testing.assert_allclose(model.theta, theta, rtol=1e-9)
    np.testing.assert_allclose(model.factor.T @ model.factor, model.gram(), atol=1e-9)
    assert model.drift() < DRIFT_TOLERANCE


def test_a_sound_model_does_not_drift():
    z, y = rows(np.random.default_rng(3), 2_000, 9)
    assert folded(z, y, range(1, 2_000)).drift() < 0.01 * DRIFT_TOLERANCE


@pytest.mark.parametrize("d", [2, 9, SMALL + 5])
def test_the_ridge_can_move_at_any_time(d):
    rng = np.random.default_rng(4)
    z, y = rows(rng, 40, d)
    model = Regression.zero(d, ridge=3.0)
    for i, ridge in enumerate([3.0, 0.1, 100.0, 7.5]):
        model.set_ridge(ridge)
        model.add(z[10 * i : 10 * i + 1], y[10 * i : 10 * i + 1])
        model.add(z[10 * i + 1 : 10 * i + 10], y[10 * i + 1 : 10 * i + 10])
        seen = slice(0, 10 * i + 10)
        v, _, theta = direct(z[seen], y[seen], ridge)
        np.testing.assert_allclose(model.gram(), v, atol=1e-10)
        np.testing.assert_allclose(model.theta, theta, rtol=1e-8, atol=1e-10)
        assert model.trace_inverse == pytest.approx(np.trace(np.linalg.inv(v)))


def test_the_same_ridge_again_costs_nothing():
    model = Regression.zero(3)
    factor = model.factor
    model.set_ridge(1.0)
    assert model.factor is factor


@pytest.mark.parametrize("d", [1, 7, SMALL - 1, SMALL, SMALL + 40])
def test_scores_are_the_mean_and_the_norm_on_both_paths(d):
    rng = np.random.default_rng(d)
    z, y = rows(rng, 30, d)
    model = folded(z, y, [])
    probe, _ = rows(rng, 25, d)
    before = probe.copy()
    mean, width = model.score(probe)
    v, _, theta = direct(z, y, 1.0)
    np.testing.assert_allclose(mean, probe @ theta, rtol=1e-9, atol=1e-10)
    norms = np.sqrt(np.einsum("ij,ji->i", probe, np.linalg.solve(v, probe.T)))
    np.testing.assert_allclose(width, norms, rtol=1e-9)
    np.testing.assert_array_equal(probe, before)


def test_before_any_reward_the_norm_is_that_of_the_ridge_alone():
    z, _ = rows(np.random.default_rng(5), 4, 3)
    mean, width = Regression.zero(3, ridge=4.0).score(z)
    assert not mean.any()
    np.testing.assert_allclose(width, np.linalg.norm(z, axis=1) / 2.0)


@pytest.mark.parametrize("scale", [1e6, 1e9, 1e12, 1e-9])
@pytest.mark.parametrize("d", [3, 12])
def test_features_of_any_size_do_not_break_it(scale, d):
    """The ridge of 1 vanishes in rounding beside 1e18 · rows; predictions must not."""
    rng = np.random.default_rng(6)
    z, y = rows(rng, 400, d, scale)
    y = z[:, 1:] @ np.ones(d) / scale + 0.1 * rng.normal(size=400)
    model = folded(z, y, range(1, 400))
    assert np.isfinite(model.theta).all()
    mean, width = model.score(z)
    assert np.isfinite(width).all()
    assert (width >= 0.0).all()
    v, _, _ = direct(z, y, 1.0)
    unit = np.sqrt(np.diagonal(v))
    theta = np.linalg.solve(v / unit / unit[:, None], z.T @ y / unit) / unit
    np.testing.assert_allclose(mean, z @ theta, atol=1e-5)
    assert 0.0 <= model.effective_dimension() <= d + 1


@pytest.mark.parametrize("scale", [1e9, 1e12])
def test_the_same_huge_row_again_and_again_does_not_break_it(scale):
    """S of rank one, far above the ridge: V is not positive definite to rounding."""
    model = Regression.zero(5)
    z = np.concatenate([[[1.0]], np.full((1, 5), scale)], axis=1)
    for _ in range(100):
        model.add(z, np.array([2.0]))
    mean, width = model.score(z)
    assert mean[0] == pytest.approx(2.0, rel=1e-3)
    assert width[0] == pytest.approx(0.1, rel=1e-2)
    model.factorise()
    v = model.gram()  # lifted by no more than rounding already costs
    np.testing.assert_allclose(model.factor.T @ model.factor, v, rtol=0, atol=1e-13 * v.max())


def test_constant_rewards_leave_no_residual_and_none_below_zero():
    model = Regression.zero(5, ridge=1e-9)
    z, _ = rows(np.random.default_rng(7), 300, 5)
    for i in range(300):
        model.add(z[i : i + 1], np.array([1e6]))
    assert 0.0 <= model.residual_square() < 1e-3 * 300


def test_no_rows_change_nothing():
    model = folded(*rows(np.random.default_rng(8), 20, 6), [])
    before = model.theta.copy()
    model.add(np.empty((0, 7)), np.empty(0))
    np.testing.assert_array_equal(model.theta, before)
    assert model.count == 20


def test_replace_takes_new_sums_for_the_same_rewards():
    rng = np.random.default_rng(9)
    z, y = rows(rng, 30, 4)
    model = folded(z, y, [])
    again = z.copy()
    again[:, 2] += 1.0
    s, b = np.zeros((5, 5)), np.zeros(5)
    regression.accumulate(again, y, s, b)
    model.replace(s, b)
    _, _, theta = direct(again, y, 1.0)
    np.testing.assert_allclose(model.theta, theta, rtol=1e-9)
    assert model.count == 30
    residual = ((y - again @ theta) ** 2).sum()
    assert model.residual_square() == pytest.approx(residual)


def test_the_kernels_release_the_gil():
    for kernel in (regression.fold_rows, regression.score_rows, regression.accumulate):
        assert kernel.targetoptions["nogil"]
