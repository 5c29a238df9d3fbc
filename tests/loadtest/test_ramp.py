import pytest

from clients.loadtest import ramp
from clients.loadtest.crew import Found
from clients.loadtest.job import Account, Step


def service_that_holds(capacity: float, tried: list[float]):
    def run(rate: float) -> Found:
        tried.append(rate)
        found = Found(Step(1.0, rate), 1.0, elapsed_s=1.0)
        found.selects.add([0.005 if rate <= capacity else 0.5] * 100)
        return found

    return run


@pytest.mark.parametrize("capacity", [30.0, 200.0, 900.0, 12_345.0])
def test_the_highest_rate_that_holds_is_found(capacity):
    rates: list[float] = []
    tried = ramp.search(
        service_that_holds(capacity, rates), first_rate=200.0, p99_ms=20.0, most_steps=40
    )
    best = ramp.highest(tried)
    assert best is not None
    assert capacity / ramp.CLOSE_ENOUGH <= best.rate <= capacity
    assert [one.rate for one in tried] == rates


def test_a_service_that_never_holds_has_no_highest_rate():
    tried = ramp.search(service_that_holds(0.0, []), first_rate=200.0, p99_ms=20.0, most_steps=5)
    assert len(tried) == 5
    assert ramp.highest(tried) is None


def test_an_error_ends_the_search():
    def run(rate: float) -> Found:
        found = Found(Step(1.0, rate), 1.0, elapsed_s=1.0, account=Account(errors={"timeout": 1}))
        found.selects.add([0.001])
        return found

    tried = ramp.search(run, first_rate=200.0, p99_ms=20.0, most_steps=5)
    assert [one.held for one in tried] == [False]


def test_a_queue_that_is_left_at_the_end_is_not_held():
    found = Found(Step(1.0, 100.0), 1.0, elapsed_s=1.2)
    found.selects.add([0.001] * 1_000)
    assert not ramp.holds(found, 20.0)
