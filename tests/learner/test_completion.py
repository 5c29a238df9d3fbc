"""Every hole against its conditional expectation, on both sides of the solve."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.learner import completion
from service.learner.completion import complete, complete_rows
from service.learner.estimate import NO_PRECISION, Estimate
from tests.learner.naive import completed


def covariance(rng, d):
    a = rng.normal(size=(d, d))
    return a @ a.T / d + 0.2 * np.eye(d)


def filled(x, m, nu, sigma, omega=NO_PRECISION):
    """x̄ by the kernel, and how many entries it completed."""
    z = np.concatenate([np.ones((len(x), 1)), np.where(m, x, 1e300)], axis=1)
    count = complete_rows(z, m, nu, sigma, omega)
    assert (z[:, 0] == 1.0).all()
    return z[:, 1:], count


def by_loops(x, m, nu, sigma):
    return np.array([completed(nu, sigma, x[r], m[r]) for r in range(len(x))])


@settings(max_examples=100, deadline=None)
@given(d=st.integers(1, 24), p=st.floats(0, 1), seed=st.integers(0, 2**32))
def test_both_sides_give_the_conditional_expectation(d, p, seed):
    """With a precision the missing side is solved where it is smaller; without one, never."""
    rng = np.random.default_rng(seed)
    nu, sigma = rng.normal(size=d), covariance(rng, d)
    x, m = rng.normal(size=(6, d)), rng.random((6, d)) < p
    expected = by_loops(x, m, nu, sigma)
    for omega in (NO_PRECISION, np.linalg.inv(sigma)):
        mine, count = filled(x, m, nu, sigma, omega)
        np.testing.assert_allclose(mine, expected, rtol=1e-8, atol=1e-9)
        assert count == (~m).sum()
        np.testing.assert_array_equal(mine[m], x[m])


@pytest.mark.parametrize("missing", [0, 1, 2, 3, 4, 5, 6, 7])
def test_every_number_of_holes_is_right_on_either_side_of_one_half(missing):
    rng = np.random.default_rng(missing)
    nu, sigma = rng.normal(size=7), covariance(rng, 7)
    x, m = rng.normal(size=(20, 7)), np.ones((20, 7), dtype=bool)
    for row in m:
        row[rng.permutation(7)[:missing]] = False
    mine, count = filled(x, m, nu, sigma, np.linalg.inv(sigma))
    np.testing.assert_allclose(mine, by_loops(x, m, nu, sigma), atol=1e-9)
    assert count == 20 * missing


def test_the_smaller_side_is_the_one_that_is_solved():
    """A wrong Ω shows wherever it is used, and a wrong Σ likewise."""
    rng = np.random.default_rng(1)
    nu, sigma = np.zeros(6), covariance(rng, 6)
    omega = np.linalg.inv(sigma)
    x = rng.normal(size=(1, 6))
    few, many = np.ones((1, 6), dtype=bool), np.zeros((1, 6), dtype=bool)
    few[0, 2], many[0, 2] = False, True
    right_few, right_many = by_loops(x, few, nu, sigma), by_loops(x, many, nu, sigma)
    broken = np.full((6, 6), np.nan)
    np.testing.assert_allclose(filled(x, few, nu, broken, omega)[0], right_few, atol=1e-9)
    np.testing.assert_allclose(filled(x, many, nu, sigma, broken)[0], right_many, atol=1e-9)


def test_nothing_missing_is_left_alone_and_all_missing_is_the_mean():
    rng = np.random.default_rng(2)
    nu, sigma = rng.normal(size=5), covariance(rng, 5)
    x = rng.normal(size=(3, 5))
    m = np.array([[True] * 5, [False] * 5, [True] * 5])
    mine, count = filled(x, m, nu, sigma, np.linalg.inv(sigma))
    np.testing.assert_array_equal(mine, [x[0], nu, x[2]])
    assert count == 5


def test_no_rows_at_all_complete_nothing():
    assert filled(np.empty((0, 3)), np.empty((0, 3), bool), np.zeros(3), np.eye(3))[1] == 0


def test_one_feature_is_its_value_or_its_mean():
    x, m = np.array([[4.0], [9.0]]), np.array([[True], [False]])
    for omega in (NO_PRECISION, np.array([[0.5]])):
        mine, count = filled(x, m, np.array([7.0]), np.array([[2.0]]), omega)
        assert mine.tolist() == [[4.0], [7.0]]
        assert count == 1


@pytest.mark.parametrize(("d", "p"), [(65, 0.9), (128, 0.5), (256, 0.1), (1_024, 0.97)])
def test_many_features_are_as_right_as_few(d, p):
    rng = np.random.default_rng(d)
    nu, sigma = rng.normal(size=d), covariance(rng, d)
    x, m = rng.normal(size=(2, d)), rng.random((2, d)) < p
    mine, _ = filled(x, m, nu, sigma, np.linalg.inv(sigma))
    for r in range(2):
        s, u = np.flatnonzero(m[r]), np.flatnonzero(~m[r])
        weights = np.linalg.solve(sigma[np.ix_(s, s)], x[r, s] - nu[s])
        np.testing.assert_allclose(mine[r, u], nu[u] + sigma[np.ix_(u, s)] @ weights, atol=1e-8)


# Where Σ_SS has no inverse --------------------------------------------------------------------


@pytest.mark.parametrize("rank", [0, 1, 2, 4])
def test_a_singular_covariance_is_solved_by_its_moore_penrose_inverse(rank):
    rng = np.random.default_rng(rank)
    a = rng.normal(size=(6, rank))
    nu, sigma = rng.normal(size=6), a @ a.T
    m = rng.random((20, 6)) < 0.7
    x = nu + rng.normal(size=(20, rank)) @ a.T
    mine, _ = filled(x, m, nu, sigma)
    np.testing.assert_allclose(mine, by_loops(x, m, nu, sigma), atol=1e-7)
    enough = m.sum(axis=1) >= rank  # then what is missing follows from what is seen
    np.testing.assert_allclose(mine[enough], x[enough], atol=1e-6)


def test_duplicate_features_fill_each_other():
    sigma = np.ones((3, 3))
    mine, _ = filled(np.array([[2.0, 0, 2.0]]), np.array([[True, False, True]]), np.zeros(3), sigma)
    np.testing.assert_allclose(mine, [[2.0, 2.0, 2.0]], atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(d=st.integers(2, 8), seed=st.integers(0, 2**32))
def test_an_indefinite_covariance_is_solved_by_its_moore_penrose_inverse(d, seed):
    """The paper's Σ̂ can be indefinite early on; its notation says what Σ⁻¹ then means."""
    rng = np.random.default_rng(seed)
    basis, _ = np.linalg.qr(rng.normal(size=(d, d)))
    values = rng.choice([-1.0, 1.0], size=d) * rng.uniform(0.5, 2.0, size=d)
    sigma = (basis * values) @ basis.T
    sigma = (sigma + sigma.T) / 2
    nu, x, m = rng.normal(size=d), rng.normal(size=(5, d)), rng.random((5, d)) < 0.6
    expected = by_loops(x, m, nu, sigma)
    mine, _ = filled(x, m, nu, sigma)
    np.testing.assert_allclose(mine, expected, atol=1e-9 * max(1.0, np.abs(expected).max()) ** 2)


