"""One learner in one worker: a single task, the only one that touches its state.

Requests queue to it and it takes all that wait at once: adds their arms to the moments, scores
them in one vectorised call, commits everything in one round trip, folds what came back, answers.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from service.errors import Overloaded, StoreDown, UnknownEvent
from service.learner import Arms, Choices
from service.store import packing
from service.store.errors import StoreDenied, StoreUnavailable
from service.store.learner_store import (
    Commit,
    Committed,
    LearnerGone,
    LearnerStore,
    Loaded,
    StoreBehind,
)
from service.store.packing import Answer

from . import housekeeping, loading
from .replica import Replica, estimate_bytes
from .settings import EngineSettings
from .stats import Stats

log = logging.getLogger("lacuna.engine")

_T = TypeVar("_T")

# What makes a worker go on alone: no store, none that lets us in, one that came back older.
AWAY = (StoreUnavailable, StoreDenied, StoreBehind)
HEAVY = 50_000_000  # rows · d²; a batch above it is scored in a thread


@dataclass(slots=True)
class Selection:
    """One select, from the queue to its answer."""

    arms: Arms
    arm_ids: list[str]
    event_id: str
    done: asyncio.Future[Selected]


@dataclass(slots=True)
class Selected:
    event_id: str
    answer: Answer
    choices: Choices | None  # None where an earlier answer was found; else this select's batch
    request: int  # its place in the batch


@dataclass(slots=True)
class Claim:
    """One reward, from the queue to its answer."""

    event_id: str
    reward: bytes
    done: asyncio.Future[tuple[str, float]]


class Engine:
    def __init__(self, store: LearnerStore, settings: EngineSettings) -> None:
        self.store = store
        self.settings = settings
        self.stats = Stats()
        self.replica: Replica
        self.used_at = time.monotonic()
        self.synced_at = time.monotonic()  # when we last held all of the log
        self.offline_since: float | None = None
        self.gone = False
        self._selects: deque[Selection] = deque()
        self._claims: deque[Claim] = deque()
        self._jobs: deque[tuple[Callable[[], Awaitable[Any]], asyncio.Future[Any]]] = deque()
        self._wake = asyncio.Event()
        self._stopping = False
        self._behind = False  # the store has forgotten what we have folded
        self.configured = 0  # how often the learner had been reconfigured when we loaded it
        self._task: asyncio.Task[None] | None = None
        self._tick: asyncio.TimerHandle | None = None
        self.house = housekeeping.House(self)
        # Selects answered while the store was away, oldest first, to be stored on its return.
        self._buffer: dict[str, tuple[Selected, bytes]] = {}
        self._estimate_to_store = b""
        self._retry_at = 0.0
        self._backoff_s = settings.retry_first_s

    # For callers ----------------------------------------------------------------------------

    async def start(self, loaded: Loaded) -> None:
        self.replica = await loading.load(self.store, loaded, self.stats)
        self.born = loaded.born
        self.configured = loaded.counter("configured")
        self.synced_at = time.monotonic()
        self._task = asyncio.create_task(self._run(), name=f"engine {self.store.name}")
        self._schedule_tick()

    async def stop(self) -> None:
        """Answer what waits, put everything into the store, end."""
        self._stopping = True
        self._wake.set()
        if self._task is not None:
            await self._task
        if self._tick is not None:
            self._tick.cancel()

    async def select(self, arms: Arms, arm_ids: list[str], event_id: str | None) -> Selected:
        self._admit(len(self._selects))
        done: asyncio.Future[Selected] = asyncio.get_running_loop().create_future()
        self._selects.append(Selection(arms, arm_ids, event_id or os.urandom(12).hex(), done))
        self._wake.set()
        return await done

    async def reward(self, event_id: str, reward: float) -> tuple[str, float]:
        """The status, and the reward that stands."""
        self._admit(len(self._claims))
        done: asyncio.Future[tuple[str, float]] = asyncio.get_running_loop().create_future()
        self._claims.append(Claim(event_id, packing.pack_reward(reward), done))
        self._wake.set()
        return await done

    def preview(self, arms: Arms) -> Choices:
        """What a select would choose; nothing changes."""
        self.used_at = time.monotonic()
        return self.replica.learner.preview(arms)

    async def run(self, job: Callable[[], Awaitable[_T]]) -> _T:
        """Something that needs the state to hold still, between two batches."""
        self._admit(len(self._jobs))
        done: asyncio.Future[_T] = asyncio.get_running_loop().create_future()
        self._jobs.append((job, done))
        self._wake.set()
        return await done

    @property
    def degraded(self) -> bool:
        return self.offline_since is not None

    @property
    def staleness_s(self) -> float:
        return time.monotonic() - self.synced_at

    def _admit(self, waiting: int) -> None:
        self.used_at = time.monotonic()
        if self.gone or self._stopping:
            raise LearnerGone(f"learner {self.store.name!r} was put away")
        if waiting >= self.settings.queue_limit:
            raise Overloaded(f"{waiting:,} requests wait for learner {self.store.name!r} already")

    # The task -------------------------------------------------------------------------------

    def _schedule_tick(self) -> None:
        loop = asyncio.get_running_loop()
        self._tick = loop.call_later(self.settings.follow_interval_s, self._on_tick)

    def _on_tick(self) -> None:
        self.house.due = True
        self._wake.set()
        self._schedule_tick()

    async def _run(self) -> None:
        while not self.gone:
            if not (self._selects or self._claims or self._jobs or self.house.due):
                if self._stopping:
                    break
                self._wake.clear()
                await self._wake.wait()
                continue
            selects = _take(self._selects, self.settings.batch_selects)
            claims = _take(self._claims, self.settings.batch_rewards)
            try:
                await self._step(selects, claims)
                while self._jobs:
                    await self._do(*self._jobs.popleft())
            except LearnerGone as error:
                self._leave(error)
                _fail(selects, claims, error)
            except Exception as error:
                log.exception("learner %s: a batch failed", self.store.name)
                _fail(selects, claims, error)
        if not self.gone:
            await self.house.close()
        self._leave(LearnerGone(f"learner {self.store.name!r} was put away"))

    def _leave(self, error: LearnerGone) -> None:
        """Whoever still waits tries again with another engine."""
        if not self.gone and not self._stopping:
            log.warning("%s; starting again from the store", error)
            self.stats.reloads += 1
        self.gone = True
        if self._tick is not None:
            self._tick.cancel()
        _fail(self._selects, self._claims, error)
        for _, done in self._jobs:
            _reject(done, error)

    async def _do(self, job: Callable[[], Awaitable[Any]], done: asyncio.Future[Any]) -> None:
        try:
            _resolve(done, await job())
        except Exception as error:
            _reject(done, error)
            if isinstance(error, LearnerGone):
                raise

    async def _step(self, selects: list[Selection], claims: list[Claim]) -> None:
        if self.degraded and time.monotonic() >= self._retry_at:
            await self._guard(self.come_back())
        if self.house.due:
            self.house.due = False
            if not self.degraded:
                await self._guard(self.house.keep())
        if not (selects or claims):
            return
        self.stats.count_batch(len(selects) + len(claims))
        firsts, repeats = self._first_of_each(selects)
        chosen = await self._choose(firsts) if firsts else []
        if self.degraded:
            self._answer_alone(firsts, chosen, claims)
        else:
            try:
                await self._commit(firsts, chosen, claims)
                self._online()
            except AWAY as error:
                self._offline(error)
                self._answer_alone(firsts, chosen, claims)
        for again, first in repeats:
            _answer_like(again, first)

    async def _guard(self, work: Awaitable[None]) -> None:
        """Housekeeping must not fail requests: a store that is away makes us degraded."""
        try:
            await work
            self._online()
        except AWAY as error:
            self._offline(error)

    def _first_of_each(
        self, selects: list[Selection]
    ) -> tuple[list[Selection], list[tuple[Selection, Selection]]]:
        """One select per event id; the others get the answer of the first."""
        by_id: dict[str, Selection] = {}
        firsts, repeats = [], []
        for select in selects:
            first = by_id.setdefault(select.event_id, select)
            if first is not select:
                repeats.append((select, first))
            elif select.event_id in self._buffer:
                _resolve(select.done, self._repeated(self._buffer[select.event_id][0]))
            else:
                firsts.append(select)
        return firsts, repeats

    def _repeated(self, earlier: Selected) -> Selected:
        self.stats.repeated_selects += 1
        return Selected(earlier.event_id, earlier.answer, None, 0)

    # Choosing -------------------------------------------------------------------------------

    async def _choose(self, selects: list[Selection]) -> list[tuple[Selected, bytes]]:
        """Every select's choice and its record for the store."""
        arms = Arms.join([select.arms for select in selects])
        replica, learner = self.replica, self.replica.learner
        replica.observe(arms)
        if not self.degraded and replica.refresh_due():
            await self._guard(self._mark())
        if learner.estimate_due():
            heavy = learner.config.dimension > self.settings.inline_dimension
            new = learner.new_estimate
            learner.estimate = await asyncio.to_thread(new) if heavy else new()
            self.stats.estimates += 1
            if learner.config.preset != "paper":
                self._estimate_to_store = estimate_bytes(learner.estimate)
        if len(arms.z) * learner.config.dimension**2 > HEAVY:
            choices = await asyncio.to_thread(learner.choose, arms)
        else:
            choices = learner.choose(arms)
        self.stats.selects += len(selects)
        self.stats.entries += arms.observed.size
        self.stats.missing_entries += arms.observed.size - int(arms.observed.sum())
        return [self._record(select, choices, r) for r, select in enumerate(selects)]

    def _record(self, select: Selection, choices: Choices, r: int) -> tuple[Selected, bytes]:
        index = choices.index[r]
        row = choices.arms.starts[r] + index
        answer = Answer(
            arm=select.arm_ids[index],
            index=index,
            arms=len(select.arm_ids),
            model_version=choices.model_version,
            probability=choices.probability[r],
            degraded=self.degraded,
            nonce=os.urandom(8),
            round=choices.rounds[r].number,
        )
        chosen_row = packing.row(choices.arms.observed[row], choices.z[row, 1:])
        record = packing.decision(answer, choices.learns[r], chosen_row)
        return Selected(select.event_id, answer, choices, r), record

    async def _mark(self) -> None:
        power, mark = self.replica.new_mark()
        await self.store.mark(self.replica.position, power, mark)
        await self.follow()

    # Committing -----------------------------------------------------------------------------

    def _new_commit(self, *, with_moments: bool) -> Commit:
        replica, configuration = self.replica, self.replica.configuration
        return Commit(
            worker=replica.worker,
            has_field=replica.has_field,
            position=replica.position,
            last_id=replica.last_id,
            moments=replica.own_moments() if with_moments else b"",
            estimate=self._estimate_to_store,
            decision_ttl_ms=configuration.decision_ttl_ms,
            reward_wait_ms=configuration.reward_wait_ms,
        )

    async def _commit(
        self,
        selects: list[Selection],
        chosen: list[tuple[Selected, bytes]],
        claims: list[Claim],
    ) -> None:
        commit = self._new_commit(with_moments=bool(selects) and self.house.moments_due())
        commit.decisions = [(one.event_id, record) for one, record in chosen]
        commit.rewards = [(claim.event_id, claim.reward, packing.REWARDED) for claim in claims]
        done = await self._send(commit)
        await self._settle(selects, chosen, done, wrote_moments=bool(commit.moments))
        for claim, (status, stands) in zip(claims, done.rewards, strict=True):
            self._answer_claim(claim, status, stands)
        await self._fold(done)

    async def _send(self, commit: Commit) -> Committed:
        before = self.store.calls
        try:
            done = await self.store.commit(commit)
        finally:
            self.stats.round_trips += self.store.calls - before
        if commit.estimate is self._estimate_to_store:
            self._estimate_to_store = b""
        if done.configured != self.configured:
            self._stopping = True  # with the new configuration another engine goes on
        if done.moments_written:
            self.replica.moments_written()
            self.house.moments_were_written(len(commit.moments))
        return done

    async def _settle(
        self,
        selects: list[Selection],
        chosen: list[tuple[Selected, bytes]],
        done: Committed,
        *,
        wrote_moments: bool,
    ) -> None:
        """Answer selects; what the store knew already is taken out of the moments first."""
        answers: list[Selected] = []
        for select, (mine, _), found in zip(selects, chosen, done.decisions, strict=True):
            if isinstance(found, int):
                answers.append(replace_round(mine, found))
                continue
            stored = packing.answer(found)
            if stored.nonce == mine.answer.nonce:
                answers.append(replace_round(mine, stored.round))
            else:
                self.replica.retract(select.arms)
                answers.append(self._repeated(Selected(mine.event_id, stored, None, 0)))
        if done.field_lost:
            self.replica.start_new_field()
            self.replica.take_moments(await self.store.moments())
        if wrote_moments and not done.moments_written:
            await self._send(self._new_commit(with_moments=True))
        for select, answer in zip(selects, answers, strict=True):
            _resolve(select.done, answer)

    def _answer_claim(self, claim: Claim, status: str, stands: bytes) -> None:
        self.stats.count_reward(status)
        if status == "unknown":
            _reject(claim.done, UnknownEvent(claim.event_id))
        else:
            _resolve(claim.done, (status, packing.unpack_reward(stands)))

    async def _fold(self, done: Committed) -> None:
        await self.replica.fold(done.log)
        if self.replica.position >= done.appended:
            self.synced_at = time.monotonic()

    async def follow(self) -> None:
        """All that is new in the log."""
        while True:
            done = await self._send(self._new_commit(with_moments=False))
            if done.field_lost:
                self.replica.start_new_field()
            await self._fold(done)
            if self.replica.position >= done.appended or not done.log:
                return

    async def book_defaults(self, due: list[tuple[str, bytes]]) -> None:
        commit = self._new_commit(with_moments=False)
        commit.rewards = [(event_id, reward, packing.DEFAULTED) for event_id, reward in due]
        done = await self._send(commit)
        self.stats.defaults += sum(status == "recorded" for status, _ in done.rewards)
        await self._fold(done)

    async def flush(self) -> None:
        """Everything this worker knows into the store, and all others' news from it."""
        if self.degraded:
            await self.come_back()
            self._online()
        if self.replica.unacked.arms > 0:
            await self.write_moments()
        await self.follow()
        self.replica.take_moments(await self.store.moments())

    async def write_moments(self) -> None:
        done = await self._send(self._new_commit(with_moments=True))
        await self._fold(done)
        if done.field_lost:
            self.replica.start_new_field()
            self.replica.take_moments(await self.store.moments())
            await self._send(self._new_commit(with_moments=True))

    # Without the store ----------------------------------------------------------------------

    def _answer_alone(
        self,
        selects: list[Selection],
        chosen: list[tuple[Selected, bytes]],
        claims: list[Claim],
    ) -> None:
        for select, (mine, record) in zip(selects, chosen, strict=True):
            alone = Selected(
                mine.event_id, replace(mine.answer, degraded=True), mine.choices, mine.request
            )
            self.stats.degraded_selects += 1
            self._buffer[mine.event_id] = (alone, record)
            if len(self._buffer) > self.settings.buffer_limit:
                self._buffer.pop(next(iter(self._buffer)))
                self.stats.dropped_decisions += 1
            _resolve(select.done, alone)
        for claim in claims:
            _reject(claim.done, StoreDown("rewards are taken again when the store is back"))

    def _offline(self, error: Exception) -> None:
        now = time.monotonic()
        self._behind = self._behind or isinstance(error, StoreBehind)
        if self.offline_since is None:
            self.offline_since = now
            self._backoff_s = self.settings.retry_first_s
            log.error("learner %s: degraded: %s", self.store.name, error)
        self._retry_at = now + self._backoff_s * random.uniform(0.5, 1.0)
        self._backoff_s = min(2 * self._backoff_s, self.settings.retry_most_s)

    def _online(self) -> None:
        if self.offline_since is None or self._buffer:
            return
        away_s = time.monotonic() - self.offline_since
        self.offline_since = None
        self.stats.degraded_s += away_s
        log.warning("learner %s: the store is back after %.1f s", self.store.name, away_s)

    def log_unsaved(self, error: Exception) -> None:
        log.error(
            "learner %s: stopped with %d decisions and %d arms that the store does not have: %s",
            self.store.name,
            len(self._buffer),
            self.replica.unacked.arms,
            error,
        )

    async def _reload(self) -> None:
        """The store came back with older data: its log is the truth now, our own sums still are.

        Our moments are cumulative, so writing them again makes good what the store has lost.
        """
        loaded = await self.store.load()
        if loaded is None or loaded.born != self.born:
            raise LearnerGone(f"learner {self.store.name!r} is not in the store any more")
        log.error("learner %s: the store came back older; reloaded", self.store.name)
        self.stats.reloads += 1
        before = self.replica
        self.replica = await loading.load(self.store, loaded, self.stats)
        self.replica.keep_own_moments(before, loaded.moments)
        self._behind = False

    async def come_back(self) -> None:
        """Store what was decided alone; then we are online again."""
        if self._behind:
            await self._reload()
        waiting = list(self._buffer.items())
        for start in range(0, max(1, len(waiting)), self.settings.batch_selects):
            part = waiting[start : start + self.settings.batch_selects]
            last = start + len(part) >= len(waiting)
            commit = self._new_commit(with_moments=last and self.replica.unacked.arms > 0)
            commit.decisions = [(event_id, record) for event_id, (_, record) in part]
            done = await self._send(commit)
            for (event_id, (mine, _)), found in zip(part, done.decisions, strict=True):
                self._buffer.pop(event_id, None)
                if isinstance(found, bytes) and packing.answer(found).nonce != mine.answer.nonce:
                    self.stats.lost_decisions += 1
            if last and done.field_lost:
                self.replica.start_new_field()
            await self._fold(done)


def replace_round(selected: Selected, number: int) -> Selected:
    if selected.answer.round != number:
        selected.answer = replace(selected.answer, round=number)
    return selected


def _take(queue: deque[_T], most: int) -> list[_T]:
    return [queue.popleft() for _ in range(min(most, len(queue)))]


def _resolve(done: asyncio.Future[_T], value: _T) -> None:
    if not done.done():  # a caller may have given up
        done.set_result(value)


def _reject(done: asyncio.Future[Any], error: Exception) -> None:
    if not done.done():
        done.set_exception(error)


def _answer_like(again: Selection, first: Selection) -> None:
    """A repetition within one batch: whatever the first was told."""
    if not first.done.done() or first.done.cancelled():
        _reject(again.done, StoreDown("the first select with this event id was given up"))
    elif (error := first.done.exception()) is not None:
        _reject(again.done, error if isinstance(error, Exception) else StoreDown(str(error)))
    else:
        told = first.done.result()
        _resolve(again.done, Selected(told.event_id, told.answer, None, 0))


def _fail(selects: Iterable[Selection], claims: Iterable[Claim], error: Exception) -> None:
    for select in selects:
        _reject(select.done, error)
    for claim in claims:
        _reject(claim.done, error)
