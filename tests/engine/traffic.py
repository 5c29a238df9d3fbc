"""Traffic for engines, and what to compare after it."""

from __future__ import annotations

from typing import Any

import numpy as np

from service.engine.engine import Engine, Selected
from service.engine.registry import Engines
from service.learner import Arms

POLICIES = ["clbbf", "e-clbbf", "oful", "thompson", "random"]


def features(rng: np.random.Generator, d: int, k: int) -> np.ndarray:
    x = rng.normal(size=(k, d)) @ np.linspace(0.2, 1.0, d * d).reshape(d, d)
    x[rng.random((k, d)) < 0.3] = np.nan
    return x


def names(k: int) -> list[str]:
    return [f"arm-{a}" for a in range(k)]


async def select(
    engines: Engines, learner: str, x: np.ndarray, event_id: str | None = None
) -> Selected:
    arms = Arms.of(x)

    async def chosen(engine: Engine) -> Selected:
        return await engine.select(arms, names(len(x)), event_id)

    return await engines.use(learner, chosen)


async def reward(engines: Engines, learner: str, event_id: str, y: float) -> tuple[str, float]:
    async def rewarded(engine: Engine) -> tuple[str, float]:
        return await engine.reward(event_id, y)

    return await engines.use(learner, rewarded)


async def play(
    engines: Engines,
    learner: str,
    rounds: int,
    *,
    seed: int,
    d: int = 4,
    first: int = 0,
    rewarded: float = 0.8,
) -> list[tuple[Any, ...]]:
    """Sequential rounds; what was told in each. The same seed sends the same."""
    rng = np.random.default_rng(seed)
    told = []
    for t in range(first, first + rounds):
        x = features(rng, d, int(rng.integers(1, 9)))
        chosen = await select(engines, learner, x, f"event-{t}")
        answer = chosen.answer
        told.append((answer.index, answer.round, answer.probability, answer.model_version))
        y = float(rng.normal() + np.nansum(x[answer.index]))
        if rng.random() < rewarded:
            assert (await reward(engines, learner, f"event-{t}", y))[0] == "recorded"
    return told
