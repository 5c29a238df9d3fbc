import math

import numpy as np
import pytest

from benchmarks import growth, learner, regret, timing
from benchmarks.paired import paired_ratio
from benchmarks.report import Bar, Report, Table, text, to_dict
from benchmarks.rounds import Ours, draw
from benchmarks.vowpal import answer, question
from clients.simulate.environments import make_setting


def test_a_ratio_is_of_medians_and_its_quartiles_are_of_pairs():
    found = timing.ratio([10.0, 30.0, 90.0], [1.0, 2.0, 3.0])
    assert found.value == 15.0
    assert (found.low, found.high) == (12.5, 22.5)


def test_one_slow_chunk_does_not_move_a_ratio():
    calm = timing.ratio([6.0] * 9, [1.0] * 9)
    disturbed = timing.ratio([6.0] * 9, [1.0] * 8 + [50.0])
    assert calm.value == disturbed.value == 6.0


def test_sides_take_turns_and_who_is_first_alternates():
    calls = []
    sides = [lambda: calls.append("a") or 1.0, lambda: calls.append("b") or 2.0]
    found = timing.interleaved(sides, 3)
    assert "".join(calls) == "abbaab"
    assert found.tolist() == [[1.0, 2.0]] * 3


def test_every_round_is_played_in_order():
    seen = []
    timing.mean_us(seen.append, 3)
    assert len(timing.each_us(seen.append, 2)) == 2
    assert seen == [0, 1, 2, 0, 1]


def test_a_paired_band_knows_that_pairs_move_together():
    below = np.array([100.0, 200.0, 300.0, 400.0])
    above = 0.5 * below + np.array([1.0, -1.0, -1.0, 1.0])
    paired = paired_ratio(above, below)
    mixed = paired_ratio(above, below[::-1])
    assert paired.value == mixed.value == pytest.approx(0.5)
    assert paired.half_width < 0.01 < 0.3 < mixed.half_width
    assert paired.low < 0.5 < paired.high


def test_one_seed_has_no_band():
    assert math.isnan(paired_ratio([1.0], [2.0]).half_width)


def test_the_peer_gets_what_is_observed_and_one_label():
    x = np.array([[1.0, np.nan], [np.nan, np.nan], [0.25, -2.0]])
    assert question(x) == ["| f0:1.000000", "| ", "| f0:0.250000 f1:-2.000000"]
    assert answer(x, 2, 0.5)[2].startswith("0:-0.500000:0.333333 | f0")
    assert answer(x, 2, 0.5)[:2] == question(x)[:2]


def test_the_peer_learns_from_its_label():
    x = np.tile(np.eye(3), (200, 1, 1))  # three arms, each with a feature of its own
    paid = [[0.0, 1.0, 0.0][number % 3] for number in range(200)]
    with learner.Vowpal(x, paid) as peer:
        for number in range(200):
            peer.round(number)
        assert np.argmax(peer.workspace.predict(peer.questions[0])) == 1


def test_rounds_miss_a_tenth():
    rounds = draw(50, 20, 8)
    assert rounds.x.shape == (50, 20, 8)
    assert rounds.reward.shape == (50, 20)
    assert np.isnan(rounds.x).mean() == pytest.approx(0.1, abs=0.02)


def test_playing_folds_one_reward_a_round():
    ours = Ours(draw(5, 4, 3))
    ours.play(12)
    assert ours.learner.model.count == 12
    ours.select(0)
    assert ours.learner.model.count == 12
    ours.reward(0)
    assert ours.learner.model.count == 13


def test_a_size_says_what_a_row_adds():
    small, large = growth.size(2, refresh_rows=None), growth.size(8, refresh_rows=1_000)
    assert small.refresh_s is None
    assert large.refresh_s is not None
    assert small.state_bytes < large.state_bytes
    assert 2 * 8 < small.row_bytes < large.row_bytes


def test_chunks_shrink_as_arms_grow():
    plan = learner.Plan(chunk_arms=1_000, chunk_rounds=100)
    assert [plan.rounds(k) for k in (1, 20, 5_000)] == [100, 50, 1]


def test_a_policy_is_watched_in_the_last_rounds():
    setting = make_setting("low-diversity", rounds=700)  # more than a block
    hits = regret.best_arm_hits(setting, "clbbf", 100)
    assert hits.shape == (700,)
    shares = regret.late_shares(setting, ("clbbf",), [100])
    assert shares == {"clbbf": [pytest.approx(hits[-70:].mean())]}


def test_a_bar_that_is_not_judged_is_neither_passed_nor_failed():
    bars = [Bar("a", "1", "≤ 2", True), Bar("b", "3", "≤ 2", False), Bar("c", "3", "≤ 2", None)]
    report = Report("x", False, [Table("t", [["h"], ["v"]])], bars, {"k": 1}, lambda path: None)
    assert [bar.verdict for bar in bars] == ["PASS", "FAIL", "not judged"]
    assert text(report).startswith("t\nh\n")
    assert [bar["passed"] for bar in to_dict(report)["bars"]] == [True, False, None]
    assert to_dict(report)["k"] == 1
