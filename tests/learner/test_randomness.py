"""Randomness belongs to a round: the same for everyone who plays it, and to no other round."""

from __future__ import annotations

import numpy as np
import pytest

from service.learner import randomness


def words(seed, number, count=4_096):
    return randomness.of_round(seed, number).bit_generator.random_raw(count)


def test_a_round_draws_the_same_wherever_it_is_played():
    np.testing.assert_array_equal(words(3, 17), words(3, 17))


@pytest.mark.parametrize("other", [(3, 18), (3, 16), (4, 17), (3, 17 + 2**32)])
def test_no_two_rounds_share_any_of_their_draws(other):
    """A counter that merely starts one block later would replay the neighbour's stream."""
    assert not set(words(3, 17).tolist()) & set(words(*other).tolist())


def test_the_largest_seed_and_a_late_round_are_fine():
    assert 0.0 <= randomness.of_round(2**64 - 1, 2**53).random() < 1.0


def test_coins_of_successive_rounds_are_uniform_and_uncorrelated():
    coins = np.array([randomness.of_round(11, t).random(2) for t in range(1, 4_001)])
    assert abs(coins.mean() - 0.5) < 4 * np.sqrt(1 / 12 / coins.size)
    flat = coins.ravel()
    for lag in (1, 2, 4, 8):
        assert abs(np.corrcoef(flat[:-lag], flat[lag:])[0, 1]) < 4.5 / np.sqrt(len(flat))
