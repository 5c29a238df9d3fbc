"""Playing: every policy meets the same rounds, and regret is what it is said to be."""

import numpy as np
import pytest

from clients.simulate import play as playing
from clients.simulate.environments import blocks, make_setting
from clients.simulate.play import Cancelled, Job, curve_rounds, play
from clients.simulate.players import POLICIES, MeanFill, config_of, make_player
from clients.simulate.run import run

SMALL = make_setting("paper", arms=8, rounds=60)


class Recorder:
    """Always plays one arm, and writes down what it meets."""

    def __init__(self, arm=0):
        self.arm, self.seen, self.rewards, self.closed = arm, [], [], False

    def choose(self, x):
        self.seen.append(x.copy())
        return self.arm

    def learn(self, reward):
        self.rewards.append(reward)

    def close(self):
        self.closed = True


@pytest.fixture
def recorders(monkeypatch):
    made = {}

    def make(name, **_):
        made[name] = Recorder(len(made))
        return made[name]

    monkeypatch.setattr(playing, "make_player", make)
    return made


def test_every_policy_meets_the_same_arms_and_the_same_noise(recorders):
    play(Job(SMALL, 100, ("clbbf", "oful")))
    block = next(blocks(SMALL, 100))
    for recorder in recorders.values():
        assert np.array_equal(recorder.seen, block.x[:60], equal_nan=True)
        assert recorder.rewards == block.reward[:60, recorder.arm].tolist()
        assert recorder.closed


def test_regret_is_the_oracles_best_minus_the_chosen_arms_value(recorders):
    runs = play(Job(SMALL, 100, ("clbbf", "oful")))
    block = next(blocks(SMALL, 100))
    for arm, result in enumerate(runs):
        lost = (block.value.max(axis=1) - block.value[:, arm])[:60]
        assert result.regret == pytest.approx(np.cumsum(lost)[curve_rounds(60) - 1])
        assert result.mean_reward == pytest.approx(block.reward[:60, arm].mean())


def test_a_policy_is_not_changed_by_who_plays_beside_it():
    alone = play(Job(SMALL, 3, ("clbbf",)))[0]
    beside = play(Job(SMALL, 3, ("random", "mean-fill", "clbbf")))[2]
    assert np.array_equal(alone.regret, beside.regret)


def test_players_are_closed_when_a_run_is_cancelled(recorders):
    with pytest.raises(Cancelled):
        play(Job(SMALL, 1, ("clbbf",)), cancelled=lambda: True)
    assert recorders["clbbf"].closed


def test_curves_keep_the_first_and_the_last_round():
    for rounds in (1, 2, 7, 10_000):
        at = curve_rounds(rounds)
        assert (at[0], at[-1]) == (1, rounds)
        assert (np.diff(at) > 0).all()
    assert len(curve_rounds(10_000)) <= 200


def test_mean_fill_fills_with_the_mean_of_all_arms_so_far():
    inner = Recorder()
    player = MeanFill(inner, 2)
    player.choose(np.array([[1.0, np.nan], [3.0, np.nan]]))
    player.choose(np.array([[np.nan, 4.0], [5.0, 8.0]]))
    assert inner.seen[0].tolist() == [[1.0, 0.0], [3.0, 0.0]]
    assert inner.seen[1].tolist() == [[3.0, 4.0], [5.0, 8.0]]


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_plays(name):
    result = play(Job(SMALL, 1, (name,)))[0]
    assert np.isfinite(result.regret).all()
    assert (np.diff(result.regret) >= 0.0).all()
    config = config_of(name, dimension=2, horizon=60, seed=1)
    assert (config.horizon, config.seed) == (60, 1)
    make_player(name, dimension=2, horizon=60, seed=1).close()


def test_completion_has_clearly_less_regret_than_the_papers_oful():
    """A tenth of it over these seeds; asserted at half."""
    jobs = [
        Job(
            make_setting("paper", arms=30, observed=0.6, rounds=1_500),
            seed,
            ("clbbf", "oful-paper"),
        )
        for seed in range(100, 104)
    ]
    total = dict.fromkeys(("clbbf", "oful-paper"), 0.0)
    for result in run(jobs, processes=1, quiet=True):
        total[result.policy] += result.regret[-1]
    assert total["clbbf"] < 0.5 * total["oful-paper"]


def test_a_pool_gives_what_one_process_gives_in_the_same_order():
    jobs = [Job(SMALL, seed, ("clbbf", "random")) for seed in (1, 2, 3)]
    here = run(jobs, processes=1, quiet=True)
    pool = run(jobs, processes=2, quiet=True)
    assert [(r.seed, r.policy) for r in pool] == [(r.seed, r.policy) for r in here]
    for one, other in zip(here, pool, strict=True):
        assert np.array_equal(one.regret, other.regret)
