"""Speed of the service: rates against bare applications, latency at half load, start, sizes."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from clients.loadtest.bodies import Shape

from . import service_report, service_wrk
from .progress import Steps, shown
from .report import Report
from .service_latency import half_load, own_client, sizes
from .service_load import Load, OwnClient
from .service_rates import SIDES, measure_rates, worker_rates
from .service_report import Findings
from .service_servers import lacuna, yardstick
from .service_start import starts
from .service_wrk import Wrk

SHAPE = Shape(arms=20, dimension=32, missing=0.1)


@dataclass(frozen=True, slots=True)
class Plan:
    rounds: int = 15
    duration_s: int = 2
    latency_rounds: int = 9
    latency_s: float = 4.0
    worker_rounds: int = 5
    start_rounds: int = 5
    history_rows: int = 131_072
    arms: tuple[int, ...] = (10, 50, 300)
    dimensions: tuple[int, ...] = (16, 64, 128)
    size_s: float = 6.0

    @property
    def steps(self) -> int:
        rates = (self.rounds + 1) * len(SIDES) + self.worker_rounds
        latency = 2 * self.latency_rounds + 2 * len(self.arms) * len(self.dimensions)
        return rates + latency + self.start_rounds + 1


FULL = Plan()
QUICK = Plan(
    rounds=1,
    duration_s=1,
    latency_rounds=1,
    latency_s=1.0,
    worker_rounds=1,
    start_rounds=1,
    history_rows=2_000,
    arms=(10,),
    dimensions=(16,),
    size_s=1.0,
)


def measure(quick: bool) -> Report:
    plan = QUICK if quick else FULL
    with shown("service") as steps, tempfile.TemporaryDirectory(prefix="lacuna-bench-") as name:
        steps.plan(plan.steps)
        found = _measure(plan, Path(name), steps)
    return service_report.report(found, quick)


def _measure(plan: Plan, folder: Path, steps: Steps) -> Findings:
    load: Load = Wrk(folder, SHAPE) if service_wrk.installed() else OwnClient(SHAPE)
    with ExitStack() as stack:
        servers = {
            "lacuna": stack.enter_context(lacuna(folder / "one")),
            "fastapi": stack.enter_context(yardstick("fastapi")),
            "asgi": stack.enter_context(yardstick("asgi")),
        }
        urls = {name: server.url for name, server in servers.items()}
        rates = measure_rates(
            load,
            servers,
            shape=SHAPE,
            rounds=plan.rounds,
            duration_s=plan.duration_s,
            tick=lambda: steps.done("rates"),
        )
        half = half_load(
            urls,
            rates.median("select json"),
            shape=SHAPE,
            rounds=plan.latency_rounds,
            duration_s=plan.latency_s,
            tick=lambda: steps.done("latency at half load"),
        )
        clients = own_client(
            load,
            urls["lacuna"],
            shape=SHAPE,
            rounds=plan.latency_rounds,
            duration_s=plan.duration_s,
            tick=lambda: steps.done("wrk and our own client"),
        )
        cells = sizes(
            urls["lacuna"],
            (plan.arms, plan.dimensions),
            duration_s=plan.size_s,
            tick=lambda: steps.done("sizes"),
        )
    with ExitStack() as stack:
        # Where they run is the system's choice: two workers need both cores.
        pair = [
            stack.enter_context(
                lacuna(folder / f"workers-{count}", "--workers", str(count), placed=False)
            ).url
            for count in (1, 2)
        ]
        workers = worker_rates(
            load,
            pair,
            shape=SHAPE,
            rounds=plan.worker_rounds,
            duration_s=plan.duration_s,
            tick=lambda: steps.done("two workers"),
        )
    started = starts(
        folder,
        rows=plan.history_rows,
        dimension=SHAPE.dimension,
        rounds=plan.start_rounds,
        tick=lambda: steps.done("start with history"),
    )
    return Findings(
        rates,
        half,
        clients,
        cells,
        workers,
        started,
        history_rows=plan.history_rows,
        cores=os.cpu_count() or 1,
        generator=load.name,
    )
