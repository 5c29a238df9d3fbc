"""One learner in one worker: a single task, the only one that touches its state.

Requests queue to it and it takes all that wait at once: adds their arms to the moments, scores
them in one vectorised call, commits everything in one round trip, answers, folds what came back.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar

from service.errors import BadRequest, Overloaded, StoreDown
from service.learner import MAX_MAGNITUDE, Arms, Choices
from service.store import packing
from service.store.learner_store import LearnerStore
from service.store.messages import LearnerGone, Loaded

from . import loading
from .alone import AWAY, Alone
from .choosing import Choosing
from .committing import Committing
from .display import Display
from .housekeeping import House
from .replica import Replica
from .requests import (
    Claim,
    Identifiers,
    Selected,
    Selection,
    answer_like,
    fail,
    first_of_each,
    reject,
    resolve,
)
from .settings import EngineSettings
from .stats import Stats

__all__ = ["Engine", "Selected"]

log = logging.getLogger("lacuna.engine")

_T = TypeVar("_T")


class Engine:
    def __init__(
        self, store: LearnerStore, settings: EngineSettings, stats: Stats | None = None
    ) -> None:
        self.store = store
        self.settings = settings
        self.stats = stats or Stats()
        self.replica: Replica
        self.born = ""
        self.configured = 0  # how often the learner had been reconfigured when we loaded it
        self.used_at = time.monotonic()
        self.synced_at = time.monotonic()  # when we last held all of the log
        self.gone = False
        self.choosing = Choosing(self)
        self.committing = Committing(self)
        self.alone = Alone(self)
        self.house = House(self)
        self.display = Display(self)
        self._selects: deque[Selection] = deque()
        self._claims: deque[Claim] = deque()
        self._jobs: deque[tuple[Callable[[], Awaitable[Any]], asyncio.Future[Any]]] = deque()
        self._identifiers = Identifiers()
        self._woken = asyncio.Event()
        self._stopping = False
        self._calls_seen = 0
        self._task: asyncio.Task[None] | None = None
        self._tick: asyncio.TimerHandle | None = None

    # For callers ----------------------------------------------------------------------------

    async def start(self, loaded: Loaded) -> None:
        self._loop = asyncio.get_running_loop()
        self.replica = await loading.load(self.store, loaded, self.stats)
        self.born = loaded.born
        self.configured = loaded.counter("configured")
        self._columns = self.replica.configuration.learner.dimension + 1
        self.committing.rounds = loaded.counter("rounds")
        await self.display.sample()  # before anything happens: what the timeline begins with
        self.synced_at = time.monotonic()
        self._task = asyncio.create_task(self._run(), name=f"engine {self.store.name}")
        self._schedule_tick()

    async def stop(self) -> None:
        """Answer what waits, put everything into the store, end."""
        self.retire()
        if self._task is not None:
            await self._task
        if self._tick is not None:
            self._tick.cancel()

    def retire(self) -> None:
        """Take nothing new; end when what waits is answered."""
        self._stopping = True
        self.wake()

    async def select(
        self, arms: Arms, arm_ids: list[str], event_id: str | None, explain: bool = False
    ) -> Selected:
        self._admit(len(self._selects))
        if arms.z.shape[1] != self._columns:
            await self._be_current()
            self._check(arms)
        if event_id is None:
            event_id = self._identifiers.take(12).hex()
        done: asyncio.Future[Selected] = self._loop.create_future()
        self._selects.append(Selection(arms, arm_ids, event_id, _encoded(event_id), done, explain))
        self._woken.set()
        return await done

    async def reward(self, event_id: str, reward: float) -> tuple[str, float]:
        """The status, and the reward that stands."""
        self._admit(len(self._claims))
        if not -MAX_MAGNITUDE <= reward <= MAX_MAGNITUDE:  # false for NaN
            raise BadRequest("reward", f"must be finite and at most {MAX_MAGNITUDE:g} in size")
        done: asyncio.Future[tuple[str, float]] = self._loop.create_future()
        packed = packing.pack_reward(reward)
        self._claims.append(Claim(event_id, _encoded(event_id), packed, done))
        self._woken.set()
        return await done

    def preview(self, arms: Arms) -> Choices:
        """What a select would choose; nothing changes."""
        self.used_at = time.monotonic()
        self._check(arms)
        # On a copy: a large batch may be in a thread of its own just now.
        learner = copy.copy(self.replica.learner)
        learner.model = replace(learner.model)
        # A worker that gets no selects has the moments of those that do, but estimated nothing from
        # them. To do so takes long for many features, and nothing would be kept of it.
        quick = learner.config.dimension <= self.settings.inline_dimension
        return learner.preview(arms, anew=quick)

    async def run(self, job: Callable[[], Awaitable[_T]]) -> _T:
        """Something that needs the state to hold still, between two batches."""
        self._admit(len(self._jobs))
        done: asyncio.Future[_T] = self._loop.create_future()
        self._jobs.append((job, done))
        self._woken.set()
        return await done

    @property
    def degraded(self) -> bool:
        return self.alone.since is not None

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return len(self._selects) + len(self._claims)

    @property
    def staleness_s(self) -> float:
        return time.monotonic() - self.synced_at

    def _admit(self, waiting: int) -> None:
        self.used_at = time.monotonic()
        if self.gone or self._stopping:
            raise LearnerGone(f"learner {self.store.name!r} was put away")
        if waiting >= self.settings.queue_limit:
            raise Overloaded(f"{waiting:,} requests wait for learner {self.store.name!r} already")

    def _check(self, arms: Arms) -> None:
        """At the door: one request must not spoil a batch for all others."""
        if arms.z.shape[1] != self._columns:
            raise BadRequest(
                "features",
                f"must have {self._columns - 1} features per arm; it has {arms.z.shape[1] - 1}",
            )

    async def _be_current(self) -> None:
        """Another worker may have given the learner another shape just now: then we are gone."""
        with contextlib.suppress(StoreDown):
            await self.run(self.committing.follow)

    # The task -------------------------------------------------------------------------------

    def wake(self) -> None:
        self._woken.set()

    def _schedule_tick(self) -> None:
        self._tick = self._loop.call_later(self.settings.follow_interval_s, self._on_tick)

    def _on_tick(self) -> None:
        self.house.due = True
        self._woken.set()
        self._schedule_tick()

    def _has_work(self) -> bool:
        return bool(
            self._selects
            or self._claims
            or self._jobs
            or self.house.due
            or self.alone.store_answers
        )

    async def _run(self) -> None:
        while not self.gone:
            if not self._has_work():
                if self._stopping:
                    break
                self._woken.clear()
                await self._woken.wait()
                continue
            selects = _take(self._selects, self.settings.batch_selects)
            claims = _take(self._claims, self.settings.batch_rewards)
            try:
                await self._step(selects, claims)
                while self._jobs:
                    await self._do(*self._jobs.popleft())
            except LearnerGone as error:
                self._leave(error)
                fail(selects, claims, error)
            except Exception as error:
                log.exception("learner %s: a batch failed", self.store.name)
                fail(selects, claims, error)
            self._count_round_trips()
        if not self.gone:
            await self.house.close()
        self._leave(LearnerGone(f"learner {self.store.name!r} was put away"))
        await self.replica.give_up()
        await self.alone.close()

    async def _step(self, selects: list[Selection], claims: list[Claim]) -> None:
        await self.alone.turn()
        if self.house.due:
            self.house.due = False
            if not self.degraded:
                await self.guard(self.house.keep())
        if not (selects or claims):
            return
        self.stats.count_batch(len(selects) + len(claims))
        firsts, repeats = first_of_each(self._not_known(selects))
        chosen = await self.choosing.choose(firsts) if firsts else []
        if self.degraded:
            told = self.alone.answer(chosen, claims)
        else:
            try:
                told = await self.committing.batch(chosen, claims)
            except AWAY as error:
                self.alone.went_away(error)
                told = self.alone.answer(chosen, claims)
        for select, answer in zip(firsts, told, strict=True):
            resolve(select.done, answer)
        self.stats.repeated_selects += len(repeats)
        answer_like(repeats, told)
        self.alone.remember(told)
        self.display.offer(firsts, told)
        await self.guard(self.committing.afterwards())

    def _not_known(self, selects: list[Selection]) -> list[Selection]:
        """Answer what was told while the store is away; the others are left."""
        if not self.degraded:
            return selects
        left = []
        for select in selects:
            if (answer := self.alone.told(select.event_id)) is None:
                left.append(select)
            else:
                self.stats.repeated_selects += 1
                resolve(select.done, Selected(select.event_id, answer, None, 0))
        return left

    async def guard(self, work: Awaitable[None]) -> None:
        """What is not a request's own must not fail it: a store that is away makes us degraded."""
        try:
            await work
        except AWAY as error:
            self.alone.went_away(error)
        except LearnerGone:
            raise
        except Exception:
            log.exception("learner %s: housekeeping failed", self.store.name)

    async def _do(self, job: Callable[[], Awaitable[Any]], done: asyncio.Future[Any]) -> None:
        try:
            resolve(done, await job())
        except AWAY as error:
            self.alone.went_away(error)
            reject(done, StoreDown(str(error)))
        except Exception as error:
            reject(done, error)
            if isinstance(error, LearnerGone):
                raise

    async def flush(self) -> None:
        """Everything this worker knows into the store, and all others' news from it."""
        await self.house.flush()

    def _leave(self, error: LearnerGone) -> None:
        """Whoever still waits tries again with another engine."""
        if not self.gone and not self._stopping:
            # Somebody deleted it, or the store lost it: we cannot tell which, and all that was ours
            # to save is what we decided alone.
            log.log(
                logging.ERROR if len(self.alone) else logging.WARNING,
                "%s; starting again from the store, %d decisions made alone are lost",
                error,
                len(self.alone),
            )
            self.stats.reloads += 1
            self.stats.dropped_decisions += len(self.alone)
        self.gone = True
        if self._tick is not None:
            self._tick.cancel()
        fail(self._selects, self._claims, error)
        for _, done in self._jobs:
            reject(done, error)

    def _count_round_trips(self) -> None:
        self.stats.round_trips += self.store.calls - self._calls_seen
        self._calls_seen = self.store.calls


def _take(queue: deque[_T], most: int) -> list[_T]:
    return [queue.popleft() for _ in range(min(most, len(queue)))]


def _encoded(event_id: str) -> bytes:
    try:
        return event_id.encode()
    except UnicodeEncodeError as error:
        raise BadRequest("event_id", "must be valid Unicode") from error
