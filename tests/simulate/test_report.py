"""The numbers of the report against SciPy and by hand."""

import json
import math

import numpy as np
import pytest
from scipy import stats

from clients.simulate import bars, report
from clients.simulate.environments import make_setting
from clients.simulate.figures import FIGURES, MISSING
from clients.simulate.picture import LOOKS, spread
from clients.simulate.play import Run, curve_rounds
from clients.simulate.players import POLICIES

SETTING = make_setting("paper", rounds=10)


def runs_of(policy, finals, setting=SETTING):
    shape = np.linspace(0.1, 1.0, len(curve_rounds(setting.rounds)))
    return [
        Run(setting, policy, 100 + i, final * shape, 0.5, 0.1) for i, final in enumerate(finals)
    ]


def test_the_band_is_students_interval_for_the_mean():
    samples = np.random.default_rng(0).normal(5.0, 2.0, size=10)
    low, high = stats.t.interval(
        0.95, len(samples) - 1, loc=samples.mean(), scale=stats.sem(samples)
    )
    assert report.half_width(samples) == pytest.approx((high - low) / 2)


def test_the_band_is_taken_at_every_point_of_a_curve():
    curves = np.random.default_rng(1).normal(size=(6, 4))
    assert report.half_width(curves).shape == (4,)
    assert report.half_width(curves)[2] == pytest.approx(report.half_width(curves[:, 2]))


def test_one_seed_has_no_band():
    (summary,) = report.summarise(runs_of("clbbf", [3.0]))
    assert math.isnan(summary.regret_half_width)
    assert "3 ± –" in report.table([summary], "clbbf")
    json.dumps(report.to_dict("t", [summary], "clbbf"), allow_nan=False)


def test_ratios_are_to_the_baseline_of_the_same_setting():
    other = make_setting("paper", arms=30, rounds=10)
    runs = [
        *runs_of("clbbf", [1.0, 3.0]),
        *runs_of("oful-paper", [10.0, 30.0]),
        *runs_of("clbbf", [4.0], other),
        *runs_of("oful-paper", [8.0], other),
    ]
    summaries = report.summarise(runs)
    assert report.ratios(summaries, "oful-paper") == pytest.approx([0.1, 1.0, 0.5, 1.0])
    assert [s.regret for s in summaries] == [2.0, 20.0, 4.0, 8.0]
    assert np.isnan(report.ratios(summaries, "random")).all()


def test_the_baseline_is_the_papers_oful_unless_told_otherwise():
    assert report.pick_baseline(["clbbf", "oful-paper", "random"]) == "oful-paper"
    assert report.pick_baseline(["clbbf", "random"]) == "random"
    assert report.pick_baseline(["clbbf", "oful-paper"], "clbbf") == "clbbf"


def test_the_table_has_a_line_for_every_policy():
    summaries = report.summarise(
        [*runs_of("clbbf", [12.0, 14.0]), *runs_of("oful-paper", [1300.0, 1500.0])]
    )
    text = report.table(summaries, "oful-paper")
    assert "seeds 100 to 101" in text
    assert "1,400 ±" in text
    assert "0.009" in text
    assert len({len(line) for line in text.splitlines()[1:]}) == 1


def test_the_json_holds_what_was_run():
    summaries = report.summarise(runs_of("clbbf-paper", [1.0, 2.0]))
    told = json.loads(json.dumps(report.to_dict("t", summaries, "clbbf-paper")))
    (result,) = told["results"]
    assert told["versions"].keys() >= {"lacuna", "python", "numpy"}
    assert result["setting"] == SETTING.to_dict()
    assert result["seeds"] == [100, 101]
    assert (result["config"]["preset"], result["config"]["horizon"]) == ("paper", 10)
    assert result["regret"]["mean"] == 1.5
    assert result["curve"]["t"] == list(range(1, 11))
    assert len(result["curve"]["per_seed"]) == 2


def test_a_bar_is_passed_at_its_value_and_failed_above():
    finals = [
        bound + excess for bound, excess in zip(bars.BARS.values(), (0, 1, -1, 0), strict=True)
    ]
    runs = [
        run
        for setting, final in zip(bars.BARS, finals, strict=True)
        for run in runs_of("clbbf", [final, final], setting)
    ]
    summaries = report.summarise(runs)
    assert bars.verdicts(summaries) == [True, False, True, True]
    text = bars.table(summaries)
    assert (text.count("PASS"), text.count("FAIL")) == (3, 1)


def test_every_policy_has_a_look_of_its_own():
    assert LOOKS.keys() == POLICIES.keys()
    assert len({look[0] for look in LOOKS.values()}) == len(LOOKS)


def test_labels_are_kept_apart_in_their_order():
    placed = spread([0.30, 0.31, 0.90, 0.29], 0.05)
    assert sorted(range(4), key=placed.__getitem__) == [3, 0, 1, 2]
    assert np.diff(sorted(placed)).min() >= 0.05 - 1e-12
    assert spread([0.1, 0.5], 0.05) == [0.1, 0.5]


def test_the_synthetic_figure_has_the_three_panels_of_the_paper():
    figure = FIGURES["synthetic"]
    settings = figure.settings(10)
    assert {s.dimension for s in settings} == {2}
    runs = [run for s in settings for p in figure.policies for run in runs_of(p, [1.0, 2.0], s)]
    a, b, c = figure.panels(report.summarise(runs))
    for panel in (a, b):
        assert [line.x.tolist() for line in panel.lines] == [list(MISSING)] * len(figure.policies)
    assert [line.policy for line in c.lines] == list(figure.policies)
    assert c.lines[0].x.tolist() == list(range(1, 11))
