import json
from dataclasses import replace
from pathlib import Path

import pytest

import benchmarks.__main__ as command
from benchmarks import learner, regret
from benchmarks.report import Bar, Report


@pytest.fixture(autouse=True)
def other_tests_keep_their_threads(monkeypatch):
    monkeypatch.setattr(command, "ONE_THREAD", {})


@pytest.fixture
def tiny(monkeypatch):
    """Settings small enough for a test; what is checked is the command."""
    plan = replace(
        learner.QUICK,
        dimensions=(32,),
        warm_up_arms=100,
        chunk_rounds=5,
        many_rewards=150,
        refresh_rows=1_000,
    )
    monkeypatch.setattr(learner, "QUICK", plan)
    of = regret.Scenes.of
    monkeypatch.setattr(regret.Scenes, "of", lambda rounds: of(20))


def names_in(directory):
    return {path.name for path in directory.iterdir()}


def test_several_benchmarks_print_tables_and_write_json_and_pictures(tiny, tmp_path, capsys):
    assert command.main(["learner", "regret", "--quick", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "not judged" in printed
    assert "PASS" not in printed
    assert "too few rounds and seeds to judge a bar" in printed
    assert names_in(tmp_path) == {"learner.json", "learner.png", "regret.json", "regret.png"}
    speed = json.loads((tmp_path / "learner.json").read_text())
    assert speed["quick"] is True
    assert speed["versions"]["vowpalwabbit"]
    assert [bar["passed"] for bar in speed["bars"]] == [None, None]
    assert len(speed["cells"][0]["ours"]) == learner.QUICK.judged_chunks
    found = json.loads((tmp_path / "regret.json").read_text())
    assert len(found["bars"]) == 9
    assert len(found["late_best_arm_share"]["greedy"]) == 2


def test_a_full_run_judges_every_bar(tiny, monkeypatch):
    monkeypatch.setattr(learner, "FULL", learner.QUICK)
    assert all(bar.passed is not None for bar in learner.measure(quick=False).bars)


@pytest.mark.parametrize(("passed", "status"), [(True, 0), (False, 1), (None, 0)])
def test_a_missed_bar_is_the_exit_status(passed, status, monkeypatch, tmp_path, capsys):
    def measure(quick):
        return Report("learner", quick, [], [Bar("it", "1", "2", passed)], {}, Path.touch)

    monkeypatch.setattr(learner, "measure", measure)
    assert command.main(["learner", "--out", str(tmp_path)]) == status
    assert ("missed: it" in capsys.readouterr().out) == (status == 1)


def test_an_interrupt_ends_it_without_a_traceback(monkeypatch, tmp_path, capsys):
    def measure(quick):
        raise KeyboardInterrupt

    monkeypatch.setattr(learner, "measure", measure)
    assert command.main(["learner", "--out", str(tmp_path)]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_an_unknown_benchmark_is_refused_by_name(capsys):
    with pytest.raises(SystemExit) as refused:
        command.main(["speed"])
    assert refused.value.code == 2
    assert "there is no benchmark speed; there are footprint, learner, regret, service and all" in (
        capsys.readouterr().err
    )
