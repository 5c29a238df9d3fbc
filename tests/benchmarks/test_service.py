"""The servers and the load are tested in tests/loadtest; here is what is made of the figures."""

from dataclasses import replace

import httpx
import numpy as np
import pytest

from benchmarks import service_report
from benchmarks.report import text, to_dict
from benchmarks.service_latency import Cell, HalfLoad
from benchmarks.service_load import Rate
from benchmarks.service_rates import SIDES, Rates
from benchmarks.service_report import Findings
from benchmarks.service_servers import yardstick


@pytest.fixture
def found():
    rates = dict(zip(SIDES, (2_100.0, 1_000.0, 1_300.0, 8_000.0, 3_000.0, 2_000.0), strict=True))
    measured = Rates()
    for side, rate in rates.items():
        measured.add(side, Rate(rate, 1_000), (0.1, 0.02))
    quantiles = [1.0, 2.0, 3.0, float("nan")]
    return Findings(
        measured,
        HalfLoad(600.0, np.array([3.0, 3.0]), np.array([2.0, 2.0])),
        np.array([[1_000.0, 990.0]]),
        [Cell(10, 16, "json", 2_000.0, 900, quantiles)],
        np.array([[1_000.0, 1_100.0]]),
        np.array([[2.0, 1.0]]),
        history_rows=131_072,
        cores=2,
        generator="wrk",
    )


def test_every_bar_is_judged_but_the_one_that_the_cores_cannot_show(found, tmp_path):
    report = service_report.report(found, quick=False)
    passed = [bar.passed for bar in report.bars]
    assert found.rates.cpu_us("reward") == (100.0, 20.0)
    assert passed == [True, True, True, True, True, None, True]
    assert "cannot show it" in text(report)
    report.draw(tmp_path / "service.png")
    assert (tmp_path / "service.png").stat().st_size > 0
    assert to_dict(report)["sizes"][0]["quantiles_ms"] == [1.0, 2.0, 3.0, None]


def test_with_cores_enough_two_workers_are_judged(found):
    bars = service_report.judge(replace(found, cores=8), quick=False)
    assert bars[5].passed is False


def test_a_quick_run_judges_nothing(found):
    assert {bar.passed for bar in service_report.judge(found, quick=True)} == {None}


@pytest.mark.parametrize("name", ["fastapi", "asgi"])
def test_a_yardstick_answers_what_it_is_sent(name):
    select = {"arms": [{"id": "a", "features": [0.5, None]}], "event_id": "e1"}
    with yardstick(name) as running:
        assert httpx.post(f"{running.url}/select", json=select).json()["index"] == 7
        reward = httpx.post(f"{running.url}/reward", json={"event_id": "e1", "reward": 1.0})
        assert reward.status_code == 200
