import numpy as np
import pytest

from clients.demo.score import Score
from clients.demo.world import ADS, CANDIDATES, NAMES, USERS, World, block

ADS_SHOWN = np.arange(CANDIDATES)


@pytest.fixture(scope="module")
def world():
    return World.draw(3)


def scores(world, user, rng, outage=False):
    return world.scores(user, ADS_SHOWN, rng, outage=outage)


def test_without_consent_the_whole_profile_is_missing_for_every_ad(world):
    rng = np.random.default_rng(0)
    without, given = np.flatnonzero(~world.consents)[0], np.flatnonzero(world.consents)[0]
    assert np.isnan(scores(world, without, rng)[:, block("profile")]).all()
    assert not np.isnan(scores(world, given, rng)[:, block("profile")]).any()


def test_of_a_new_ad_the_statistics_are_missing_and_nothing_else_says_so(world):
    x = scores(world, 0, np.random.default_rng(0))
    missing = np.isnan(x[:, block("statistics")])
    assert (missing.all(axis=1) == ~world.measured[ADS_SHOWN]).all()
    assert (missing.any(axis=1) == missing.all(axis=1)).all()


def test_an_outage_takes_most_quality_scores_away_and_the_request_is_always_there(world):
    rng = np.random.default_rng(0)
    calm = [np.isnan(scores(world, 0, rng)[:, block("quality")]).mean() for _ in range(200)]
    down = [np.isnan(scores(world, 0, rng, True)[:, block("quality")]).mean() for _ in range(200)]
    assert np.mean(calm) < 0.3 < 0.7 < np.mean(down)
    assert not np.isnan(scores(world, 0, rng, True)[:, block("request")]).any()


def test_scores_tell_of_one_another_so_that_completion_has_what_to_go_on(world):
    rng = np.random.default_rng(0)
    users = rng.integers(USERS, size=400)
    x = np.concatenate([world.scores(u, rng.choice(ADS, 12), rng, outage=False) for u in users])
    a, b = NAMES.index("interest_match"), NAMES.index("category_views")
    both = ~np.isnan(x[:, a]) & ~np.isnan(x[:, b])
    assert np.corrcoef(x[both, a], x[both, b])[0, 1] > 0.5


def test_the_same_seed_is_the_same_world(world):
    again = World.draw(3)
    assert (again.taste == world.taste).all()
    chances = world.click_probability(5, ADS_SHOWN)
    assert chances.shape == (CANDIDATES,)
    assert ((chances > 0.0) & (chances < 1.0)).all()


def test_the_score_counts_clicks_by_second():
    score = Score(("a", "b"))
    for second, clicked in ((0.1, True), (0.9, False), (1.5, True), (2.0, False)):
        score.page(second, 0.5, False)
        score.add(second, "a", 0.25, clicked)
        score.add(second, "b", 0.25, False)
    assert score.slots["a"].rate == 0.5
    assert score.slots["a"].expected_rate == 0.25
    assert score.recent("a", seconds=1) == 0.0
    assert [number for number, _ in score.seconds] == [0, 1, 2]
    assert score.pages == 4
