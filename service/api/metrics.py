"""How things are counted, and shown. The numbers of all workers are read together."""

from __future__ import annotations

import asyncio
import contextlib
import time
from array import array
from bisect import bisect_left
from collections.abc import Iterator

import numpy as np
from prometheus_client import generate_latest
from prometheus_client.core import Metric

from service.engine.engine import Engine
from service.engine.registry import Engines
from service.engine.stats import Stats
from service.errors import LacunaError

from . import board, exposition, process
from .board import Board, Labels
from .families import FROM_STATS, FROM_THE_START, SECONDS

SYNC_INTERVAL_S = 0.5
STORE_WAIT_S = 2.0  # of a scrape, for the store
MAX_LEARNERS = 100  # with labels of their own; the others are counted together
OTHERS = "_others"
MAX_FEATURES = 64  # of a learner whose features are shown one by one
POSITIONS = tuple(map(str, range(MAX_FEATURES)))
FEATURE_CELLS = 1 << 14  # a quarter of the board; features that are renamed take new ones
# What can be said of many learners together: how it is with the worst of them.
WORST = {"staleness_seconds", "degraded", "queue_length", "buffered_decisions"}

Values = tuple[float, ...]


class Metrics:
    def __init__(self, directory: str, number: int) -> None:
        self._directory = directory
        self._worker = (str(number),)
        self._board = Board(directory, number)
        # But for when its predecessor was last heard of: until we begin, the silence goes on.
        self._board.forget(exposition.NOW - {exposition.HEARD_AT})
        self._cells = self._board.cells
        self._answered: dict[tuple[str, int], int] = {}
        self._counted: dict[tuple[str, str, str], int] = {}
        self._learners: set[str] = set()
        self._seen: dict[str, tuple[Stats, list[float]]] = {}  # what is on the board already
        self._shown: set[tuple[str, Labels]] = set()
        self._cpu_s = 0.0
        self._started_at = time.time()
        self._pending: dict[str, int] = {}
        self._store_up: bool | None = None
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
            self._begin(self._label(learner))
            begin = self._board.at(name, (self._label(learner), label))
            self._counted[name, learner, label] = begin
        self._cells[begin] += 1.0

    def _begin(self, label: str) -> None:
        for name, values in FROM_THE_START.items():
            for value in values:
                self._board.at(name, (label, value))

    # Now and then ---------------------------------------------------------------------------

    def start(self, engines: Engines) -> None:
        self._engines = engines
        self.sync()
        self._task = asyncio.create_task(self._keep_in_step(), name="metrics")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        self.sync()
        self._board.forget(exposition.NOW)

    async def _keep_in_step(self) -> None:
        while True:
            await asyncio.sleep(SYNC_INTERVAL_S)
            self.sync()

    def sync(self) -> None:
        """The engines' own numbers onto the board; of those that are gone, nothing stays there."""
        if self._engines is None:
            return
        for name, stats in self._engines.stats.items():
            self._add(name, stats, self._engines.alive.get(name))
        for name in self._seen.keys() - self._engines.stats.keys():
            del self._seen[name]
        self._add_cpu()
        shown: dict[tuple[str, Labels], Values] = {}
        for name, engine in self._engines.alive.items():
            if not engine.gone:
                label = self._label(name)
                for series, labels, values in self._state(label, engine):
                    if label != OTHERS:
                        shown[series, labels] = values
                    elif series in WORST:
                        shown[series, labels] = max(values, shown.get((series, labels), values))
        self._show(shown)

    def _show(self, shown: dict[tuple[str, Labels], Values]) -> None:
        shown |= self._own()
        for series, labels in self._shown - shown.keys():
            self._board.forget_one(series, labels)
        for (series, labels), values in shown.items():
            begin = self._board.at(series, labels, len(values))
            if len(values) == 1:
                self._cells[begin] = values[0]
            else:
                self._cells[begin : begin + len(values)] = memoryview(array("d", values))
        self._shown = set(shown)

    def _add(self, name: str, stats: Stats, engine: Engine | None) -> None:
        since = None if engine is None else engine.alone.since
        away_s = 0.0 if since is None else time.monotonic() - since
        now = [float(getattr(stats, field)) for field in FROM_STATS.values()]
        now += [stats.degraded_s + away_s, stats.rewards.get("unknown", 0)]
        now += [*stats.batch_sizes, stats.batched_requests]
        known, before = self._seen.get(name, (stats, []))
        label = self._label(name)
        if known is not stats or not before:  # a learner that was made anew begins at 0
            before = [0.0] * len(now)
            self._begin(label)
        elif now == before:
            return
        self._seen[name] = stats, now
        gained = [max(0.0, new - old) for new, old in zip(now, before, strict=True)]
        series: list[tuple[str, Labels]]
        series = [(counter, (label,)) for counter in (*FROM_STATS, "degraded_seconds")]
        series.append(("rewards", (label, "unknown")))
        for (counter, labels), value in zip(series, gained, strict=False):
            self._cells[self._board.at(counter, labels)] += value
        sizes = gained[len(series) :]
        begin = self._board.at("batch_size", (label,), len(sizes))
        for offset, value in enumerate(sizes):
            self._cells[begin + offset] += value

    def _add_cpu(self) -> None:
        now = time.process_time()
        self._cells[self._board.at("worker_cpu_seconds", self._worker)] += now - self._cpu_s
        self._cpu_s = now

    def _own(self) -> Iterator[tuple[tuple[str, Labels], Values]]:
        """Of this worker."""
        yield (exposition.HEARD_AT, self._worker), (time.time(),)
        yield ("worker_start_time_seconds", self._worker), (self._started_at,)
        if (resident := process.resident_bytes()) is not None:
            yield ("worker_resident_memory_bytes", self._worker), (float(resident),)

    def _state(self, label: str, engine: Engine) -> Iterator[tuple[str, Labels, Values]]:
        """Of a learner, as this worker has it now."""
        learner, labels = engine.replica.learner, (label,)
        moments, model = learner.moments, learner.model
        yield "staleness_seconds", labels, (engine.staleness_s,)
        yield "degraded", labels, (float(engine.degraded),)
        yield "queue_length", labels, (float(engine.waiting),)
        yield "buffered_decisions", labels, (float(len(engine.alone)),)
        yield exposition.MODEL, labels, (float(model.count), model.sum_y)
        yield "arms", labels, (float(moments.arms),)
        if moments.arms:
            rates = np.diagonal(moments.p) / moments.arms  # (d,)
            yield "missing_rate", labels, (1.0 - float(rates.mean()),)
            if label != OTHERS and len(rates) <= MAX_FEATURES:
                names = engine.replica.configuration.features or POSITIONS[: len(rates)]
                series, named = exposition.FEATURES, (label, *names)
                held = self._board.cells_of(series)
                if self._board.has(series, named) or held + len(rates) <= FEATURE_CELLS:
                    yield series, named, tuple(rates.tolist())

    def _label(self, learner: str) -> str:
        if learner in self._learners:
            return learner
        if len(self._learners) >= MAX_LEARNERS and self._engines is not None:
            self._learners &= set(self._engines.alive)  # those that are gone make room
        if len(self._learners) >= MAX_LEARNERS:
            return OTHERS
        self._learners.add(learner)
        return learner

    # When scraped ---------------------------------------------------------------------------

    async def text(self) -> bytes:
        self.sync()
        await self._ask_the_store()
        return await asyncio.to_thread(generate_latest, self)  # thousands of series take a while

    async def _ask_the_store(self) -> None:
        """What it alone knows. It may hang, and a scrape must not."""
        if self._engines is None:
            return
        served = {
            labels[0]
            for series in board.read_all(self._directory, self._board)
            for name, labels, values in series
            if name == exposition.MODEL and values[0] == values[0]
        }
        try:
            async with asyncio.timeout(STORE_WAIT_S):
                self._pending = await self._engines.pending(served)
            self._store_up = True
        except (LacunaError, TimeoutError):
            self._pending, self._store_up = {}, False

    def collect(self) -> Iterator[Metric]:
        boards = board.read_all(self._directory, self._board)
        return exposition.families(boards, self._pending, self._store_up)
