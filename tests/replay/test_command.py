"""`lacuna replay` and `lacuna sample`, end to end."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time

import httpx
import numpy as np
import pytest

from clients.errors import ServiceFailed
from clients.replay import local, remote
from clients.replay import run as runs
from clients.replay.datasets import DATASETS
from clients.replay.prepare import Wanted, prepare
from clients.replay.protocol import Setting
from clients.replay.state import Job, Store
from service import cli
from tests.client.conftest import ROOT, serving
from tests.replay import published

SETTING = Setting(arms=10, pool=200, erased=0.2, rounds=1_000)
SMALL = ["--pool", "200", "--arms", "10", "--dimension", "24", "--quiet"]


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "synthetic.csv.gz"
    assert cli.main(["sample", "avazu", "--rows", "4000", "--out", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def data(log):
    return prepare(DATASETS["avazu"], [log], Wanted(dimension=8))


def store(folder):
    made = Store(folder)
    made.claim({})
    return made


def test_a_sample_says_loudly_that_it_is_synthetic(tmp_path, capsys):
    path = tmp_path / "deep" / "sample.csv"
    assert cli.main(["sample", "avazu", "--rows", "50", "--out", str(path)]) == 0
    assert "THIS FILE IS SYNTHETIC" in capsys.readouterr().err
    header, *rows = path.read_text().splitlines()
    assert header == published.AVAZU_HEADER
    assert len(rows) == 50
    assert all(row.startswith("synthetic-") for row in rows)


def test_the_same_seed_gives_the_same_sample(log, tmp_path):
    again = tmp_path / "again.csv.gz"
    cli.main(["sample", "avazu", "--rows", "4000", "--out", str(again)])
    assert again.read_bytes() == log.read_bytes()
    rows = gzip.decompress(log.read_bytes()).decode().splitlines()[1:]
    assert 0.1 < np.mean([row.split(",")[1] == "1" for row in rows]) < 0.3


def test_in_process_the_planted_signal_is_found_and_everything_is_written(log, tmp_path, capsys):
    out = tmp_path / "out"
    arguments = ["replay", "avazu", str(log), "--in-process", "--rounds", "2000", "--jobs", "2"]
    arguments += ["--policies", "clbbf,mean-fill,random", "--baseline", "random", "--seeds", "2"]
    assert cli.main([*arguments, "--out", str(out), *SMALL]) == 0
    told = capsys.readouterr()
    assert "10 % erased, K=10, T=2,000" in told.out
    assert "SYNTHETIC DATA" in told.err
    document = json.loads((out / "replay.json").read_text())
    rates = {one["policy"]: one["ctr"]["mean"] for one in document["results"]}
    assert rates["clbbf"] > 1.5 * rates["random"]
    assert document["data"]["synthetic"]
    assert (out / "replay.png").read_bytes().startswith(b"\x89PNG")
    page = (out / "replay.html").read_text()
    assert "<svg" in page
    assert "Synthetic data" in page
    assert "src=" not in page

    written = (out / "replay.json").stat().st_mtime_ns
    assert cli.main([*arguments, "--out", str(out), *SMALL]) == 0
    assert "going on" in capsys.readouterr().err
    again = json.loads((out / "replay.json").read_text())
    assert again["results"] == document["results"]  # read, not played: the seconds are the same
    assert (out / "replay.json").stat().st_mtime_ns > written

    assert cli.main([*arguments, "--out", str(out), *SMALL, "--arms", "11"]) == 2
    assert "holds another replay (arms 10, not 11)" in capsys.readouterr().err
    encoder = str(out / "encoder.npz")
    assert cli.main([*arguments, "--encoder", encoder, *SMALL, "--out", str(out)]) == 0


def test_a_raw_replay_feeds_the_log_as_it_is(log, tmp_path, capsys):
    arguments = ["replay", "avazu", str(log), "--in-process", "--raw", "--jobs", "1", *SMALL]
    arguments += ["--policies", "clbbf,random", "--seeds", "1", "--out", str(tmp_path)]
    assert cli.main(arguments) == 0
    assert "as logged, 0 % erased, K=10, T=400" in capsys.readouterr().out
    about = json.loads((tmp_path / "replay.json").read_text())["data"]
    assert 0.1 < about["missing"] < 0.6


@pytest.mark.parametrize("policy", ["clbbf", "mean-fill", "thompson"])
def test_a_resumed_run_equals_an_uninterrupted_one(data, tmp_path, policy):
    job = Job(SETTING, policy, 3)
    expected = local.play(job, data, store(tmp_path / "whole"))
    parts = store(tmp_path / "parts")
    for _ in range(SETTING.rounds):
        looks = iter([False, True])
        done = local.play(job, data, parts, stopped=lambda looks=looks: next(looks)).done
        if done == SETTING.rounds:
            break
    resumed = parts.load(job)
    assert resumed.done == SETTING.rounds
    assert np.array_equal(resumed.hits, expected.hits)


def test_a_state_file_that_was_cut_short_is_played_anew(data, tmp_path):
    job, where = Job(SETTING, "random", 3), store(tmp_path)
    local.play(job, data, where)
    (path,) = where.folder.glob("*.npz")
    path.write_bytes(path.read_bytes()[:100])
    assert where.load(job).done == 0


def test_processes_play_what_one_process_plays(data, tmp_path):
    jobs = [Job(SETTING, policy, 3) for policy in ("clbbf", "oful")]
    told = {}

    def report(number, done, hits):
        told[number] = (done, hits)

    one = runs.run(jobs, data, store(tmp_path / "one"), report, processes=1)
    two = runs.run(jobs, data, store(tmp_path / "two"), report, processes=2)
    for alone, pooled in zip(one, two, strict=True):
        assert np.array_equal(alone.hits, pooled.hits)
    assert told == {n: (SETTING.rounds, int(r.hits.sum())) for n, r in enumerate(one)}


def test_ctrl_c_saves_and_the_same_command_goes_on(log, tmp_path):
    out = tmp_path / "out"
    command = [sys.executable, "-m", "service.cli", "replay", "avazu", str(log), "--in-process"]
    command += ["--rounds", "200000", "--policies", "clbbf", "--seeds", "1", "--jobs", "1"]
    command += [*SMALL, "--out", str(out)]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    while not list(out.glob("state/replay.json")):
        time.sleep(0.05)
        assert process.poll() is None
    time.sleep(1.0)
    os.kill(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=30)
    assert process.returncode == 130
    assert told.endswith("stopped; the same command goes on from here\n")
    assert "Traceback" not in told
    assert len(list(out.glob("state/*.npz"))) == 1


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("service")) as address:
        yield address


def over_http(jobs, data, where, url, concurrency=1, **options):
    options |= {"url": url, "at_once": 2, "concurrency": concurrency}
    return remote.run(jobs, data, where, lambda *_: None, **options)


def test_over_http_the_rounds_are_those_in_process(data, tmp_path, url):
    short = Setting(arms=10, pool=200, erased=0.2, rounds=250)
    jobs = [Job(short, policy, 3) for policy in ("clbbf", "mean-fill")]
    there = over_http(jobs, data, store(tmp_path / "there"), url)
    for job, played in zip(jobs, there, strict=True):
        here = local.play(job, data, store(tmp_path / "here"))
        assert played.done == 250
        assert np.array_equal(played.hits, here.hits)


def test_over_http_a_run_goes_on_with_its_learner(data, tmp_path, url, monkeypatch):
    job = Job(Setting(arms=10, pool=200, rounds=500), "clbbf", 4)
    (expected,) = over_http([job], data, store(tmp_path / "whole"), url)
    where = store(tmp_path / "parts")

    class Stopping(Store):
        def save(self, one, progress):
            super().save(one, progress)
            if progress.done == 250:
                raise ZeroDivisionError

    monkeypatch.setattr(remote, "SAVE_EVERY_S", 0.0)
    with pytest.raises(ZeroDivisionError):
        over_http([job], data, Stopping(tmp_path / "parts"), url)
    assert where.load(job).done == 250
    assert len(httpx.get(f"{url}/learners").json()["learners"]) == 1
    (resumed,) = over_http([job], data, where, url)
    assert np.array_equal(resumed.hits, expected.hits)
    assert httpx.get(f"{url}/learners").json()["learners"] == []
    forgotten = Stopping(tmp_path / "nowhere")
    forgotten.claim({})
    with pytest.raises(ZeroDivisionError):
        over_http([job], data, forgotten, url, goes_on=False)
    assert httpx.get(f"{url}/learners").json()["learners"] == []


def test_several_rounds_in_flight_are_all_played_once(data, tmp_path, url):
    job = Job(Setting(arms=10, pool=200, rounds=250), "oful", 5)
    (played,) = over_http([job], data, store(tmp_path), url, concurrency=8)
    assert played.done == 250
    assert played.hits.any()


def test_a_service_that_is_not_there_is_told(data, tmp_path):
    job = Job(SETTING, "oful", 5)
    with pytest.raises(ServiceFailed, match=r"--url: http://127\.0\.0\.1:9 did not answer"):
        over_http([job], data, store(tmp_path), "http://127.0.0.1:9")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--erased", "1.5"], "--erased"),
        (["--policies", "best"], "there is no policy best"),
        (["--seeds", "5:2"], "--seeds"),
        (["--encoder", "magic"], "--encoder: magic is neither"),
        (["--arms", "30", "--pool", "20"], "--arms: must be at most the 20 of --pool"),
        (["--bars", "--raw"], "--bars"),
        (["--pool", "900000"], "fewer than the 900,000 of --pool"),
    ],
)
def test_a_bad_argument_is_one_sentence(log, capsys, arguments, says):
    try:
        status = cli.main(["replay", "avazu", str(log), "--in-process", "--jobs", "1", *arguments])
    except SystemExit as stop:
        status = stop.code
    assert status == 2
    assert says in capsys.readouterr().err


def test_help_has_examples(capsys):
    with pytest.raises(SystemExit):
        cli.main(["replay", "--help"])
    out = capsys.readouterr().out
    assert "examples:" in out
    assert "lacuna replay taobao" in out
