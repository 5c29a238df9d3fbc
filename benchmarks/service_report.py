"""What was found of the service: bars, tables, JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from . import service_pictures
from .report import Bar, Report, Table
from .service_latency import SHARES, Cell, HalfLoad
from .service_load import CONNECTIONS
from .service_rates import SIDES, Rates
from .service_servers import placing
from .timing import Floats, Ratio, ratio

SELECT_JSON, SELECT_COMPACT, REWARD = 1.2, 2.0, 1.2  # times (a), the FastAPI endpoint
HALF_LOAD = 2.0  # times the p99 of (a)
OWN_CLIENT = 0.85  # of wrk
WORKERS, CORES_FOR_WORKERS = 1.6, 4  # two workers, the store and the load generator
START = 3.0  # times a start with nothing
PACKAGES = ("fastapi", "uvicorn", "uvloop", "httptools", "pydantic", "msgspec", "numpy", "numba")


@dataclass(frozen=True, slots=True)
class Findings:
    rates: Rates
    half: HalfLoad
    clients: Floats  # (rounds, 2)  wrk, our own
    cells: Sequence[Cell]
    workers: Floats  # (rounds, 2)  one, two
    starts: Floats  # (rounds, 2)  with history, with none; seconds
    history_rows: int
    cores: int
    generator: str

    @property
    def own_over_wrk(self) -> Ratio:
        return ratio(self.clients[:, 1], self.clients[:, 0])

    @property
    def two_over_one(self) -> Ratio:
        return ratio(self.workers[:, 1], self.workers[:, 0])

    @property
    def history_over_none(self) -> Ratio:
        return ratio(self.starts[:, 0], self.starts[:, 1])


def report(found: Findings, quick: bool) -> Report:
    return Report(
        "service",
        quick,
        [_rates(found), _latency(found), _sizes(found.cells), _start(found)],
        judge(found, quick),
        {
            "placing": placing(),
            "generator": found.generator,
            "connections": CONNECTIONS,
            "rates": found.rates.found,
            "worker_cpu_us": found.rates.worker_us,
            "store_cpu_us": found.rates.store_us,
            "half_load": found.half.to_dict(),
            "wrk_and_own_client": found.clients.tolist(),
            "one_and_two_workers": found.workers.tolist(),
            "start_s_with_history_and_with_none": found.starts.tolist(),
            "history_rows": found.history_rows,
            "shares": SHARES,
            "sizes": [cell.to_dict() for cell in found.cells],
        },
        lambda path: service_pictures.draw(found, path),
        PACKAGES,
    )


def judge(found: Findings, quick: bool) -> list[Bar]:
    def least(what: str, value: Ratio, bar: float, judged: bool = True) -> Bar:
        passed = value.value >= bar if judged and not quick else None
        return Bar(what, str(value), f"≥ {bar:g}", passed)

    def most(what: str, value: Ratio, bar: float) -> Bar:
        return Bar(what, str(value), f"≤ {bar:g}", None if quick else value.value <= bar)

    over = found.rates.over
    enough = found.cores >= CORES_FOR_WORKERS
    return [
        least("select, JSON, over (a)", over("select json", "(a) select"), SELECT_JSON),
        least("select, compact, over (a)", over("select compact", "(a) select"), SELECT_COMPACT),
        least("reward over (a)", over("reward", "(a) reward"), REWARD),
        most("p99 at half load over (a)'s", found.half.over, HALF_LOAD),
        least("own client over wrk", found.own_over_wrk, OWN_CLIENT, found.generator == "wrk"),
        least(
            "two workers over one"
            + ("" if enough else f" ({found.cores} cores, shared by all, cannot show it)"),
            found.two_over_one,
            WORKERS,
            enough,
        ),
        most(
            f"start with {found.history_rows:,} rows over one with none",
            found.history_over_none,
            START,
        ),
    ]


def _rates(found: Findings) -> Table:
    head = ["", "per second", "over (a)", "over (b)", "CPU µs, worker", "store"]
    rows = []
    for side in SIDES:
        yard = "(a) reward" if "reward" in side else "(a) select"
        worker_us, store_us = found.rates.cpu_us(side)
        rows.append(
            [
                side,
                f"{found.rates.median(side):,.0f}",
                str(found.rates.over(side, yard)),
                f"{found.rates.over(side, '(b) select').value:.2f}",
                f"{worker_us:,.0f}" if worker_us else "–",
                f"{store_us:,.0f}" if store_us else "–",
            ]
        )
    title = (
        f"Highest rate, one worker, K=20 d=32, {CONNECTIONS} connections, closed loop by "
        f"{found.generator}; {placing()}"
    )
    return Table(title, [head, *rows])


def _latency(found: Findings) -> Table:
    head = ["", "p99 ms, median", "quartiles"]
    rows = []
    for name, values in (("Lacuna", found.half.ours), ("(a)", found.half.theirs)):
        low, high = np.quantile(values, (0.25, 0.75))
        rows.append([name, f"{np.median(values):.2f}", f"{low:.2f} to {high:.2f}"])
    return Table(f"Open loop, {found.half.rate:,.0f} selects due per second", [head, *rows])


def _sizes(cells: Sequence[Cell]) -> Table:
    head = ["K, d", "body", "per second", *(f"p{100 * share:g}" for share in SHARES), "answers"]
    rows = [
        [
            f"{cell.arms}, {cell.dimension}",
            cell.body,
            f"{cell.rate:,.0f}",
            *("–" if np.isnan(ms) else f"{ms:,.2f}" for ms in cell.quantiles_ms),
            f"{cell.answers:,}",
        ]
        for cell in cells
    ]
    return Table("Highest rate, and latency in ms at half of it, open loop", [head, *rows])


def _start(found: Findings) -> Table:
    with_history, with_none = np.median(found.starts, axis=0)
    one, two = np.median(found.workers, axis=0)
    wrk, own = np.median(found.clients, axis=0)
    return Table(
        "Medians",
        [
            ["", "", "against"],
            [
                "from the command to the first answer, s",
                f"{with_history:.2f} with history",
                f"{with_none:.2f} with none",
            ],
            ["selects per second, two workers", f"{two:,.0f}", f"{one:,.0f} by one"],
            [
                "selects per second, our client's load",
                f"{own:,.0f}",
                f"{wrk:,.0f} by {found.generator}",
            ],
        ],
    )
