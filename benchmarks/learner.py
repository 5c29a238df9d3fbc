"""Speed of the learner in process: one select and one reward, against Vowpal Wabbit's."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np

from . import growth, pictures
from .growth import Flatness, Size
from .progress import Steps, shown
from .report import Bar, Report, Table
from .rounds import MISSING, Ours, Rounds, draw
from .timing import Floats, Ratio, each_us, interleaved, mean_us, ratio
from .vowpal import OPTIONS, Vowpal, question

FASTER, JUDGED = 6.0, (20, 32)  # times, at (K, d)
FLAT = 1.2


@dataclass(frozen=True, slots=True)
class Plan:
    arms: tuple[int, ...] = (20, 100, 300)  # K
    dimensions: tuple[int, ...] = (8, 32, 128)  # d
    # Estimates are made anew as the arms seen grow by a share: the same number of arms seen
    # before the clock starts is the same age, whatever K.
    warm_up_arms: int = 200_000
    chunk_arms: int = 12_000
    chunk_rounds: int = 200  # at most
    chunks: int = 15
    judged_chunks: int = 41
    few_rewards: int = 1_000
    many_rewards: int = 100_000
    refresh_rows: int = 131_072
    wide: tuple[int, ...] = (512,)  # sizes without a refresh

    def rounds(self, arms: int) -> int:
        return max(1, min(self.chunk_rounds, self.chunk_arms // arms))


FULL = Plan()
QUICK = Plan(
    arms=(20,),
    dimensions=(8, 32),
    warm_up_arms=4_000,
    chunk_rounds=50,
    chunks=3,
    judged_chunks=3,
    few_rewards=100,
    many_rewards=1_000,
    refresh_rows=4_096,
    wide=(),
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One (K, d), microseconds."""

    arms: int
    dimension: int
    warm_up_rounds: int
    chunk_rounds: int
    ours: Floats  # (chunks,)  mean of a round, select and reward
    theirs: Floats  # (chunks,)
    select_us: float  # median of one
    reward_us: float
    text_us: float  # what building a round's text for Vowpal Wabbit took; in none of its times

    @property
    def faster(self) -> Ratio:
        return ratio(self.theirs, self.ours)

    def to_dict(self) -> dict[str, Any]:
        own = {"ours": self.ours.tolist(), "theirs": self.theirs.tolist()}
        return asdict(self) | own | {"faster": asdict(self.faster)}


def measure(quick: bool) -> Report:
    plan = QUICK if quick else FULL
    cells, sizes = [], []
    with shown("learner") as steps:
        grid = list(product(plan.dimensions, plan.arms))
        chunks = {cell: _chunks(plan, *cell) for cell in grid}
        widths = [*plan.dimensions, *plan.wide]
        steps.plan(sum(chunks.values()) + len(grid) + plan.judged_chunks + 1 + len(widths))
        for d, arms in grid:
            cells.append(measure_cell(plan, arms, d, steps))
        flat = growth.flatness(
            few=plan.few_rewards,
            many=plan.many_rewards,
            dimension=JUDGED[1],
            selects=plan.chunk_rounds,
            chunks=plan.judged_chunks,
            tick=lambda: steps.done("select by rewards folded"),
        )
        for d in widths:
            rows = None if d in plan.wide else plan.refresh_rows
            sizes.append(growth.size(d, refresh_rows=rows))
            steps.done(f"refresh, d={d}")
    return Report(
        "learner",
        quick,
        [_grid(cells), _growth(flat, sizes)],
        judge(cells, flat, quick),
        {
            "peer": f"vowpalwabbit {OPTIONS}",
            "missing": MISSING,
            "cells": [cell.to_dict() for cell in cells],
            "flatness": flat.to_dict(),
            "sizes": [asdict(size) for size in sizes],
        },
        lambda path: pictures.draw_speed(cells, path),
    )


def _chunks(plan: Plan, dimension: int, arms: int) -> int:
    return plan.judged_chunks if (arms, dimension) == JUDGED else plan.chunks


def measure_cell(plan: Plan, arms: int, dimension: int, steps: Steps) -> Cell:
    count = plan.rounds(arms)
    rounds = draw(count, arms, dimension)
    what = f"K={arms} d={dimension}"
    ours = Ours(rounds)
    text_us = mean_us(lambda number: question(rounds.x[number]), count)
    with _vowpal(rounds) as theirs:
        warm_up = max(count, plan.warm_up_arms // arms)
        ours.play(warm_up)
        for number in range(warm_up):
            theirs.round(number % count)
        steps.done(what)
        found = interleaved(
            [lambda: mean_us(ours.round, count), lambda: mean_us(theirs.round, count)],
            _chunks(plan, dimension, arms),
            lambda: steps.done(what),
        )
    alone = np.array([_apart(ours, number % count) for number in range(5 * count)])  # (n, 2)
    select_us, reward_us = np.median(alone, axis=0).tolist()
    return Cell(
        arms, dimension, warm_up, count, found[:, 0], found[:, 1], select_us, reward_us, text_us
    )


def _vowpal(rounds: Rounds) -> Vowpal:
    arms = rounds.reward.shape[1]
    paid = [row[number % arms] for number, row in enumerate(rounds.reward.tolist())]
    return Vowpal(rounds.x, paid)


def _apart(ours: Ours, number: int) -> tuple[float, float]:
    select = each_us(lambda _: ours.select(number), 1)[0]
    reward = each_us(lambda _: ours.reward(number), 1)[0]
    return float(select), float(reward)


def judge(cells: list[Cell], flat: Flatness, quick: bool) -> list[Bar]:
    judged = next(cell for cell in cells if (cell.arms, cell.dimension) == JUDGED)
    return [
        Bar(
            "times faster than Vowpal Wabbit, K={} d={}".format(*JUDGED),
            str(judged.faster),
            f"≥ {FASTER:g}",
            None if quick else judged.faster.value >= FASTER,
        ),
        Bar(
            f"select at {flat.many:,} rewards over one at {flat.few:,}",
            str(flat.ratio),
            f"≤ {FLAT:g}",
            None if quick else flat.ratio.value <= FLAT,
        ),
    ]


def _grid(cells: list[Cell]) -> Table:
    head = ["K, d", "Lacuna µs", "VW µs", "faster", "quartiles", "select µs", "reward µs"]
    rows = [
        [
            f"{cell.arms}, {cell.dimension}",
            f"{np.median(cell.ours):,.1f}",
            f"{np.median(cell.theirs):,.1f}",
            f"{cell.faster.value:.2f} ×",
            f"{cell.faster.low:.2f} to {cell.faster.high:.2f}",
            f"{cell.select_us:,.1f}",
            f"{cell.reward_us:,.1f}",
        ]
        for cell in cells
    ]
    return Table("One select and one reward, 10 % missing, medians", [head, *rows])


def _growth(flat: Flatness, sizes: list[Size]) -> Table:
    head = ["d", "estimate µs", f"refresh of {sizes[0].refresh_rows:,} rows", "state", "a row"]
    rows = [
        [
            str(size.dimension),
            f"{size.estimate_us:,.0f}",
            "–" if size.refresh_s is None else f"{1e3 * size.refresh_s:,.0f} ms",
            f"{size.state_bytes:,} bytes",
            f"{size.row_bytes:,.0f} bytes",
        ]
        for size in sizes
    ]
    title = (
        f"A select takes {flat.few_us:.1f} µs after {flat.few:,} rewards and "
        f"{flat.many_us:.1f} µs after {flat.many:,}; what else grows, by features"
    )
    return Table(title, [head, *rows])
