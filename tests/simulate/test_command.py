"""`lacuna simulate` from end to end, on settings of a blink."""

import json

import pytest

from clients.simulate import bars
from clients.simulate.environments import Setting
from service import cli

TINY = ["--rounds", "40", "--seeds", "2", "--jobs", "1", "--quiet"]
PNG = b"\x89PNG\r\n\x1a\n"


def simulate(*words):
    return cli.main(["simulate", *words])


def test_it_prints_a_table_and_writes_json_and_a_picture(tmp_path, capsys):
    out = tmp_path / "results"
    policies = "clbbf,oful-paper"
    assert simulate(*TINY, "--arms", "5", "--policies", policies, "--out", str(out)) == 0
    text = capsys.readouterr().out
    assert "paper: d=2, K=5, p=0.7, T=40, seeds 100 to 101" in text
    told = json.loads((out / "paper.json").read_text())
    assert [r["policy"] for r in told["results"]] == policies.split(",")
    assert told["results"][0]["seeds"] == [100, 101]
    assert (out / "paper.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize("name", ["homogeneous", "heterogeneous", "low-diversity", "rare"])
def test_every_environment_plays(name, capsys):
    assert simulate(*TINY, "--environment", name, "--policies", "clbbf") == 0
    assert name in capsys.readouterr().out


def test_an_svg_is_drawn_where_one_is_asked_for_and_is_the_same_twice(tmp_path):
    pictures = []
    for name in ("a.svg", "b.svg"):
        words = ["--policies", "clbbf,random", "--arms", "4", "--log"]
        assert simulate(*TINY, *words, "--out", str(tmp_path / name)) == 0
        pictures.append((tmp_path / name).read_bytes())
    assert pictures[0] == pictures[1]
    assert b"<svg" in pictures[0]
    assert json.loads((tmp_path / "a.json").read_text())["format"] == 1


@pytest.mark.parametrize("name", ["synthetic", "missing"])
def test_a_figure_is_drawn(name, tmp_path, capsys):
    words = ["--figure", name, "--rounds", "5", "--seeds", "2", "--jobs", "1", "--quiet"]
    assert simulate(*words, "--out", str(tmp_path)) == 0
    assert (tmp_path / f"{name}.png").read_bytes().startswith(PNG)
    assert f"{name}.json" in capsys.readouterr().out


@pytest.mark.parametrize(("bound", "status", "word"), [(1e9, 0, "PASS"), (-1.0, 1, "FAIL")])
def test_bars_say_pass_or_fail_and_exit_so(monkeypatch, capsys, tmp_path, bound, status, word):
    monkeypatch.setattr(bars, "BARS", {Setting("homogeneous", 2, 5, 0.7, 20): bound})
    assert simulate("--bars", "--jobs", "1", "--quiet", "--out", str(tmp_path)) == status
    assert word in capsys.readouterr().out
    told = json.loads((tmp_path / "bars.json").read_text())
    assert told["results"][0]["seeds"] == list(range(100, 110))


def test_seeds_are_a_range_or_a_count_from_100(tmp_path):
    for words, seeds in (
        (["--seeds", "3:6"], [3, 4, 5]),
        (["--seeds", "1"], [100]),
    ):
        simulate(*TINY, *words, "--policies", "random", "--out", str(tmp_path))
        told = json.loads((tmp_path / "paper.json").read_text())
        assert told["results"][0]["seeds"] == seeds


def test_help_has_examples_and_names_everything(capsys):
    with pytest.raises(SystemExit) as stop:
        simulate("--help")
    assert stop.value.code == 0
    text = capsys.readouterr().out
    for word in ("examples:", "low-diversity", "mean-fill", "synthetic", "--url"):
        assert word in text


@pytest.mark.parametrize(
    ("words", "argument"),
    [
        (["--policies", "clbbf,nobody"], "--policies"),
        (["--policies", ","], "--policies"),
        (["--seeds", "5:5"], "--seeds"),
        (["--seeds", "few"], "--seeds"),
        (["--rounds", "0"], "--rounds"),
        (["--arms", "2.5"], "--arms"),
        (["--observed", "1.5"], "--observed"),
        (["--environment", "elsewhere"], "--environment"),
    ],
)
def test_a_bad_word_is_refused_by_the_name_of_its_argument(words, argument, capsys):
    with pytest.raises(SystemExit) as stop:
        simulate(*words)
    assert stop.value.code == 2
    assert f"argument {argument}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "argument"),
    [
        (["--bars", "--arms", "5"], "--arms"),
        (["--figure", "missing", "--observed", "0.5"], "--observed"),
        (["--environment", "heterogeneous", "--observed", "0.5"], "--observed"),
        (["--policies", "clbbf", "--baseline", "oful"], "--baseline"),
        (["--out", "{file}"], "--out"),
    ],
)
def test_words_that_do_not_go_together_are_refused_before_anything_is_played(
    words, argument, tmp_path, capsys
):
    (tmp_path / "a.txt").write_text("mine")
    words = [word.format(file=tmp_path / "a.txt") for word in words]
    assert simulate(*words, "--quiet") == 2
    assert f"error: {argument}:" in capsys.readouterr().err
