"""From moments to p̂, ν̂, Σ̂, Ω̂: the formulas, what they converge to, and the guard."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.learner import Arms, Moments
from service.learner.estimate import EIGENVALUE_FLOOR, exact, guarded, per_feature, uniform
from tests.learner.naive import estimated


def moments_of(x, m=None):
    return Moments.of(Arms.of(x, m))


def gaussian(seed, d):
    """A mean and a covariance with real correlations."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(d, d))
    return rng.normal(size=d), a @ a.T / d + 0.3 * np.eye(d)


def masked_sample(seed, nu, sigma, rates, n):
    rng = np.random.default_rng(seed)
    x = rng.multivariate_normal(nu, sigma, size=n)
    return x, rng.random(x.shape) < rates


@settings(max_examples=60, deadline=None)
@given(d=st.integers(1, 8), n=st.integers(1, 30), p=st.floats(0, 1), seed=st.integers(0, 2**32))
def test_uniform_is_the_papers_formula(d, n, p, seed):
    rng = np.random.default_rng(seed)
    x, m = rng.normal(size=(n, d)), rng.random((n, d)) < p
    x0 = np.where(m, x, 0.0)
    p_hat, nu, sigma = uniform(moments_of(x, m))
    expected = estimated(x0.sum(0), x0.T @ x0, int(m.sum()), n, d)
    for mine, theirs in zip((p_hat, nu, sigma), expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(d=st.integers(1, 8), n=st.integers(1, 30), p=st.floats(0, 1), seed=st.integers(0, 2**32))
def test_per_feature_is_every_pair_over_the_rows_that_saw_it(d, n, p, seed):
    rng = np.random.default_rng(seed)
    x, m = rng.normal(size=(n, d)), rng.random((n, d)) < p
    p_hat, nu, sigma = per_feature(moments_of(x, m))
    assert p_hat == max(1, m.sum()) / (n * d)
    for i in range(d):
        seen = [x[r, i] for r in range(n) if m[r, i]]
        assert nu[i] == pytest.approx(np.mean(seen) if seen else 0.0, abs=1e-12)
        for j in range(d):
            both = [x[r, i] * x[r, j] for r in range(n) if m[r, i] and m[r, j]]
            expected = np.mean(both) - nu[i] * nu[j] if both else 0.0
            assert sigma[i, j] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("form", [uniform, per_feature])
def test_both_forms_find_the_distribution_where_all_features_are_missing_alike(form):
    nu, sigma = gaussian(1, 4)
    x, m = masked_sample(2, nu, sigma, 0.6, 200_000)
    p_hat, nu_hat, sigma_hat = form(moments_of(x, m))
    # Standard errors here are about 0.005; five of them.
    assert p_hat == pytest.approx(0.6, abs=0.003)
    np.testing.assert_allclose(nu_hat, nu, atol=0.03)
    np.testing.assert_allclose(sigma_hat, sigma, atol=0.06)


def test_without_holes_both_forms_are_the_same_and_the_ordinary_covariance():
    x = np.random.default_rng(4).normal(size=(50, 3)) @ np.diag([1.0, 2.0, 3.0]) + 1.0
    for form in (uniform, per_feature):
        _, nu, sigma = form(moments_of(x))
        np.testing.assert_allclose(nu, x.mean(0))
        np.testing.assert_allclose(sigma, np.cov(x.T, bias=True), atol=1e-12)


def test_where_features_are_missing_differently_only_per_feature_finds_the_distribution():
    nu, sigma = gaussian(5, 4)
    nu = np.sign(nu) * (1.0 + np.abs(nu))
    rates = np.array([0.3, 0.5, 0.8, 1.0])
    x, m = masked_sample(6, nu, sigma, rates, 200_000)
    _, nu_hat, sigma_hat = per_feature(moments_of(x, m))
    np.testing.assert_allclose(nu_hat, nu, atol=0.03)
    np.testing.assert_allclose(sigma_hat, sigma, atol=0.08)
    _, nu_hat, sigma_hat = uniform(moments_of(x, m))
    # By its formula the uniform form tends to ν_j p_j / p̄: far off wherever p_j ≠ p̄.
    np.testing.assert_allclose(nu_hat, nu * rates / rates.mean(), atol=0.03)
    assert np.abs(nu_hat - nu).max() > 0.3
    assert np.abs(sigma_hat - sigma).max() > 0.3


def test_per_feature_is_centred_on_the_truth_even_from_few_rows():
    """Mean over 4,000 samples of 15 rows: ν̂ has no bias; Σ̂ that of −ν̂ν̂ᵀ, which is O(1/N)."""
    nu, sigma = gaussian(7, 3)
    rates = np.array([0.5, 0.7, 1.0])
    x, m = masked_sample(8, nu, sigma, rates, 4_000 * 15)
    estimates = []
    for i in range(0, len(x), 15):
        sample = slice(i, i + 15)
        if m[sample].any(axis=0).all():
            estimates.append(per_feature(moments_of(x[sample], m[sample]))[1])
    error = np.mean(estimates, axis=0) - nu
    spread = np.std(estimates, axis=0) / np.sqrt(len(estimates))
    assert (np.abs(error) < 4.5 * spread).all()


# The guard ------------------------------------------------------------------------------------


def assert_usable(estimate, d):
    assert estimate.sigma.shape == estimate.omega.shape == (d, d)
    assert np.isfinite(estimate.nu).all()
    # On the scale of correlations, so that features of very different size are judged alike.
    scale = np.sqrt(np.diagonal(estimate.sigma))
    correlation = estimate.sigma / scale / scale[:, None]
    assert np.linalg.eigvalsh(correlation).min() > 0.5 * EIGENVALUE_FLOOR / d
    inverse = estimate.omega * scale * scale[:, None]
    np.testing.assert_allclose(inverse @ correlation, np.eye(d), atol=1e-9)
    np.testing.assert_array_equal(estimate.sigma, estimate.sigma.T)
    np.testing.assert_array_equal(estimate.omega, estimate.omega.T)


@settings(max_examples=120, deadline=None)
@given(
    d=st.integers(1, 10),
    n=st.integers(1, 25),
    p=st.floats(0, 1),
    alike=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_whatever_came_in_the_guarded_covariance_has_its_inverse_beside_it(d, n, p, alike, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + 2.0
    moments = moments_of(x, rng.random((n, d)) < p)
    assert_usable(guarded(moments, uniform_missingness=alike), d)


def test_pairs_seen_in_different_rows_can_contradict_each_other_and_are_reconciled():
    """ρ₁₂ = ρ₂₃ = 1 and ρ₁₃ = −1: no covariance has these, and moments may."""
    rng = np.random.default_rng(9)
    a = rng.normal(size=400)
    hole = np.full(400, np.nan)
    x = np.concatenate(
        [np.c_[a, a, hole], np.c_[hole, a, a], np.c_[a, hole, -a]]  # one contradiction a third
    )
    moments = moments_of(x)
    _, _, raw = per_feature(moments)
    assert np.linalg.eigvalsh(raw).min() < -0.5
    assert_usable(guarded(moments, uniform_missingness=False), 3)


@pytest.mark.parametrize("alike", [False, True])
def test_degenerate_samples_are_usable(alike):
    rng = np.random.default_rng(10)
    column = rng.normal(size=(30, 1))
    samples = {
        "one row": np.array([[1.0, 2.0]]),
        "one row, one feature": np.array([[3.0]]),
        "one row, nothing seen": np.array([[np.nan, np.nan]]),
        "constants": np.tile([1e9, -3.0, 0.0], (20, 1)),
        "a constant beside a feature": np.c_[column, np.full(30, 7.0)],
        "never observed": np.c_[column, np.full(30, np.nan)],
        "duplicates": np.repeat(column, 4, axis=1),
        "opposites": np.c_[column, -column],
        "a sum of others": np.c_[column, column[::-1], column + column[::-1]],
        "all scales": np.c_[column * 1e9, column[::-1] * 1e-9, column**2],
        "far from zero": column + 1e5,
        "zeros": np.zeros((5, 3)),
    }
    for name, x in samples.items():
        estimate = guarded(moments_of(x), uniform_missingness=alike)
        assert np.isfinite(estimate.sigma).all(), name
        assert_usable(estimate, x.shape[1])


def test_a_constant_or_unseen_feature_tells_nothing_of_the_others():
    column = np.random.default_rng(11).normal(size=(40, 2))
    x = np.c_[column, np.full(40, 7.0), np.full(40, np.nan)]
    estimate = guarded(moments_of(x), uniform_missingness=False)
    assert not estimate.sigma[:2, 2:].any()
    assert estimate.nu[2] == 7.0
    assert estimate.nu[3] == 0.0


@pytest.mark.parametrize("value", [0.1, 1 / 3, -2.7, 1e-8, 123_456.789, 1e9 + 0.3])
def test_a_constant_is_seen_as_one_through_the_rounding_of_its_sums(value):
    column = np.random.default_rng(20).normal(size=(999, 2))
    for rows in (3, 7, 100, 999):
        x = np.c_[column[:rows], np.full(rows, value)]
        estimate = guarded(moments_of(x), uniform_missingness=False)
        assert not estimate.sigma[:2, 2].any()
        assert estimate.nu[2] == pytest.approx(value)


def test_duplicates_predict_each_other_almost_perfectly_once_they_were_seen_often():
    column = np.random.default_rng(12).normal(size=(100_000, 1))
    estimate = guarded(moments_of(np.repeat(column, 2, axis=1)), uniform_missingness=False)
    assert estimate.sigma[0, 1] / estimate.sigma[0, 0] > 0.999


def test_shrinkage_and_floor_vanish_as_rows_come_in():
    nu, sigma = gaussian(13, 5)
    errors = []
    for n in (20, 2_000, 200_000):
        x, m = masked_sample(14, nu, sigma, 0.7, n)
        moments = moments_of(x, m)
        _, _, raw = per_feature(moments)
        errors.append(np.abs(guarded(moments, uniform_missingness=False).sigma - raw).max())
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 1e-4


def test_the_guard_is_indifferent_to_the_unit_of_a_feature():
    nu, sigma = gaussian(15, 4)
    x, m = masked_sample(16, nu, sigma, 0.6, 30)
    unit = np.array([1.0, 2.0**30, 2.0**-30, 8.0])  # exact in doubles
    plain = guarded(moments_of(x, m), uniform_missingness=False)
    scaled = guarded(moments_of(x * unit, m), uniform_missingness=False)
    np.testing.assert_allclose(scaled.nu / unit, plain.nu, rtol=1e-12)
    np.testing.assert_allclose(scaled.sigma / np.outer(unit, unit), plain.sigma, atol=1e-12)
    np.testing.assert_allclose(scaled.omega * np.outer(unit, unit), plain.omega, rtol=1e-7)


# Preset `paper` -------------------------------------------------------------------------------


def test_the_papers_estimate_is_left_as_it_falls_out():
    rng = np.random.default_rng(17)
    moments = moments_of(rng.normal(size=(3, 4)), rng.random((3, 4)) < 0.5)
    estimate = exact(moments)
    _, nu, sigma = uniform(moments)
    np.testing.assert_array_equal(estimate.nu, nu)
    np.testing.assert_array_equal(estimate.sigma, sigma)
    assert np.linalg.eigvalsh(sigma).min() < 0.0
    assert estimate.omega.size == 0


def test_the_papers_estimate_has_a_precision_where_it_is_safe():
    nu, sigma = gaussian(18, 6)
    x, m = masked_sample(19, nu, sigma, 0.8, 5_000)
    estimate = exact(moments_of(x, m))
    np.testing.assert_allclose(estimate.omega @ estimate.sigma, np.eye(6), atol=1e-9)


def test_before_the_first_arm_there_is_still_an_estimate():
    for estimate in (exact(Moments.zero(2)), guarded(Moments.zero(2), uniform_missingness=False)):
        assert np.isfinite(estimate.sigma).all()
        assert not estimate.nu.any()
