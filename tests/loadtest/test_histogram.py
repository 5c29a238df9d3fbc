import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clients.loadtest.histogram import LEAST_S, RELATIVE_ERROR, Histogram
from clients.loadtest.job import Buckets

times = st.lists(st.floats(1e-6, 900.0), min_size=1, max_size=200)


def made_of(values):
    histogram = Histogram()
    histogram.add(values)
    return histogram


@given(times, st.floats(0.001, 1.0))
def test_a_quantile_is_that_of_the_sorted_values_within_one_per_cent(values, share):
    exact = sorted(values)[max(1, math.ceil(share * len(values) - 1e-9)) - 1]
    assert made_of(values).quantile_s(share) == pytest.approx(exact, rel=0.01)


@given(times, times)
def test_merging_is_as_if_all_had_been_added_to_one(some, others):
    merged = made_of(some)
    merged.merge(made_of(others))
    both = made_of(some + others)
    assert merged.counts.tolist() == both.counts.tolist()
    assert merged.longest_s == both.longest_s
    assert merged.mean_s == pytest.approx(both.mean_s)


@given(times)
def test_it_comes_through_a_pipe_unchanged(values):
    before = made_of(values)
    after = Buckets.of(before).histogram()
    assert after.counts.tolist() == before.counts.tolist()
    assert (after.longest_s, after.total_s) == (before.longest_s, before.total_s)


def test_the_promise_is_one_per_cent():
    assert RELATIVE_ERROR <= 0.01


def test_times_out_of_range_are_counted_and_the_longest_is_exact():
    histogram = made_of([0.0, 1e-9, 5_000.0])
    assert histogram.count == 3
    assert histogram.quantile_s(0.5) == LEAST_S
    assert histogram.quantile_s(1.0) == 5_000.0


def test_nothing_has_no_quantile():
    assert math.isnan(Histogram().quantile_s(0.5))
    assert np.isnan(Histogram().mean_s)
