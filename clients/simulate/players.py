"""Who plays: a policy by its short name, in this process or behind a URL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from service.learner import Choices, Constants, Learner, LearnerConfig

Floats = NDArray[np.float64]


class Player(Protocol):
    def choose(self, x: Floats) -> int:
        """The arm for this round, given (K, d) views, NaN where missing."""
        ...

    def learn(self, reward: float) -> None:
        """What the arm chosen last has paid."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Policy:
    """What a short name stands for."""

    summary: str
    config: Mapping[str, Any] = field(default_factory=dict)
    fills_means: bool = False


POLICIES = {
    "clbbf": Policy("Algorithm 1, practical constants"),
    "clbbf-paper": Policy("Algorithm 1, the paper's constants", {"preset": "paper"}),
    # Eq. conf as printed grows like √t by its last term; without it the paper's width is usable.
    "clbbf-paper-c6-0": Policy(
        "Algorithm 1, the paper's constants but C₆ = 0",
        {"preset": "paper", "constants": Constants(c6=0.0)},
    ),
    "clbbf-uniform": Policy("clbbf that knows one missing rate", {"missingness": "uniform"}),
    "e-clbbf": Policy("Algorithm 2, practical constants", {"policy": "e-clbbf"}),
    "thompson": Policy("Thompson sampling on completed features", {"policy": "thompson"}),
    "greedy": Policy("clbbf without exploration", {"width": 0.0}),
    "oful": Policy("OFUL, missing = 0, practical constants", {"policy": "oful"}),
    "oful-paper": Policy(
        "OFUL, missing = 0, the paper's constants", {"policy": "oful", "preset": "paper"}
    ),
    "mean-fill": Policy("OFUL, missing = mean so far", {"policy": "oful"}, fills_means=True),
    "random": Policy("any arm", {"policy": "random"}),
}


def config_of(name: str, *, dimension: int, horizon: int, seed: int) -> LearnerConfig:
    return LearnerConfig(
        dimension=dimension, horizon=horizon, seed=seed, **dict(POLICIES[name].config)
    )


def make_player(
    name: str, *, dimension: int, horizon: int, seed: int, url: str | None = None
) -> Player:
    config = config_of(name, dimension=dimension, horizon=horizon, seed=seed)
    player: Player
    if url is None:
        player = InProcess(config)
    else:
        # httpx is only for those who ask for it: it would double a worker's start.
        from .http_player import OverHttp

        player = OverHttp(url, f"simulate-{name}-{seed}", config)
    return MeanFill(player, dimension) if POLICIES[name].fills_means else player


class InProcess:
    def __init__(self, config: LearnerConfig) -> None:
        self.learner = Learner(config)
        self.choices: Choices | None = None

    def choose(self, x: Floats) -> int:
        self.choices = self.learner.select(x)
        return int(self.choices.index[0])

    def learn(self, reward: float) -> None:
        assert self.choices is not None
        self.learner.reward(self.choices, reward)

    def close(self) -> None:
        pass


class MeanFill:
    """Fills a hole with the mean of its feature over all arms seen so far, this round's too."""

    def __init__(self, player: Player, dimension: int) -> None:
        self.player = player
        self.sums = np.zeros(dimension)
        self.counts = np.zeros(dimension)

    def choose(self, x: Floats) -> int:
        seen = ~np.isnan(x)
        self.sums += np.where(seen, x, 0.0).sum(axis=0)
        self.counts += seen.sum(axis=0)
        means = self.sums / np.maximum(self.counts, 1.0)
        return self.player.choose(np.where(seen, x, means))

    def learn(self, reward: float) -> None:
        self.player.learn(reward)

    def close(self) -> None:
        self.player.close()
