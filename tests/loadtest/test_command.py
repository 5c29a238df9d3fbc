import json
import os
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser

import httpx
import pytest

from clients.loadtest import ledger
from clients.loadtest.job import Account
from clients.loadtest.page import chart
from clients.loadtest.service import Counted
from clients.serving import OwnService
from service import cli

KEY = "a-key-of-sixteen-characters"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with OwnService(tmp_path_factory.mktemp("data"), "--workers", "2") as one:
        yield one


def loadtest(url, *arguments) -> int:
    small = ("--quiet", "--arms", "4", "--dimension", "3", "--reward-delay", "0.05")
    return cli.main(["loadtest", url, *small, *arguments])


def learners(url) -> list:
    return httpx.get(f"{url}/learners").json()["learners"]


@pytest.mark.parametrize("body", ["json", "compact"])
def test_a_closed_loop_over_two_processes_balances_its_ledger(service, body, tmp_path, capsys):
    status = loadtest(
        service.url,
        *("--duration", "1.5", "--processes", "2", "--connections", "8", "--body", body),
        *("--rewards", "0.8", "--duplicates", "0.3", "--reward-delay", "0.1"),
        *("--out", str(tmp_path)),
    )
    assert status == 0, capsys.readouterr().out
    assert "PASS" in capsys.readouterr().out
    told = json.loads((tmp_path / "loadtest.json").read_text())
    assert [line["balanced"] for line in told["ledger"]] == [True] * 4
    assert told["account"]["recorded"] > 0
    assert told["account"]["duplicates"] > 0
    assert told["account"]["repeats"] > 0
    assert told["account"]["errors"] == {}
    assert told["select_ms"]["p50"] <= told["select_ms"]["p99"] <= told["select_ms"]["max"]
    assert learners(service.url) == []
    html = (tmp_path / "loadtest.html").read_text()
    HTMLParser().feed(html)
    assert "<svg" in html
    assert "src=" not in html
    assert "href=" not in html


def test_a_ramp_finds_a_rate_and_a_missed_one_is_status_1(service, tmp_path, capsys):
    ramp = ("--ramp", "--duration", "0.4", "--max-steps", "3", "--out", str(tmp_path))
    assert loadtest(service.url, *ramp, "--first-rate", "20", "--p99-ms", "5000") == 0
    told = json.loads((tmp_path / "loadtest.json").read_text())
    assert told["highest_rate"] >= 20.0
    assert len(told["ramp"]) == 3
    assert loadtest(service.url, *ramp, "--p99-ms", "0.001") == 1
    assert "no rate held" in capsys.readouterr().out


def test_a_missed_p99_or_rate_is_status_1(service, capsys):
    asked = ("--rate", "50", "--duration", "0.5", "--p99-ms", "0.001", "--least-rate", "1e6")
    assert loadtest(service.url, *asked) == 1
    printed = capsys.readouterr().out
    assert "at most 0.001 ms is allowed" in printed
    assert "at least 1,000,000 is asked" in printed


def test_a_learner_by_name_is_kept_and_only_what_is_new_is_counted(service, capsys):
    for _ in range(2):
        assert loadtest(service.url, "--duration", "0.3", "--learner", "mine", "--keep") == 0
    assert [one["name"] for one in learners(service.url)] == ["mine"]
    told = httpx.get(f"{service.url}/learners/mine").json()
    assert told["decision_ttl_s"] == 300 + 20 * 0.05 + 30
    httpx.delete(f"{service.url}/learners/mine")


def test_ctrl_c_ends_it_with_a_report_and_status_130(service):
    process = subprocess.Popen(
        [sys.executable, "-m", "service.cli", "loadtest", service.url, "--duration", "60"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 30.0
    while not learners(service.url) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "Interrupted" in out
    assert "Traceback" not in err
    assert learners(service.url) == []


def test_a_worker_killed_under_load_loses_nothing_that_was_acknowledged(service, tmp_path):
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "service.cli", "loadtest", service.url, "--quiet"),
            *("--duration", "4", "--rewards", "1", "--duplicates", "0.2"),
            *("--reward-delay", "0.2", "--max-errors", "1000000", "--out", str(tmp_path)),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 30.0
    while not learners(service.url) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(2.0)
    os.kill(workers_of(service.process.pid)[0], signal.SIGKILL)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, out + err
    told = json.loads((tmp_path / "loadtest.json").read_text())
    assert told["account"]["errors"].keys() <= {"connection lost"}
    assert told["account"]["retries"] > 0
    assert all(line["balanced"] for line in told["ledger"])


def workers_of(pid: int) -> list[int]:
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    )
    rows = [line.split(maxsplit=2) for line in listed.stdout.splitlines()]
    return [int(r[0]) for r in rows if r[1] == str(pid) and "service.worker" in r[2]]


def test_a_service_that_is_not_there_is_one_line_and_status_2(capsys):
    assert loadtest("http://127.0.0.1:9") == 2
    assert "did not answer PUT" in capsys.readouterr().err


def test_a_key_is_sent_where_it_is_asked_for(tmp_path, monkeypatch, capsys):
    with OwnService(tmp_path, environment={"LACUNA_API_KEYS": KEY}) as one:
        assert loadtest(one.url, "--duration", "0.3") == 2
        assert "LACUNA_API_KEY" in capsys.readouterr().err
        monkeypatch.setenv("LACUNA_API_KEY", KEY)
        assert loadtest(one.url, "--duration", "0.3") == 0


@pytest.mark.parametrize(
    "arguments",
    [("--rate", "0"), ("--rate", "nan"), ("--arms", "0"), ("--missing", "2"), ("--body", "xml")],
)
def test_a_value_out_of_range_is_refused(arguments, capsys):
    with pytest.raises(SystemExit) as refused:
        loadtest("http://127.0.0.1:9", *arguments)
    assert refused.value.code == 2
    assert arguments[0] in capsys.readouterr().err


@pytest.mark.parametrize(
    ("counted", "lost"),
    [
        (Counted(10, 8, 4.0, 1), []),
        (Counted(10, 7, 4.0, 1), ["rewards"]),
        (Counted(11, 8, 4.0, 1), ["selects"]),
        (Counted(10, 9, 4.5, 1), []),
        (Counted(10, 10, 4.5, 1), ["rewards"]),
        (Counted(10, 8, 3.5, 1), ["sum of rewards"]),
        (Counted(10, 8, 4.0, 0), ["duplicates"]),
    ],
)
def test_the_ledger_allows_only_what_is_in_doubt(counted, lost):
    account = Account(selects=10, recorded=8, reward_sum=4.0, duplicates=1, doubtful_rewards=1)
    found = ledger.entries(account, counted)
    assert [line.what for line in found if not line.balanced] == lost


def test_a_chart_of_nothing_says_so():
    assert "Nothing" in chart([], "seconds")
    for log in (False, True):
        assert "<svg" in chart([("a", "#000", [(0.0, 0.0), (1.0, 0.0)])], "seconds", log=log)
