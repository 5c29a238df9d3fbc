"""Every environment against its own definition, over more draws than a run has."""

from itertools import islice

import numpy as np
import pytest

from clients.errors import BadArgument
from clients.simulate.environments import (
    FIXED_MEANS,
    Model,
    Setting,
    blocks,
    clipped_mean,
    make_setting,
)


def gather(setting, seed, count):
    """x, reward, value of `count` blocks as single arrays."""
    taken = list(islice(blocks(setting, seed), count))
    return tuple(
        np.concatenate([getattr(b, name) for b in taken]) for name in ("x", "reward", "value")
    )


def covariance_seen(x):
    """Pairwise-complete covariance of (n, d) rows with NaN."""
    seen = ~np.isnan(x)
    centred = np.where(seen, x - np.nanmean(x, axis=0), 0.0)
    both = seen.T.astype(float) @ seen
    return centred.T @ centred / both


@pytest.mark.parametrize("seed", range(5))
def test_a_model_is_normalised_as_in_the_paper(seed):
    model = Model.draw(seed, 6)
    for vector in (model.theta, model.nu):
        assert np.linalg.norm(vector) == pytest.approx(1.0)
        assert (vector >= 0.0).all()
    for factor in (model.f, model.g):
        assert np.linalg.norm(factor.T @ factor, 2) == pytest.approx(1.0)
        assert (factor >= 0.0).all()


def test_views_have_the_mean_covariance_and_missing_rate_of_the_paper():
    setting = make_setting("homogeneous", dimension=4, arms=40, observed=0.7)
    model = Model.draw(100, 4)
    x = gather(setting, 100, 10)[0].reshape(-1, 4)  # 200,000 arms
    n = len(x)
    sigma = model.f.T @ model.f + model.g.T @ model.g
    # five standard errors of the worst entry
    assert np.isnan(x).mean() == pytest.approx(0.3, abs=5 * np.sqrt(0.21 / x.size))
    assert np.nanmean(x, axis=0) == pytest.approx(model.nu, abs=5 * np.sqrt(2 / (0.7 * n)))
    assert covariance_seen(x) == pytest.approx(sigma, abs=5 * np.sqrt(2 * 4 / (0.49 * n)))


def test_rewards_have_unit_noise_about_what_the_oracle_expects():
    setting = make_setting("homogeneous", dimension=3, arms=1, observed=0.6)
    model = Model.draw(7, 3)
    _, reward, value = gather(setting, 7, 40)  # 20,000 rounds of one arm
    error = (reward - value).ravel()
    assert error.mean() == pytest.approx(0.0, abs=5 * error.std() / np.sqrt(len(error)))
    # calibrated: E[y | x] has slope 1 in its own prediction
    slope = np.polyfit(value.ravel(), reward.ravel(), 1)[0]
    assert slope == pytest.approx(1.0, abs=5 * error.std() / (value.std() * np.sqrt(len(error))))
    total = 1.0 + model.theta @ model.f.T @ model.f @ model.theta
    assert reward.var() == pytest.approx(total, rel=5 * np.sqrt(2 / len(error)))


def test_one_reward_noise_is_shared_by_all_arms_of_a_round():
    _, reward, value = gather(make_setting("low-diversity"), 3, 1)
    noise = reward - value
    assert np.ptp(noise, axis=1) == pytest.approx(np.zeros(len(noise)), abs=1e-12)
    assert noise[:, 0].std() == pytest.approx(1.0, rel=0.2)


def test_heterogeneous_rates_are_spread_evenly_from_three_tenths_to_all():
    x = gather(make_setting("heterogeneous", dimension=8), 100, 8)[0]
    seen = 1.0 - np.isnan(x).mean(axis=(0, 1))
    assert seen == pytest.approx(np.linspace(0.3, 1.0, 8), abs=5 * 0.5 / np.sqrt(60_000))
    assert seen[-1] == 1.0


def test_low_diversity_shows_the_same_five_arms_with_the_best_ten_per_cent_ahead():
    x, reward, value = gather(make_setting("low-diversity"), 100, 20)
    assert (value == value[0]).all()
    first, second, *_ = sorted(value[0], reverse=True)
    assert first == pytest.approx(1.1 * second)
    assert sorted(value[0]) == sorted(FIXED_MEANS)
    assert reward.mean(axis=0) == pytest.approx(value[0], abs=5 / np.sqrt(len(reward)))
    arms = np.nanmean(x, axis=0)  # (5, d)
    assert arms @ arms.T == pytest.approx(np.eye(5), abs=0.01)
    assert np.nanstd(x, axis=0).max() < 0.04  # views differ little: exploring is not free
    assert np.isnan(x).mean() == pytest.approx(0.1, abs=0.005)


def test_rare_rewards_are_clicks_about_one_in_a_hundred():
    setting = make_setting("rare", arms=1)
    _, reward, value = gather(setting, 100, 400)  # 200,000 single arms
    assert set(np.unique(reward)) == {0.0, 1.0}
    margin = 5 * np.sqrt(0.01 / reward.size)
    assert reward.mean() == pytest.approx(0.01, abs=margin + 1e-4)
    assert value.mean() == pytest.approx(reward.mean(), abs=margin)
    upper = value > np.quantile(value, 0.8)
    assert reward[upper].mean() == pytest.approx(value[upper].mean(), abs=margin * np.sqrt(5))
    assert value[upper].mean() > 1.3 * value.mean()


def test_clipped_mean_is_the_mean_of_a_clipped_gaussian():
    g = np.random.default_rng(0).standard_normal(400_000)
    for mean, deviation in ((0.01, 0.02), (0.9, 0.3), (-0.1, 0.05), (0.5, 0.01)):
        sample = np.clip(mean + deviation * g, 0.0, 1.0)
        exact = clipped_mean(np.array([mean]), np.array([deviation]))[0]
        assert exact == pytest.approx(sample.mean(), abs=5 * deviation / np.sqrt(len(g)))


@pytest.mark.parametrize("name", ["homogeneous", "heterogeneous", "low-diversity", "rare"])
def test_a_seed_determines_everything(name):
    setting = make_setting(name)
    for one, other in zip(gather(setting, 5, 2), gather(setting, 5, 2), strict=True):
        assert np.array_equal(one, other, equal_nan=True)
    assert not np.array_equal(gather(setting, 5, 1)[0], gather(setting, 6, 1)[0], equal_nan=True)


def test_a_longer_run_begins_as_a_shorter_one():
    short, long = (make_setting("paper", rounds=rounds) for rounds in (10, 100_000))
    assert np.array_equal(gather(short, 1, 1)[0], gather(long, 1, 1)[0], equal_nan=True)


def test_another_missing_rate_hides_more_of_the_same_arms():
    seldom, often = (gather(Setting("homogeneous", 3, 5, p, 100), 1, 1) for p in (0.9, 0.5))
    seen = ~np.isnan(often[0])
    assert seen.mean() < 0.6
    assert np.array_equal(seldom[0][seen], often[0][seen])
    assert np.array_equal(seldom[1], often[1])


@pytest.mark.parametrize(
    ("name", "chosen", "argument"),
    [
        ("heterogeneous", {"observed": 0.5}, "--observed"),
        ("low-diversity", {"arms": 7}, "--arms"),
        ("low-diversity", {"dimension": 4}, "--dimension"),
    ],
)
def test_a_setting_that_cannot_be_names_its_argument(name, chosen, argument):
    with pytest.raises(BadArgument, match=argument):
        make_setting(name, **chosen)
