"""Latency, open loop: at half of the highest rate beside the yardstick, and by size."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any, Literal

import numpy as np

from clients.loadtest.bodies import Shape
from clients.loadtest.histogram import Histogram
from clients.loadtest.job import Step

from .service_load import CONNECTIONS, Load, drive
from .service_rates import warm
from .timing import Floats, Ratio, interleaved, ratio

SHARES = (0.5, 0.95, 0.99, 0.999)
TAIL_COUNT = 2_000  # fewer answers do not have a p99.9


@dataclass(frozen=True, slots=True)
class HalfLoad:
    """p99 of ours and of the yardstick, ms, at the same rate, in turns."""

    rate: float
    ours: Floats  # (rounds,)
    theirs: Floats

    @property
    def over(self) -> Ratio:
        return ratio(self.ours, self.theirs)

    def to_dict(self) -> dict[str, Any]:
        return {
            "rate": self.rate,
            "ours_p99_ms": self.ours.tolist(),
            "theirs_p99_ms": self.theirs.tolist(),
            "ratio": asdict(self.over),
        }


def half_load(
    urls: dict[str, str],
    highest_rate: float,
    *,
    shape: Shape,
    rounds: int,
    duration_s: float,
    tick: Callable[[], None],
) -> HalfLoad:
    learner = f"bench-{uuid.uuid4().hex[:8]}"
    warm(urls["lacuna"], learner, shape)
    rate = highest_rate / 2.0

    def p99_ms(url: str) -> float:
        prefix = f"{uuid.uuid4().hex[:12]}-"
        found = drive(url, shape, learner, prefix, Step(duration_s, rate))
        return 1e3 * found.selects.quantile_s(0.99)

    sides = [lambda: p99_ms(urls["lacuna"]), lambda: p99_ms(urls["fastapi"])]
    found = interleaved(sides, rounds, tick)
    return HalfLoad(rate, found[:, 0], found[:, 1])


def own_client(
    load: Load,
    url: str,
    *,
    shape: Shape,
    rounds: int,
    duration_s: int,
    tick: Callable[[], None],
) -> Floats:
    """Highest rate of the same endpoint by wrk, and by the project's own client, (rounds, 2)."""
    learner = f"bench-{uuid.uuid4().hex[:8]}"
    warm(url, learner, shape)

    def by_wrk() -> float:
        return load.run(url, "json", learner, f"{uuid.uuid4().hex[:12]}-", duration_s).rate

    def by_own() -> float:
        prefix, step = f"{uuid.uuid4().hex[:12]}-", Step(float(duration_s))
        return drive(url, shape, learner, prefix, step, connections=CONNECTIONS).rate

    return interleaved([by_wrk, by_own], rounds, tick)


@dataclass(frozen=True, slots=True)
class Cell:
    """One size: its highest rate, and latency at half of it."""

    arms: int
    dimension: int
    body: Literal["json", "compact"]
    rate: float
    answers: int
    quantiles_ms: list[float]  # at SHARES; NaN where there were too few answers

    def to_dict(self) -> dict[str, Any]:
        known = [None if np.isnan(ms) else ms for ms in self.quantiles_ms]
        return asdict(self) | {"quantiles_ms": known}


def sizes(
    url: str,
    grid: tuple[tuple[int, ...], tuple[int, ...]],
    *,
    duration_s: float,
    tick: Callable[[], None],
) -> list[Cell]:
    cells = []
    bodies: tuple[Literal["json", "compact"], ...] = ("json", "compact")
    for arms, dimension in product(*grid):
        shape = Shape(arms, dimension)
        learner = f"bench-{uuid.uuid4().hex[:8]}"
        warm(url, learner, shape, 500)
        for body in bodies:
            prefix = uuid.uuid4().hex[:10]
            closed, opened = Step(duration_s / 2), Step(duration_s)
            full = drive(
                url,
                shape,
                learner,
                f"{prefix}c-",
                closed,
                body=body,
                connections=CONNECTIONS,
            )
            opened = Step(duration_s, max(1.0, full.rate / 2.0))
            half = drive(url, shape, learner, f"{prefix}o-", opened, body=body)
            cells.append(
                Cell(
                    arms,
                    dimension,
                    body,
                    full.rate,
                    half.selects.count,
                    _quantiles_ms(half.selects),
                )
            )
            tick()
    return cells


def _quantiles_ms(histogram: Histogram) -> list[float]:
    values = histogram.quantiles_ms(SHARES)
    return values if histogram.count >= TAIL_COUNT else [*values[:-1], float("nan")]
