"""What is measured, and how it is counted. The numbers of all workers are read together."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from prometheus_client import generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from service import __version__
from service.engine.edge import store_errors
from service.engine.engine import Engine
from service.engine.registry import Engines
from service.engine.stats import BATCH_BUCKETS, Stats
from service.errors import LacunaError

from . import board
from .board import Board, Labels

SYNC_INTERVAL_S = 0.5
MAX_LEARNERS = 100  # with labels of their own; the others are counted together
OTHERS = "_others"

SECONDS = (
    *(0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032),
    *(0.064, 0.125, 0.25, 0.5, 1.0, 2.5, 5.0),
)


@dataclass(frozen=True, slots=True)
class Family:
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


LEARNER = ("learner",)
HISTOGRAMS = {
    "request_seconds": Family(
        "Time from the request's head to the end of its answer", ("endpoint", "status"), SECONDS
    ),
    "batch_size": Family("Requests answered by one commit", LEARNER, BATCH_BUCKETS),
}
COUNTERS = {
    "selects": Family("Selects answered", ("learner", "degraded")),
    "rewards": Family("Rewards answered, by what became of them", ("learner", "status")),
    "repeated_selects": Family("Selects whose event was decided before", LEARNER),
    "defaults": Family("Default rewards booked", LEARNER),
    "round_trips": Family("Calls to the store", LEARNER),
    "entries": Family("Features that came, observed or missing", LEARNER),
    "missing_entries": Family("Features that were missing", LEARNER),
    "refreshes": Family("Refreshes of past choices", LEARNER),
    "refresh_seconds": Family("Time spent in refreshes", LEARNER),
    "estimates": Family("Estimates of the features' distribution", LEARNER),
    "degraded_seconds": Family("Time without the store", LEARNER),
    "reloads": Family("Starts anew, because the store came back older or changed", LEARNER),
    "dropped_decisions": Family("Made without the store, too many to keep", LEARNER),
    "lost_decisions": Family("Made without the store, after another's", LEARNER),
    "merged_workers": Family("Moments of workers that were gone, taken over", LEARNER),
    "snapshots": Family("Snapshots of the model written", LEARNER),
}
# The largest of all workers: the worst, or the same everywhere.
GAUGES = {
    "pending": Family("Decisions whose reward may still come", LEARNER),
    "staleness_seconds": Family("Since a worker last held all rewards, the longest", LEARNER),
    "missing_rate": Family("Share of all features seen that were missing", LEARNER),
    "degraded": Family("1 where a worker decides without the store", LEARNER),
    "model_version": Family("Rewards in the model", LEARNER),
}
# An engine's own numbers, by the name of their counter.
FROM_STATS = {
    **{name: name for name in ("repeated_selects", "defaults", "round_trips", "entries")},
    **{name: name for name in ("missing_entries", "refreshes", "estimates", "reloads")},
    **{name: name for name in ("dropped_decisions", "lost_decisions", "merged_workers")},
    "snapshots": "snapshots",
    "refresh_seconds": "refresh_s",
}


class Metrics:
    def __init__(self, directory: str, number: int) -> None:
        self._directory = directory
        self._board = Board(directory, number)
        self._board.forget(GAUGES)
        self._cells = self._board.cells
        self._answered: dict[tuple[str, int], int] = {}
        self._counted: dict[tuple[str, str, str], int] = {}
        self._learners: set[str] = set()
        self._seen: dict[str, tuple[Stats, list[float]]] = {}  # what is on the board already
        self._engines: Engines | None = None
        self._task: asyncio.Task[None] | None = None

    # In every request -----------------------------------------------------------------------

    def answered(self, endpoint: str, status: int, elapsed_s: float) -> None:
        begin = self._answered.get((endpoint, status))
        if begin is None:
            labels = (endpoint, str(status))
            begin = self._board.at("request_seconds", labels, len(SECONDS) + 2)
            self._answered[endpoint, status] = begin
        self._cells[begin + bisect_left(SECONDS, elapsed_s)] += 1.0
        self._cells[begin + len(SECONDS) + 1] += elapsed_s

    def selected(self, learner: str, degraded: bool) -> None:
        self._count("selects", learner, "true" if degraded else "false")

    def rewarded(self, learner: str, status: str) -> None:
        self._count("rewards", learner, status)

    def _count(self, name: str, learner: str, label: str) -> None:
        begin = self._counted.get((name, learner, label))
        if begin is None:
            begin = self._board.at(name, (self._label(learner), label))
            self._counted[name, learner, label] = begin
        self._cells[begin] += 1.0

    # Now and then ---------------------------------------------------------------------------

    def start(self, engines: Engines) -> None:
        self._engines = engines
        self._task = asyncio.create_task(self._keep_in_step(), name="metrics")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        self.sync()

    async def _keep_in_step(self) -> None:
        while True:
            await asyncio.sleep(SYNC_INTERVAL_S)
            self.sync()

    def sync(self) -> None:
        """The engines' own numbers onto the board."""
        if self._engines is None:
            return
        for name, stats in self._engines.stats.items():
            self._add(name, stats, self._engines.alive.get(name))
        for name in self._seen.keys() - self._engines.stats.keys():
            del self._seen[name]
        for name, engine in self._engines.alive.items():
            self._show(name, engine)

    def _add(self, name: str, stats: Stats, engine: Engine | None) -> None:
        since = None if engine is None else engine.alone.since
        away_s = 0.0 if since is None else time.monotonic() - since
        now = [float(getattr(stats, field)) for field in FROM_STATS.values()]
        now += [stats.degraded_s + away_s, *stats.batch_sizes, stats.batched_requests]
        known, before = self._seen.get(name, (stats, []))
        if known is not stats or not before:  # a learner that was made anew begins at 0
            before = [0.0] * len(now)
        self._seen[name] = stats, now
        gained = [max(0.0, new - old) for new, old in zip(now, before, strict=True)]
        label = (self._label(name),)
        for counter, value in zip((*FROM_STATS, "degraded_seconds"), gained, strict=False):
            if value > 0.0:
                self._cells[self._board.at(counter, label)] += value
        sizes = gained[len(FROM_STATS) + 1 :]
        begin = self._board.at("batch_size", label, len(sizes))
        for offset, value in enumerate(sizes):
            self._cells[begin + offset] += value

    def _show(self, name: str, engine: Engine) -> None:
        learner, label = engine.replica.learner, (self._label(name),)
        seen = learner.moments.arms * learner.moments.dimension
        rate = 1.0 - learner.moments.p.trace() / seen if seen else math.nan
        self._gauge("staleness_seconds", label, engine.staleness_s)
        self._gauge("degraded", label, float(engine.degraded))
        self._gauge("model_version", label, float(learner.model.count))
        self._gauge("missing_rate", label, rate)

    def _gauge(self, name: str, labels: Labels, value: float) -> None:
        self._cells[self._board.at(name, labels)] = value

    def _label(self, learner: str) -> str:
        if learner in self._learners:
            return learner
        if len(self._learners) >= MAX_LEARNERS:
            return OTHERS
        self._learners.add(learner)
        return learner

    # When scraped ---------------------------------------------------------------------------

    async def text(self) -> bytes:
        self.sync()
        await self._ask_pending()
        return generate_latest(self)

    async def _ask_pending(self) -> None:
        if self._engines is None:
            return
        for engine in list(self._engines.alive.values()):
            if not engine.degraded:
                with contextlib.suppress(LacunaError):
                    async with store_errors():
                        waiting = float(await engine.store.pending())
                        self._gauge("pending", (self._label(engine.store.name),), waiting)

    def collect(self) -> Iterator[Metric]:
        totals: dict[tuple[str, Labels], list[float]] = {}
        for name, labels, values in board.read_all(self._directory, self._board):
            known = totals.get((name, labels))
            if known is None:
                totals[name, labels] = values
            elif name in GAUGES:
                totals[name, labels] = [max(known[0], values[0], key=_nan_least)]
            else:
                totals[name, labels] = [a + b for a, b in zip(known, values, strict=True)]
        info = GaugeMetricFamily("lacuna_info", "The version that runs", labels=("version",))
        info.add_metric([__version__], 1.0)
        yield info
        workers = board.workers(self._directory)
        yield GaugeMetricFamily("lacuna_workers", "Worker processes", value=workers)
        requests = CounterMetricFamily(
            "lacuna_requests", "Requests answered", labels=("endpoint", "status")
        )
        made: dict[str, Metric] = {}
        for (name, labels), values in sorted(totals.items()):
            if name in HISTOGRAMS:
                family = HISTOGRAMS[name]
                cumulative, total = [], 0.0
                for most, value in zip((*family.buckets, math.inf), values[:-1], strict=True):
                    total += value
                    cumulative.append(("+Inf" if most == math.inf else f"{most:g}", total))
                histogram = made.setdefault(
                    name,
                    HistogramMetricFamily(f"lacuna_{name}", family.help, labels=family.labels),
                )
                assert isinstance(histogram, HistogramMetricFamily)
                histogram.add_metric(labels, cumulative, values[-1])
                if name == "request_seconds":
                    requests.add_metric(labels, total)
            elif name in COUNTERS:
                family = COUNTERS[name]
                counter = made.setdefault(
                    name, CounterMetricFamily(f"lacuna_{name}", family.help, labels=family.labels)
                )
                assert isinstance(counter, CounterMetricFamily)
                counter.add_metric(labels, values[0])
            elif not math.isnan(values[0]):
                family = GAUGES[name]
                gauge = made.setdefault(
                    name, GaugeMetricFamily(f"lacuna_{name}", family.help, labels=family.labels)
                )
                assert isinstance(gauge, GaugeMetricFamily)
                gauge.add_metric(labels, values[0])
        yield requests
        yield from made.values()


def _nan_least(value: float) -> float:
    return -math.inf if math.isnan(value) else value
