"""Speed of the service: rates against bare applications, latency at half load, start, sizes."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from clients.loadtest.bodies import Shape

from . import service_pictures
from .progress import shown
from .report import Bar, Report, Table
from .service_rates import SIDES, Rates, measure_rates
from .service_servers import lacuna, placing, yardstick
from .service_wrk import CONNECTIONS, Wrk

SELECT_JSON, SELECT_COMPACT, REWARD = 1.2, 2.0, 1.2  # times (a), the FastAPI endpoint
SHAPE = Shape(arms=20, dimension=32, missing=0.1)
PACKAGES = ("fastapi", "uvicorn", "pydantic", "msgspec", "numpy", "numba")


@dataclass(frozen=True, slots=True)
class Plan:
    rounds: int = 7
    duration_s: int = 4


FULL = Plan()
QUICK = Plan(rounds=1, duration_s=1)


def measure(quick: bool) -> Report:
    plan = QUICK if quick else FULL
    with shown("service") as steps, tempfile.TemporaryDirectory(prefix="lacuna-bench-") as name:
        folder = Path(name)
        steps.plan((plan.rounds + 1) * len(SIDES))
        wrk = Wrk(folder, SHAPE)
        with ExitStack() as stack:
            urls = {
                "lacuna": stack.enter_context(lacuna(folder / "data")).url,
                "fastapi": stack.enter_context(yardstick("fastapi")),
                "asgi": stack.enter_context(yardstick("asgi")),
            }
            rates = measure_rates(
                wrk,
                urls,
                shape=SHAPE,
                rounds=plan.rounds,
                duration_s=plan.duration_s,
                tick=lambda: steps.done("rates"),
            )
    return Report(
        "service",
        quick,
        [_rates(rates)],
        judge(rates, quick),
        {"placing": placing(), "connections": CONNECTIONS, "rates": rates.to_dict()},
        lambda path: service_pictures.draw(rates, path),
        PACKAGES,
    )


def judge(rates: Rates, quick: bool) -> list[Bar]:
    bars = []
    for side, yard, least in (
        ("select json", "(a) select", SELECT_JSON),
        ("select compact", "(a) select", SELECT_COMPACT),
        ("reward", "(a) reward", REWARD),
    ):
        found = rates.over(side, yard)
        passed = None if quick else found.value >= least
        bars.append(Bar(f"{side} over {yard}", str(found), f"≥ {least:g}", passed))
    return bars


def _rates(rates: Rates) -> Table:
    head = ["", "per second", "over (a)", "over (b)"]
    rows = []
    for side in SIDES:
        yard = "(a) reward" if "reward" in side else "(a) select"
        rows.append(
            [
                side,
                f"{rates.median(side):,.0f}",
                str(rates.over(side, yard)),
                f"{rates.over(side, '(b) select').value:.2f}",
            ]
        )
    return Table(f"Highest rate, {CONNECTIONS} connections, wrk; {placing()}", [head, *rows])