def test_a_constant_feature_in_the_papers_covariance_is_passed_over():
    """Its row of Σ is 0: nothing to divide by, nothing to learn from."""
    sigma = np.array([[0.0, 0.0, 0.0], [0.0, 1.0, 0.5], [0.0, 0.5, 1.0]])
    m = np.array([[True, True, False]])
    mine, _ = filled(np.array([[3.0, 2.0, 0.0]]), m, np.array([3.0, 0.0, 0.0]), sigma)
    np.testing.assert_allclose(mine, [[3.0, 2.0, 1.0]])


@pytest.mark.parametrize("ratio", [1e3, 1e9, 1e40])
def test_features_of_very_different_size_lose_nothing(ratio):
    rng = np.random.default_rng(3)
    plain, unit = covariance(rng, 4), np.array([1.0, ratio, 1.0, 1.0 / ratio])
    sigma, omega = plain * np.outer(unit, unit), np.linalg.inv(plain) / np.outer(unit, unit)
    x, m = rng.normal(size=(12, 4)), rng.random((12, 4)) < 0.6
    expected = by_loops(x, m, np.zeros(4), plain)
    for precision in (NO_PRECISION, omega):
        mine, _ = filled(x * unit, m, np.zeros(4), sigma, precision)
        np.testing.assert_allclose(mine / unit, expected, atol=1e-9)


