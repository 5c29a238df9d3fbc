"""One seed of one setting, played by every policy side by side: regret and reward over time."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from . import environments
from .environments import Block, Setting
from .players import Player, make_player

Floats = NDArray[np.float64]

CURVE_POINTS = 200


@dataclass(frozen=True, slots=True)
class Job:
    """The policies share a job, since they share the arms and the oracle's work on them."""

    setting: Setting
    seed: int
    policies: tuple[str, ...]
    url: str | None = None

    @property
    def plays(self) -> int:
        return self.setting.rounds * len(self.policies)


@dataclass(frozen=True, slots=True)
class Run:
    """What became of one policy with one seed in one setting."""

    setting: Setting
    policy: str
    seed: int
    regret: Floats  # R(t) at curve_rounds(T)
    mean_reward: float
    seconds: float  # in the player alone


class Cancelled(Exception):
    """Somebody said stop; there is nothing to report."""


def curve_rounds(rounds: int) -> NDArray[np.int64]:
    """Where curves are kept: log-spaced, 1 and T among them.

    >>> curve_rounds(5).tolist()
    [1, 2, 3, 4, 5]
    """
    return np.unique(np.geomspace(1, rounds, CURVE_POINTS).round().astype(np.int64))


def play(
    job: Job,
    tick: Callable[[int], None] = lambda plays: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> list[Run]:
    """Every policy of the job on the same blocks. `tick` hears how many plays are done."""
    setting, total = job.setting, job.setting.rounds
    regret = {name: np.empty(total) for name in job.policies}
    earned = dict.fromkeys(job.policies, 0.0)
    seconds = dict.fromkeys(job.policies, 0.0)
    with ExitStack() as stack:
        players: dict[str, Player] = {}
        for name in job.policies:
            players[name] = make_player(
                name, dimension=setting.dimension, horizon=total, seed=job.seed, url=job.url
            )
            stack.callback(players[name].close)
        blocks = environments.blocks(setting, job.seed)
        done = 0
        while done < total:
            block = next(blocks)
            count = min(len(block.x), total - done)
            best = block.value[:count].max(axis=1)
            for name, player in players.items():
                if cancelled():
                    raise Cancelled
                start = time.perf_counter()
                chosen = play_block(player, block, count)
                seconds[name] += time.perf_counter() - start
                regret[name][done : done + count] = best - block.value[range(count), chosen]
                earned[name] += float(block.reward[range(count), chosen].sum())
                tick(count)
            done += count
    at = curve_rounds(total) - 1
    return [
        Run(
            setting,
            name,
            job.seed,
            np.cumsum(regret[name])[at],
            earned[name] / total,
            seconds[name],
        )
        for name in job.policies
    ]


def play_block(player: Player, block: Block, count: int) -> NDArray[np.int64]:
    chosen = np.empty(count, dtype=np.int64)
    for r in range(count):
        chosen[r] = arm = player.choose(block.x[r])
        player.learn(float(block.reward[r, arm]))
    return chosen
