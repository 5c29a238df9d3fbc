"""The learners of one worker: alive on first use, put away when idle."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar
from weakref import WeakValueDictionary

from service.errors import BadRequest, Conflict, UnknownLearner
from service.store.connect import Client
from service.store.learner_store import LearnerStore, learner_names
from service.store.messages import LearnerGone

from .configuration import Configuration
from .edge import store_errors
from .engine import Engine
from .settings import EngineSettings
from .stats import Stats

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
IDLE_CHECK_S = 5.0

_T = TypeVar("_T")


class Engines:
    def __init__(
        self, client: Client, settings: EngineSettings | None = None, *, auto_create: bool = True
    ) -> None:
        self.client = client
        self.settings = settings or EngineSettings()
        self.auto_create = auto_create
        self.alive: dict[str, Engine] = {}
        self.stats: dict[str, Stats] = {}  # by learner; they outlive its engines
        # Locks live as long as somebody holds them: names come from outside.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._keeper: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._keeper = asyncio.create_task(self._put_away_idle(), name="idle learners")

    async def stop(self) -> None:
        """Answer what waits and leave everything in the store."""
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        await asyncio.gather(*(engine.stop() for engine in self.alive.values()))
        self.alive.clear()

    async def use(
        self, name: str, work: Callable[[Engine], Awaitable[_T]], dimension: int | None = None
    ) -> _T:
        """Do something with a learner; once more if it was remade or put away meanwhile.

        With a dimension, a learner that does not exist yet is made.
        """
        for _ in range(3):
            engine = self.alive.get(name)
            if engine is None or engine.gone:
                engine = await self._wake(name, dimension)
            try:
                return await work(engine)
            except LearnerGone:
                await self._drop(name, engine)
        raise Conflict(f"learner {name!r} is being changed by somebody else; try again")

    async def get(self, name: str) -> Engine:
        async def same(engine: Engine) -> Engine:
            return engine

        return await self.use(name, same)

    async def put(self, name: str, given: dict[str, object]) -> bool:
        """Make or reconfigure; whether it was made."""
        check_name(name)
        store = LearnerStore(self.client, name)
        async with self._lock(name), store_errors():
            for _ in range(5):
                loaded = await store.load()
                if loaded is None:
                    new = Configuration.from_dict(given)
                    made = await store.configure(None, new.to_json(), new_birth())
                else:
                    old = Configuration.from_json(loaded.config)
                    # A seed that was drawn stays, so that putting the same twice changes nothing.
                    seed = given.get("seed")
                    new = Configuration.from_dict(
                        {**given, "seed": old.learner.seed if seed is None else seed}
                    )
                    if new == old:
                        return False
                    reshaped = _shape(new) != _shape(old)
                    if reshaped and loaded.counter("rounds") > 0:
                        raise Conflict(
                            f"learner {name!r} has data: its dimension and features are fixed"
                        )
                    made = await store.configure(
                        loaded.config, new.to_json(), new_birth(), reborn=reshaped
                    )
                if made is not None:
                    return made
        raise Conflict(f"learner {name!r} is being changed by somebody else; try again")

    async def names(self) -> list[str]:
        async with store_errors():
            return await learner_names(self.client)

    async def pending(self, names: Collection[str]) -> dict[str, int]:
        """Decisions whose reward may still come, of those learners that there are."""
        async with store_errors():
            there = await learner_names(self.client)
            return {
                name: await LearnerStore(self.client, name).pending()
                for name in there
                if name in names
            }

    async def reset(self, name: str) -> None:
        """Forget what was learnt; the configuration stays."""
        await self._forget(name, new_birth())

    async def delete(self, name: str) -> None:
        await self._forget(name, "")
        self.stats.pop(name, None)

    async def _forget(self, name: str, born: str) -> None:
        check_name(name)
        async with self._lock(name), store_errors():
            if not await LearnerStore(self.client, name).forget(born):
                raise UnknownLearner(name)

    def _lock(self, name: str) -> asyncio.Lock:
        return self._locks.setdefault(name, asyncio.Lock())

    async def _wake(self, name: str, dimension: int | None) -> Engine:
        check_name(name)
        async with self._lock(name):
            engine = self.alive.get(name)
            if engine is not None and not engine.gone:
                return engine
            store = LearnerStore(self.client, name)
            async with store_errors():
                loaded = await store.load()
                if loaded is None:
                    if dimension is None or not self.auto_create:
                        raise UnknownLearner(name)
                    new = Configuration.from_dict({"dimension": dimension})
                    await store.configure(None, new.to_json(), new_birth())
                    loaded = await store.load()
                    if loaded is None:
                        raise UnknownLearner(name)
                stats = self.stats.setdefault(name, Stats())
                engine = Engine(store, self.settings, stats)
                await engine.start(loaded)
            self.alive[name] = engine
            return engine

    async def _drop(self, name: str, engine: Engine) -> None:
        await engine.stop()
        if self.alive.get(name) is engine:
            del self.alive[name]

    async def _put_away_idle(self) -> None:
        while True:
            await asyncio.sleep(IDLE_CHECK_S)
            now = time.monotonic()
            for name, engine in list(self.alive.items()):
                if engine.gone or now - engine.used_at > self.settings.idle_s:
                    async with self._lock(name):
                        await self._drop(name, engine)


def check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise BadRequest("learner", f"must match ^{NAME.pattern}$")


def new_birth() -> str:
    return secrets.token_hex(4)


def _shape(configuration: Configuration) -> tuple[object, ...]:
    return configuration.learner.dimension, configuration.features
