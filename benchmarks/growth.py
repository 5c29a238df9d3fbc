"""What a learner costs as it grows: by rewards folded, by rows to refresh, by features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from service.learner import Arms, Learner, LearnerConfig, dump
from service.learner.history import Rows

from .rounds import Ours, draw
from .timing import Floats, Ratio, each_us, interleaved, mean_us, ratio

ARMS = 20
ESTIMATE_REPEATS = 15
REFRESH_REPEATS = 3
COUNTED_ROWS = 1_000
# With few rows for its features a covariance is near singular, and its guard takes longer.
SETTLED_ROWS = 20_000


@dataclass(frozen=True, slots=True)
class Flatness:
    """The median select of a learner with few rewards and of one with many."""

    few: int
    many: int
    few_us: float
    many_us: float
    ratio: Ratio

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Size:
    """One learner of d features."""

    dimension: int
    estimate_us: float
    refresh_rows: int
    refresh_s: float | None  # None where it was not asked for
    state_bytes: int  # without history
    row_bytes: float  # more for every reward kept


def flatness(
    *, few: int, many: int, dimension: int, selects: int, chunks: int, tick: Callable[[], None]
) -> Flatness:
    """A select does not look at past rewards, so that its time must not know their number.

    Medians of single selects: the estimate that is made anew now and then, more often by the
    younger learner, is in neither.
    """
    rounds = draw(selects, ARMS, dimension)
    young, old = Ours(rounds), Ours(rounds)
    young.play(few)
    old.play(many)
    tick()

    def median(side: Ours) -> float:
        return float(np.median(each_us(side.select, selects)))

    found = interleaved([lambda: median(young), lambda: median(old)], chunks, tick)
    below, above = found[:, 0], found[:, 1]
    return Flatness(
        few, many, float(np.median(below)), float(np.median(above)), ratio(above, below)
    )


def size(dimension: int, *, refresh_rows: int | None) -> Size:
    rows = max(COUNTED_ROWS, refresh_rows or SETTLED_ROWS)
    learner, kept = _filled(dimension, rows)
    estimate_us = [mean_us(lambda _: learner.new_estimate(), 1) for _ in range(ESTIMATE_REPEATS)]
    empty = len(dump(learner))
    learner.learn(_part(kept, 0, COUNTED_ROWS))
    row_bytes = (len(dump(learner)) - empty) / COUNTED_ROWS
    refresh_s = None
    if refresh_rows is not None:
        learner.learn(_part(kept, COUNTED_ROWS, rows))
        spent = [mean_us(lambda _: _refresh(learner), 1) for _ in range(REFRESH_REPEATS)]
        refresh_s = float(np.median(spent)) / 1e6
    return Size(dimension, float(np.median(estimate_us)), rows, refresh_s, empty, row_bytes)


def _refresh(learner: Learner) -> None:
    """As the round does in which it falls due, its estimate included."""
    learner.next_refresh = learner.model.count + 1
    learner.prepare()


def _filled(dimension: int, rows: int) -> tuple[Learner, Rows]:
    """A learner that has an estimate but no reward, and rows for it to learn."""
    count = -(-rows // ARMS)
    rounds = draw(count, ARMS, dimension)
    arms = Arms.of(rounds.x.reshape(-1, dimension))
    y: Floats = rounds.reward.reshape(-1)
    learner = Learner(LearnerConfig(dimension))
    learner.moments.add(arms)
    learner.prepare()
    return learner, Rows(arms.z[:rows], arms.observed[:rows], y[:rows])


def _part(rows: Rows, start: int, stop: int) -> Rows:
    return Rows(rows.z[start:stop], rows.observed[start:stop], rows.y[start:stop])
