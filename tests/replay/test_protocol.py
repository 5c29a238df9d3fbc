from dataclasses import replace

import numpy as np
import pytest

from clients.replay.errors import TooFew
from clients.replay.protocol import BLOCK_ROUNDS, MeanFilled, Rounds, Setting

SETTING = Setting(arms=5, pool=20, erased=0.3, rounds=2 * BLOCK_ROUNDS + 10)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    clicks = rng.random(400) < 0.2
    # The first feature tells which impression it is.
    codes = np.column_stack([np.arange(400), rng.standard_normal((400, 3))]).astype(np.float32)
    return codes, clicks


def whole(rounds):
    blocks = [rounds.block(number) for number in range(3)]
    return np.concatenate([b.x for b in blocks]), np.concatenate([b.paid for b in blocks])


def test_every_round_has_one_clicked_arm_and_others_that_are_distinct(data):
    codes, clicks = data
    x, paid = whole(Rounds(codes, clicks, replace(SETTING, erased=0.0), 1))
    assert x.shape == (SETTING.rounds, 5, 4)
    assert (paid.sum(axis=1) == 1).all()
    items = x[:, :, 0].astype(int)
    assert np.array_equal(clicks[items], paid)
    assert all(len(set(row)) == 5 for row in items.tolist())
    assert len(np.unique(items[paid])) <= 20
    assert len(np.unique(items[~paid])) <= 20


def test_the_clicked_arm_is_at_every_position_equally(data):
    _, paid = whole(Rounds(*data, SETTING, 1))
    places = np.bincount(paid.argmax(axis=1), minlength=5)
    assert places == pytest.approx(np.full(5, len(paid) / 5), abs=5 * np.sqrt(len(paid) * 0.16))


def test_entries_are_erased_at_the_rate_asked_for(data):
    x, _ = whole(Rounds(*data, SETTING, 1))
    assert np.isnan(x).mean() == pytest.approx(0.3, abs=0.02)


def test_more_erasure_hides_more_of_the_same(data):
    some, _ = whole(Rounds(*data, SETTING, 1))
    more, _ = whole(Rounds(*data, replace(SETTING, erased=0.5), 1))
    assert not (np.isnan(some) & ~np.isnan(more)).any()
    both = ~np.isnan(more)
    assert np.array_equal(some[both], more[both])


def test_holes_of_an_item_stay_where_they_are(data):
    x, _ = whole(Rounds(*data, replace(SETTING, erase="item"), 1))
    holes = {}
    for view in x.reshape(-1, 4):
        if not np.isnan(view[0]):
            holes.setdefault(view[0], set()).add(tuple(np.isnan(view)))
    assert {len(masks) for masks in holes.values()} == {1}
    x, _ = whole(Rounds(*data, SETTING, 1))
    assert len({tuple(row) for row in np.isnan(x[x[:, :, 0] == x[0, 0, 0]]).tolist()}) != 1


def test_a_round_depends_on_seed_and_number_alone(data):
    rounds = Rounds(*data, SETTING, 1)
    later = rounds.block(1)
    again = Rounds(*data, replace(SETTING, rounds=10 * BLOCK_ROUNDS), 1).block(1)
    assert np.array_equal(later.x, again.x, equal_nan=True)
    other = Rounds(*data, SETTING, 2).block(1)
    assert not np.array_equal(later.paid, other.paid)


def test_means_are_those_of_the_arms_so_far(data):
    rounds = Rounds(*data, SETTING, 1)
    filled = MeanFilled(rounds)
    x, _ = whole(rounds)
    y = np.concatenate([filled.block(number).x for number in range(3)])
    for t in (0, 7, BLOCK_ROUNDS, SETTING.rounds - 1):
        means = np.nanmean(x[: t + 1].reshape(-1, 4), axis=0)
        assert y[t] == pytest.approx(np.where(np.isnan(x[t]), means, x[t]))
    assert MeanFilled(rounds).block(2).x == pytest.approx(y[2 * BLOCK_ROUNDS :])


def test_too_small_a_pool_is_told(data):
    with pytest.raises(TooFew, match="clicked impressions in the sample, fewer than the 300"):
        Rounds(*data, replace(SETTING, pool=300), 1)


def test_a_log_is_played_in_its_order_with_its_own_clicks(data):
    codes, clicks = data
    setting = Setting("log", arms=5, erased=0.0, rounds=80)
    block = Rounds(codes, clicks, setting, 1).block(0)
    items = block.x[:, :, 0].astype(int)
    assert np.array_equal(np.sort(items, axis=1), np.arange(400).reshape(80, 5))
    assert np.array_equal(clicks[items], block.paid)
    with pytest.raises(TooFew, match="enough for 80 rounds of 5 arms, not 81"):
        Rounds(codes, clicks, replace(setting, rounds=81), 1)
