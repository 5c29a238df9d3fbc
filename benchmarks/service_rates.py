"""The highest rates, closed loop: ours against the yardsticks, in turns."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import httpx
import msgspec
import numpy as np

from clients.loadtest.bodies import Shape, json_tails

from .service_load import Load, Rate
from .service_servers import Running
from .timing import Floats, Ratio, interleaved, ratio

BATCH = 500
BATCH_BYTES = 3 << 20
TIMEOUT_S = 120.0

# (a) is the FastAPI endpoint, (b) the raw ASGI application.
# What is compared stands side by side.
SIDES = ("select compact", "(a) select", "select json", "(b) select", "reward", "(a) reward")


@dataclass(slots=True)
class Rates:
    """Of every round, by side."""

    found: dict[str, list[float]] = field(default_factory=dict)  # answers per second
    worker_us: dict[str, list[float]] = field(default_factory=dict)  # of CPU, per answer
    store_us: dict[str, list[float]] = field(default_factory=dict)

    def median(self, side: str) -> float:
        return float(np.median(self.found[side]))

    def over(self, side: str, yardstick: str) -> Ratio:
        return ratio(self.found[side], self.found[yardstick])

    def cpu_us(self, side: str) -> tuple[float, float]:
        """Of the worker and of the store, per answer."""
        return float(np.median(self.worker_us[side])), float(np.median(self.store_us[side]))

    def add(self, side: str, found: Rate, spent_s: tuple[float, float]) -> None:
        self.found.setdefault(side, []).append(found.rate)
        for per_answer, seconds in zip((self.worker_us, self.store_us), spent_s, strict=True):
            per_answer.setdefault(side, []).append(1e6 * seconds / max(1, found.requests))


def measure_rates(
    load: Load,
    servers: dict[str, Running],
    *,
    shape: Shape,
    rounds: int,
    duration_s: int,
    tick: Callable[[], None],
) -> Rates:
    """`servers`: lacuna, fastapi and asgi."""
    learner = f"bench-{uuid.uuid4().hex[:8]}"
    warm(servers["lacuna"].url, learner, shape)
    rates = Rates()
    fastest = 10_000.0  # rewards per second; the round that is not counted corrects it
    for number in range(rounds + 1):
        seconds = duration_s if number else 1
        # Made before the round, so that the sides follow each other closely.
        events, limit = f"{uuid.uuid4().hex[:12]}-", int(1.6 * seconds * fastest)
        prepare(servers["lacuna"].url, learner, events, limit, shape.dimension)
        for side in SIDES if number % 2 == 0 else SIDES[::-1]:
            kind = "reward" if "reward" in side else "compact" if "compact" in side else "json"
            where = {"(a)": "fastapi", "(b)": "asgi"}.get(side[:3], "lacuna")
            ours = side == "reward"
            server = servers[where]
            before = server.spent_s()
            found = load.run(
                server.url,
                kind,
                learner,
                events if ours else f"{uuid.uuid4().hex[:12]}-",
                seconds,
                limit=limit if ours else 10**9,
            )
            if ours:
                fastest = max(fastest, found.rate) if number else found.rate
            if number:
                worker_s, store_s = np.subtract(server.spent_s(), before).tolist()
                rates.add(side, found, (worker_s, store_s))
            tick()
    return rates


def worker_rates(
    load: Load,
    urls: Sequence[str],
    *,
    shape: Shape,
    rounds: int,
    duration_s: int,
    tick: Callable[[], None],
) -> Floats:
    """Selects per second of each service, (rounds, services)."""
    learner = f"bench-{uuid.uuid4().hex[:8]}"
    for url in urls:
        warm(url, learner, shape)

    def rate(url: str) -> float:
        # Connections stay with the worker that took them: many, so that each gets its share.
        prefix = f"{uuid.uuid4().hex[:12]}-"
        return load.run(url, "json", learner, prefix, duration_s, connections=64).rate

    return interleaved([partial(rate, url) for url in urls], rounds, tick)


def warm(url: str, learner: str, shape: Shape, rewards: int = 2_000) -> None:
    """Some history, so that what is measured is a learner at work."""
    prefix = f"{uuid.uuid4().hex[:12]}-"
    prepare(url, learner, prefix, rewards, shape.dimension, arms=shape.arms)
    reward_all(url, learner, prefix, rewards)


def prepare(
    url: str, learner: str, prefix: str, count: int, dimension: int, *, arms: int = 2
) -> None:
    """Selects with event ids of `prefix` and nine digits from 1, each to be rewarded once."""
    shape = Shape(arms=arms, dimension=dimension)
    tails = json_tails(shape, 64, seed=2)
    start = f'{{"learner":"{learner}","event_id":"{prefix}'.encode()
    size = max(1, min(BATCH, BATCH_BYTES // (len(tails[0]) + 200)))
    with httpx.Client(base_url=url, timeout=TIMEOUT_S) as http:
        for first in range(1, count + 1, size):
            numbers = range(first, min(first + size, count + 1))
            items = [b'%s%09d"%s' % (start, n, tails[n % len(tails)]) for n in numbers]
            _all_good(http, "/select/batch", b'{"requests":[%s]}' % b",".join(items))


def reward_all(url: str, learner: str, prefix: str, count: int) -> None:
    with httpx.Client(base_url=url, timeout=TIMEOUT_S) as http:
        for first in range(1, count + 1, BATCH):
            rewards = [
                {"learner": learner, "event_id": f"{prefix}{n:09d}", "reward": float(n % 10 == 0)}
                for n in range(first, min(first + BATCH, count + 1))
            ]
            _all_good(http, "/reward/batch", msgspec.json.encode({"rewards": rewards}))


def _all_good(http: httpx.Client, path: str, body: bytes) -> None:
    answer = http.post(path, content=body, headers={"content-type": "application/json"})
    answer.raise_for_status()
    failed = [one for one in answer.json()["results"] if "error" in one]
    if failed:
        raise RuntimeError(f"{path}: {failed[0]}")
