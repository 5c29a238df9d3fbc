import signal
import subprocess
import sys
import time

import httpx
import pytest

from clients.serving import OwnService
from service import cli


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with OwnService(tmp_path_factory.mktemp("data")) as one:
        yield one


def demo(*arguments):
    return cli.main(["demo", "--quiet", *arguments])


def test_it_ends_with_a_summary_and_a_picture(tmp_path, capsys):
    picture = tmp_path / "demo.png"
    assert demo("--duration", "3", "--pages", "40", "--out", str(picture)) == 0
    printed = capsys.readouterr().out
    assert "Lacuna got" in printed
    assert "against zero-fill" in printed
    assert "are simulated" in printed
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_clicks_that_never_come_are_booked_as_defaults(service, tmp_path, capsys):
    arguments = ("--url", service.url, "--pages", "40", "--no-picture", "--learner-prefix", "d")
    assert demo(*arguments, "--duration", "3") == 0
    deadline = time.monotonic() + 30.0
    told = {}
    while time.monotonic() < deadline:
        told = httpx.get(f"{service.url}/learners/d-lacuna").json()
        if told["pending"] == 0:
            break
        time.sleep(0.25)
    assert told["rounds"] == told["rewards"] > 50
    assert 0 < told["defaults"] < told["rewards"]
    assert 0.0 < told["mean_reward"] < 1.0
    assert min(told["observed_rate"]) < 0.95
    assert told["observed_rate"][-1] == 1.0
    assert told["decision_ttl_s"] == 300


def test_a_signal_ends_one_that_would_run_for_ever(service):
    process = subprocess.Popen(
        [sys.executable, "-m", "service.cli", "demo", "--url", service.url, "--forever"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 30.0
    while time.monotonic() < deadline:
        told = httpx.get(f"{service.url}/learners/demo-lacuna")
        if told.status_code == 200 and told.json()["rounds"] > 5:
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert "pages in" in out
    assert "Traceback" not in err


def test_a_service_that_is_not_there_is_one_line_and_status_2(monkeypatch, capsys):
    monkeypatch.setattr("clients.demo.command.READY_WAIT_S", 0.0)
    assert demo("--url", "http://127.0.0.1:9") == 2
    assert "does not answer" in capsys.readouterr().err


def test_a_service_that_asks_for_a_key_says_so(tmp_path, capsys):
    with OwnService(tmp_path, environment={"LACUNA_API_KEYS": "sixteen-characters"}) as one:
        assert demo("--url", one.url, "--duration", "1") == 2
    assert "LACUNA_API_KEY" in capsys.readouterr().err
