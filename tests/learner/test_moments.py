"""Moments are plain sums: any cut into batches, any merge, and back again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.learner import Arms, BadInput, Moments, dump_moments
from service.learner.moments import SMALL

EPS = np.finfo(float).eps
DIMENSIONS = st.one_of(st.integers(1, 12), st.sampled_from([SMALL, SMALL + 1, 90]))


def requests(rng, d, count, p, *, dyadic=False):
    """(K, d) features with holes, K different each time."""
    for _ in range(count):
        k = int(rng.integers(1, 8))
        x = rng.integers(-64, 65, size=(k, d)) / 8 if dyadic else rng.normal(size=(k, d)) * 3 + 1
        yield Arms.of(np.where(rng.random((k, d)) < p, x, np.nan))


def by_loops(parts, d):
    xi, z, p, arms = np.zeros(d), np.zeros((d, d)), np.zeros((d, d)), 0
    for part in parts:
        for x, m in zip(part.x, part.observed, strict=True):
            xi = xi + x
            z = z + np.outer(x, x)
            p = p + np.outer(m, m)
            arms += 1
    return xi, z, p, arms


def assert_close(one, other, largest):
    """Counts the same; ξ and Z to the rounding of the larger sum."""
    assert (one.arms, one.rounds) == (other.arms, other.rounds)
    np.testing.assert_array_equal(one.p, other.p)
    np.testing.assert_allclose(one.xi, other.xi, rtol=0, atol=64 * EPS * size(largest.xi))
    np.testing.assert_allclose(one.z, other.z, rtol=0, atol=64 * EPS * size(largest.z))


def size(array):
    return max(1.0, np.abs(array).max())


def assert_same_bits(one, other):
    assert dump_moments(one) == dump_moments(other)


@settings(max_examples=60, deadline=None)
@given(d=DIMENSIONS, p=st.floats(0, 1), seed=st.integers(0, 2**32))
def test_the_sums_are_what_loops_over_all_arms_give(d, p, seed):
    parts = list(requests(np.random.default_rng(seed), d, 5, p))
    moments = Moments.zero(d)
    for part in parts:
        moments.add(part)
    xi, z, pairs, arms = by_loops(parts, d)
    expected = Moments(xi, z, pairs, arms, len(parts))
    assert_close(moments, expected, Moments.of(Arms.join(parts)))
    assert moments.observed_entries == sum(part.observed.sum() for part in parts)


@pytest.mark.parametrize("d", [1, 5, SMALL, SMALL + 1])
@pytest.mark.parametrize("p", [0.0, 0.01, 0.5, 0.99, 1.0])
def test_co_observations_count_the_rows_that_saw_both_whatever_the_missing_rate(d, p):
    """The code counts what is missing; the definition is Σ m mᵀ."""
    rng = np.random.default_rng(3)
    m = rng.random((200, d)) < p
    moments = Moments.of(Arms.of(rng.normal(size=(200, d)), m))
    np.testing.assert_array_equal(moments.p, m.T.astype(float) @ m.astype(float))


@settings(max_examples=60, deadline=None)
@given(d=DIMENSIONS, count=st.integers(1, 6), p=st.floats(0, 1), seed=st.integers(0, 2**32))
def test_a_batch_of_requests_of_different_k_equals_one_by_one(d, count, p, seed):
    parts = list(requests(np.random.default_rng(seed), d, count, p))
    together, apart = Moments.of(Arms.join(parts)), Moments.zero(d)
    for part in parts:
        apart.add(part)
    assert together.rounds == count
    assert_close(together, apart, together)


@settings(max_examples=60, deadline=None)
@given(d=DIMENSIONS, p=st.floats(0, 1), seed=st.integers(0, 2**32))
def test_where_nothing_is_rounded_any_batch_cut_and_any_merge_order_give_the_same_bits(d, p, seed):
    rng = np.random.default_rng(seed)
    parts = list(requests(rng, d, 6, p, dyadic=True))
    together, merged = Moments.of(Arms.join(parts)), Moments.zero(d)
    for i in rng.permutation(len(parts)):
        merged.merge(Moments.of(parts[i]))
    assert_same_bits(together, merged)


@settings(max_examples=60, deadline=None)
@given(d=DIMENSIONS, p=st.floats(0, 1), seed=st.integers(0, 2**32))
def test_subtract_undoes_merge_to_the_bit_where_nothing_is_rounded(d, p, seed):
    rng = np.random.default_rng(seed)
    one, two = (Moments.of(Arms.join(list(requests(rng, d, 3, p, dyadic=True)))) for _ in "ab")
    total = one.copy()
    total.merge(two)
    total.subtract(two)
    assert_same_bits(total, one)
    total.subtract(one)
    assert_same_bits(total, Moments.zero(d))


@settings(max_examples=60, deadline=None)
@given(
    d=DIMENSIONS,
    p=st.floats(0, 1),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
    seed=st.integers(0, 2**32),
)
def test_subtract_undoes_merge_to_the_rounding_of_the_larger_sum(d, p, scale, seed):
    rng = np.random.default_rng(seed)
    one = Moments.of(Arms.join(list(requests(rng, d, 3, p))))
    two = Moments.of(Arms.of(scale * rng.normal(size=(4, d))))
    total = one.copy()
    total.merge(two)
    largest = total.copy()
    total.subtract(two)
    assert_close(total, one, largest)
    np.testing.assert_allclose(total.xi, one.xi, rtol=0, atol=2 * EPS * size(largest.xi))
    np.testing.assert_allclose(total.z, one.z, rtol=0, atol=2 * EPS * size(largest.z))


def test_merging_leaves_what_was_merged_alone():
    one, two = (Moments.of(Arms.of([[1.0, np.nan]])) for _ in "ab")
    before = dump_moments(two)
    one.merge(two)
    one.xi += 1.0
    assert dump_moments(two) == before


def test_a_copy_shares_nothing():
    moments = Moments.of(Arms.of([[1.0, 2.0]]))
    before = dump_moments(moments)
    moments.copy().add(Arms.of([[3.0, 4.0]]))
    assert dump_moments(moments) == before


@pytest.mark.parametrize("also", ["arms", "rounds", "p"])
def test_taking_away_more_than_was_added_is_refused_and_changes_nothing(also):
    moments = Moments.of(Arms.of([[1.0, np.nan], [2.0, 1.0]]))
    other = Moments.zero(2)
    if also == "p":  # as many arms and rounds, but a pair that was never seen
        other = Moments.of(Arms.of([[1.0, 2.0], [2.0, 1.0]]))
    else:
        setattr(other, also, 3)
    before = dump_moments(moments)
    with pytest.raises(BadInput) as caught:
        moments.subtract(other)
    assert caught.value.field == "moments"
    assert dump_moments(moments) == before


@pytest.mark.parametrize("verb", ["merge", "subtract"])
def test_moments_of_another_dimension_are_refused(verb):
    moments = Moments.zero(3)
    with pytest.raises(BadInput) as caught:
        getattr(moments, verb)(Moments.zero(2))
    assert caught.value.field == "moments"


@pytest.mark.parametrize("d", [1, 3, 8, 31, SMALL, SMALL + 1, 130])
def test_both_matrices_are_symmetric_to_the_bit(d):
    """Half of each is what is stored: the other half must be its mirror."""
    rng = np.random.default_rng(d)
    moments = Moments.zero(d)
    for part in requests(rng, d, 30, 0.8):
        moments.add(part)
    np.testing.assert_array_equal(moments.z, moments.z.T)
    np.testing.assert_array_equal(moments.p, moments.p.T)


def test_missing_entries_count_as_nothing():
    moments = Moments.of(Arms.of([[np.nan, np.nan]]))
    assert (moments.arms, moments.rounds, moments.observed_entries) == (1, 1, 0.0)
    assert not moments.xi.any()
    assert not moments.z.any()
