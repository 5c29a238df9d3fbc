"""Over time: when estimates are renewed, past choices completed anew, and old ones let go."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.learner import Arms, Estimate, Learner, LearnerConfig, Rows, dump
from service.learner.estimate import exact, guarded
from service.learner.history import History
from tests.learner.naive import completed
from tests.learner.worlds import World

REFRESHING = ["clbbf", "thompson"]


def make(policy="clbbf", d=3, **settings_):
    return Learner(LearnerConfig(dimension=d, policy=policy, seed=4, **settings_))


class Twin:
    """S and b by brute force: every row kept as it came, completed again as the rules say."""

    def __init__(self, d, limit=10**9):
        self.limit, self.next, self.rows = limit, 2, []
        self.d = d

    def refresh_if_due(self, estimate):
        if len(self.rows) + 1 < self.next:
            return False
        for row in self.rows[max(0, len(self.rows) - self.limit) :]:
            row["xbar"] = completed(estimate.nu, estimate.sigma, row["x"], row["m"])
        while self.next <= len(self.rows) + 1:
            self.next *= 2
        return True

    def learn(self, x, m, xbar, y):
        self.rows.append({"x": np.nan_to_num(x), "m": m, "xbar": xbar, "y": y})

    def sums(self):
        s, b = np.zeros((self.d + 1, self.d + 1)), np.zeros(self.d + 1)
        for row in self.rows:
            z = np.concatenate([[1.0], row["xbar"]])
            s += np.outer(z, z)
            b += z * row["y"]
        return s, b


def assert_sums(learner, twin):
    s, b = twin.sums()
    scale = max(1.0, np.abs(s).max())
    np.testing.assert_allclose(learner.model.s, s, rtol=0, atol=1e-9 * scale)
    np.testing.assert_allclose(learner.model.b, b, rtol=0, atol=1e-9 * scale)


@pytest.mark.parametrize("policy", REFRESHING)
@pytest.mark.parametrize("preset", ["practical", "paper"])
def test_a_refresh_happens_exactly_when_the_next_reward_is_the_2nd_4th_8th_and_rebuilds_all(
    policy, preset
):
    learner, world, twin = make(policy, preset=preset), World(3), Twin(3)
    refreshed = []
    for t in range(1, 140):
        features = world.arms()
        before = learner.model.s.copy()
        choices = learner.select(features)
        if twin.refresh_if_due(learner.estimate):
            refreshed.append(t)
            np.testing.assert_array_equal(learner.estimate.nu, learner.new_estimate().nu)
        else:
            np.testing.assert_array_equal(learner.model.s, before)
        assert_sums(learner, twin)
        arm, y = choices.index[0], world.reward(choices.index[0])
        learner.reward(choices, y)
        twin.learn(features[arm], ~np.isnan(features[arm]), choices.z[arm, 1:].copy(), y)
        assert_sums(learner, twin)
    assert refreshed == [2, 4, 8, 16, 32, 64, 128]


def test_a_refresh_is_with_this_rounds_arms_already_in():
    learner, world = make(), World(3)
    for _ in range(7):
        learner.reward(learner.select(world.arms(4)), 1.0)
    assert learner.refresh_due()
    learner.select(world.arms(4))
    assert learner.estimate.arms == learner.moments.arms == 32


@pytest.mark.parametrize("policy", ["e-clbbf", "oful", "random"])
def test_policies_without_refresh_never_rebuild(policy):
    learner, world = make(policy, alpha=1.0, horizon=4), World(3)
    for _ in range(70):
        before = learner.model.s.copy()
        choices = learner.select(world.arms(5))
        np.testing.assert_array_equal(learner.model.s, before)
        learner.reward(choices, 1.0)
    assert len(learner.history) == 0


def test_rewards_that_come_many_at_once_bring_one_refresh():
    learner, world = make(), World(3)
    waiting = [learner.select(world.arms(3)) for _ in range(20)]
    for choices in waiting:
        learner.reward(choices, 1.0)
    assert learner.model.count == 20
    assert learner.next_refresh == 2
    learner.select(world.arms(3))
    assert learner.next_refresh == 32
    before = learner.model.s.copy()
    learner.select(world.arms(3))
    np.testing.assert_array_equal(learner.model.s, before)


@pytest.mark.parametrize("policy", REFRESHING)
def test_rewards_may_come_late_in_any_order_or_never(policy):
    learner, world, twin = make(policy), World(3, seed=2), Twin(3)
    rng = np.random.default_rng(3)
    waiting = []
    for t in range(300):
        features = world.arms()
        choices = learner.select(features)
        twin.refresh_if_due(learner.estimate)
        assert_sums(learner, twin)
        waiting.append((features, choices, world.reward(choices.index[0])))
        while waiting and rng.random() < 0.45:  # some are never rewarded
            features, choices, y = waiting.pop(int(rng.integers(len(waiting))))
            arm = choices.index[0]
            learner.reward(choices, y)
            twin.learn(features[arm], ~np.isnan(features[arm]), choices.z[arm, 1:].copy(), y)
        assert learner.model.count == len(twin.rows)
        assert learner.moments.rounds == t + 1
    assert 100 < len(twin.rows) < 300


@pytest.mark.parametrize("limit", [0, 1, 5, 20, 64, 100])
@pytest.mark.parametrize("preset", ["practical", "paper"])
def test_rows_beyond_the_limit_stay_as_they_were_last_completed(limit, preset):
    learner, world = make(history_limit=limit, preset=preset), World(3, seed=5)
    twin = Twin(3, limit)
    for _ in range(200):
        features = world.arms()
        choices = learner.select(features)
        twin.refresh_if_due(learner.estimate)
        assert_sums(learner, twin)
        arm, y = choices.index[0], world.reward(choices.index[0])
        learner.reward(choices, y)
        twin.learn(features[arm], ~np.isnan(features[arm]), choices.z[arm, 1:].copy(), y)
        assert len(learner.history) == min(limit, len(twin.rows))


def rows(rng, m, d):
    z = np.concatenate([np.ones((m, 1)), rng.normal(size=(m, d))], axis=1)
    return Rows(z, rng.random((m, d)) < 0.7, rng.normal(size=m))


@settings(max_examples=60, deadline=None)
@given(
    limit=st.integers(0, 40),
    sizes=st.lists(st.integers(0, 30), max_size=12),
    seed=st.integers(0, 2**32),
)
def test_the_history_is_the_newest_rows_and_the_sums_of_all_others(limit, sizes, seed):
    rng = np.random.default_rng(seed)
    history, everything = History(2, limit), [rows(rng, 0, 2)]
    for size in sizes:
        everything.append(rows(rng, size, 2))
        history.append(everything[-1])
    z = np.concatenate([part.z for part in everything])
    y = np.concatenate([part.y for part in everything])
    observed = np.concatenate([part.observed for part in everything])
    kept = history.rows()
    out = max(0, len(y) - limit)
    assert len(history) == len(kept) == len(y) - out
    np.testing.assert_array_equal(kept.z, z[out:])
    np.testing.assert_array_equal(kept.y, y[out:])
    np.testing.assert_array_equal(kept.observed, observed[out:])
    np.testing.assert_allclose(history.frozen_s, z[:out].T @ z[:out], atol=1e-12)
    np.testing.assert_allclose(history.frozen_b, z[:out].T @ y[:out], atol=1e-12)


def test_the_room_a_full_history_takes_stays_bounded():
    history, rng = History(2, 100), np.random.default_rng(6)
    for _ in range(3_000):
        history.append(rows(rng, 1, 2))
    assert len(history._y) <= 3 * 100


def test_completing_anew_changes_nothing_until_it_is_taken_over():
    learner, world = make(), World(3)
    for _ in range(20):
        learner.reward(learner.select(world.arms()), 1.0)
    before = dump(learner)
    learner.history.completed_anew(learner.new_estimate())
    assert dump(learner) == before


def test_a_refresh_that_ran_elsewhere_meets_the_rows_learnt_meanwhile():
    """The same bits as if it had run at once and the rows had come after it."""
    world = World(3, seed=7)
    at_once, elsewhere = make(), make()
    for _ in range(40):
        features, y = world.arms(4), float(world.rng.normal())
        for learner in (at_once, elsewhere):
            learner.reward(learner.select(features), y)
    estimate = at_once.new_estimate()
    late = [rows(world.rng, m, 3) for m in (1, 5, 1)]

    refreshed = elsewhere.history.completed_anew(estimate)
    for part in late:
        elsewhere.learn_meanwhile(part)
    assert elsewhere.model.count == 47
    elsewhere.adopt(refreshed, late)

    at_once.refresh(estimate)
    for part in late:
        at_once.learn(part)

    for one, two in ((at_once.model.s, elsewhere.model.s), (at_once.model.b, elsewhere.model.b)):
        np.testing.assert_array_equal(one, two)
    for name in ("z", "observed", "y"):
        np.testing.assert_array_equal(
            getattr(at_once.history.rows(), name), getattr(elsewhere.history.rows(), name)
        )
    assert at_once.model.count == elsewhere.model.count == 47
    assert at_once.next_refresh == elsewhere.next_refresh


# Estimates ------------------------------------------------------------------------------------


def test_the_practical_estimate_is_renewed_when_the_arms_have_grown_by_a_hundredth():
    learner, world = make(), World(3)
    made = []
    for _ in range(600):
        used = learner.estimate
        learner.select(world.arms(2))
        if learner.estimate is not used:
            made.append(learner.moments.arms)
            expected = guarded(learner.moments, uniform_missingness=False)
            np.testing.assert_array_equal(learner.estimate.sigma, expected.sigma)
        else:
            assert learner.moments.arms <= 1.01 * used.arms
    assert made[:100] == list(range(2, 202, 2))  # every round while rounds are few
    assert len(made) < 300


def test_the_papers_estimate_is_renewed_every_round():
    learner, world = make(preset="paper"), World(3)
    for _ in range(250):
        learner.select(world.arms(2))
        assert learner.estimate.arms == learner.moments.arms
    np.testing.assert_array_equal(learner.estimate.sigma, exact(learner.moments).sigma)


def test_a_practical_learner_may_still_know_one_missing_rate():
    learner, world = make(missingness="uniform"), World(3)
    learner.select(world.arms(50))
    expected = guarded(learner.moments, uniform_missingness=True)
    np.testing.assert_array_equal(learner.estimate.nu, expected.nu)
    np.testing.assert_array_equal(learner.estimate.sigma, expected.sigma)


def test_requests_played_at_once_all_see_the_moments_of_all():
    batch, one = make(), make()
    world = World(3)
    parts = [Arms.of(world.arms(k)) for k in (3, 1, 5)]
    batch.select_batch(Arms.join(parts))
    for part in parts:
        one.select_batch(part)
    assert batch.moments.rounds == one.moments.rounds == 3
    np.testing.assert_array_equal(batch.moments.p, one.moments.p)
    np.testing.assert_allclose(batch.estimate.nu, one.estimate.nu, atol=1e-12)


# Preview --------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["clbbf", "e-clbbf", "oful", "thompson", "random"])
@pytest.mark.parametrize("preset", ["practical", "paper"])
@pytest.mark.parametrize("rounds", [0, 1, 30])
def test_a_preview_changes_nothing(policy, preset, rounds):
    learner, world = make(policy, preset=preset, alpha=1.0), World(3)
    for _ in range(rounds):
        learner.reward(learner.select(world.arms(4)), 1.0)
    before, entries = dump(learner), learner.completed_entries
    choices = learner.preview(Arms.of(world.arms(7)))
    assert 0 <= choices.index[0] < 7
    assert choices.rounds[0].number == rounds + 1
    assert np.isfinite(choices.mean + choices.bonus).all()
    assert dump(learner) == before
    assert learner.completed_entries == entries


@pytest.mark.parametrize("preset", ["practical", "paper"])
def test_a_preview_is_what_the_round_then_chooses(preset):
    learner, world = make(preset=preset), World(3)
    compared = 0
    for _ in range(100):
        arms = Arms.of(world.arms(3))
        shown, refreshes = learner.preview(arms), learner.refresh_due()
        played = learner.select_batch(arms)
        assert shown.rounds == played.rounds
        if not refreshes:
            np.testing.assert_array_equal(shown.mean, played.mean)
            np.testing.assert_array_equal(shown.bonus, played.bonus)
            assert shown.index == played.index
            compared += 1
        learner.reward(played, world.reward(played.index[0]))
    assert compared > 80


def test_a_preview_can_do_with_the_estimate_that_is_there():
    learner, world = make(), World(3)
    learner.select(world.arms(3))
    learner.moments.add(Arms.of(world.arms(50)))
    arms = Arms.of(world.arms(2))
    old, new = learner.preview(arms, anew=False), learner.preview(arms)
    assert np.abs(old.z - new.z).max() > 1e-3


def test_an_estimate_from_elsewhere_has_the_same_precision_as_one_made_here():
    learner, world = make(), World(3)
    learner.select(world.arms(50))
    here = learner.estimate
    there = Estimate.of(here.p_hat, here.nu.copy(), here.sigma.copy(), here.arms)
    np.testing.assert_array_equal(here.omega, there.omega)
