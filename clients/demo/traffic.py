"""Visitors: they ask the ad server for pages over HTTP, and click seconds later or never."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from time import perf_counter
from typing import Any

import httpx
import numpy as np
from numpy.typing import NDArray

from .score import Score
from .world import ADS, CANDIDATES, NAMES, USERS, World, in_outage

CLICK_DELAY_S = 1.2  # mean; a few come after the learners have stopped waiting
MOST_UNDER_WAY = 200


class SimulatedSupply:
    """The world as the ad server's suppliers show it."""

    names = NAMES

    def __init__(self, world: World, seed: int) -> None:
        self.world, self.began = world, perf_counter()
        self._rng = np.random.default_rng(seed)

    @property
    def elapsed_s(self) -> float:
        return perf_counter() - self.began

    @property
    def outage(self) -> bool:
        return in_outage(self.elapsed_s)

    def candidates(self, user: int) -> NDArray[np.int64]:
        return self._rng.choice(ADS, CANDIDATES, replace=False)

    def scores(self, user: int, ads: NDArray[np.int64]) -> NDArray[np.float64]:
        return self.world.scores(user, ads, self._rng, outage=self.outage)


class Visitors:
    def __init__(
        self, http: httpx.AsyncClient, supply: SimulatedSupply, score: Score, seed: int
    ) -> None:
        self.http, self.supply, self.world, self.score = http, supply, supply.world, score
        self.failed = 0
        self.why = ""
        self._rng = np.random.default_rng(seed)
        self._under_way: set[asyncio.Task[None]] = set()

    async def come(self, pages_per_s: float, until: Callable[[], bool]) -> None:
        """At that rate, independent of each other; at the end their clicks are waited for."""
        due = perf_counter()
        try:
            while not until():
                due += self._rng.exponential(1.0 / pages_per_s)
                await asyncio.sleep(max(0.0, due - perf_counter()))
                # A service that is away must not be met by all who came meanwhile, at once.
                due = max(due, perf_counter() - 1.0)
                if len(self._under_way) < MOST_UNDER_WAY + 10 * pages_per_s:
                    self._start(self._visit())
            while self._under_way:
                await asyncio.wait(self._under_way)
        finally:
            for task in self._under_way:
                task.cancel()
            await asyncio.gather(*self._under_way, return_exceptions=True)

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _visit(self) -> None:
        user = int(self._rng.integers(USERS))
        at_s, outage = self.supply.elapsed_s, self.supply.outage
        page = await self._get("/page", {"user": user})
        if page is None:
            return
        considered = np.array(page["considered"])
        best = float(self.world.click_probability(user, considered).max())
        self.score.page(at_s, best, outage)
        mood = self._rng.random()  # the same for all slots: they meet the same visitor
        delay_s = self._rng.exponential(CLICK_DELAY_S)
        for name, ad in page["slots"].items():
            chance = float(self.world.click_probability(user, np.array([ad]))[0])
            self.score.add(at_s, name, chance, mood < chance)
            if mood < chance:
                self._start(self._click(name, page["impression"], delay_s))

    async def _click(self, slot: str, impression: str, delay_s: float) -> None:
        await asyncio.sleep(delay_s)
        await self._get("/click", {"slot": slot, "impression": impression})

    async def _get(self, path: str, query: dict[str, str | int]) -> dict[str, Any] | None:
        try:
            answer = await self.http.get(path, params=query)
            answer.raise_for_status()
        except httpx.HTTPStatusError as error:
            self.failed += 1
            self.why = error.response.text[:200]
            return None
        except httpx.HTTPError as error:
            self.failed += 1
            self.why = str(error) or type(error).__name__
            return None
        found: dict[str, Any] = answer.json()
        return found