# How it behaves -------------------------------------------------------------------------------


def test_what_stands_in_the_holes_is_not_read():
    rng = np.random.default_rng(4)
    nu, sigma = rng.normal(size=4), covariance(rng, 4)
    m = rng.random((8, 4)) < 0.5
    results = []
    for junk in (0.0, np.nan, np.inf, -1e300):
        z = np.concatenate([np.ones((8, 1)), np.where(m, 0.5, junk)], axis=1)
        complete_rows(z, m, nu, sigma, np.linalg.inv(sigma))
        results.append(z)
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


def test_completing_twice_is_completing_once():
    """So a stored x̄ with its mask is all that a refresh needs."""
    rng = np.random.default_rng(5)
    sigma = covariance(rng, 5)
    estimate = Estimate.of(0.6, rng.normal(size=5), sigma, 1)
    m = rng.random((9, 5)) < 0.6
    z = np.concatenate([np.ones((9, 1)), rng.normal(size=(9, 5))], axis=1)
    complete(z, m, estimate)
    again = z.copy()
    complete(again, m, estimate)
    np.testing.assert_array_equal(again, z)


def test_a_row_is_completed_the_same_alone_and_among_others():
    rng = np.random.default_rng(6)
    nu, sigma = rng.normal(size=6), covariance(rng, 6)
    omega = np.linalg.inv(sigma)
    x, m = rng.normal(size=(30, 6)), rng.random((30, 6)) < 0.6
    together, _ = filled(x, m, nu, sigma, omega)
    for r in range(30):
        alone, _ = filled(x[r : r + 1], m[r : r + 1], nu, sigma, omega)
        np.testing.assert_array_equal(alone[0], together[r])


def test_the_kernels_release_the_gil():
    for kernel in (complete_rows, completion._positive_solve, completion._pseudo_solve):
        assert kernel.targetoptions["nogil"]


def test_another_thread_runs_while_rows_are_completed():
    """A counting thread advances during the call itself, which is one call into compiled code."""
    rng = np.random.default_rng(7)
    d, rows = 160, 60
    sigma, m = covariance(rng, d), rng.random((rows, d)) < 0.5
    z = np.concatenate([np.ones((rows, 1)), rng.normal(size=(rows, d))], axis=1)
    complete_rows(z[:1].copy(), m[:1], np.zeros(d), sigma, NO_PRECISION)  # compiled
    beats, stop = [], threading.Event()

    def beat():
        while not stop.is_set():
            beats.append(time.perf_counter())
            time.sleep(0)

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        while not beats:
            time.sleep(0.001)
        for _ in range(200):  # a busy machine may not schedule the other thread at once
            start = time.perf_counter()
            complete_rows(z.copy(), m, np.zeros(d), sigma, NO_PRECISION)
            end = time.perf_counter()
            within = [
                b for b in beats if start + 0.1 * (end - start) < b < end - 0.1 * (end - start)
            ]
            if within:
                break
    finally:
        stop.set()
        thread.join()
    assert within
