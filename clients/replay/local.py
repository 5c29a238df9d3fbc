"""A run in this process."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from clients.simulate.players import POLICIES, config_of
from service.learner import Learner, dump, load

from .prepare import Prepared
from .protocol import BLOCK_ROUNDS, Block, MeanFilled, Rounds
from .state import Job, Progress, Store

SAVE_EVERY_S = 5.0

Tick = Callable[[int, int], None]  # rounds and hits so far


def rounds_of(job: Job, data: Prepared) -> Rounds | MeanFilled:
    rounds = Rounds(data.codes, data.clicks, job.setting, job.seed)
    return MeanFilled(rounds) if POLICIES[job.policy].fills_means else rounds


def play(
    job: Job,
    data: Prepared,
    store: Store,
    tick: Tick = lambda done, hits: None,
    stopped: Callable[[], bool] = lambda: False,
) -> Progress:
    """Play to the end, or to the first block after `stopped`; saved either way."""
    progress = store.load(job)
    total = job.setting.rounds
    tick(progress.done, int(progress.hits.sum()))
    if progress.done >= total:
        return progress
    if progress.learner:
        learner = load(progress.learner)
    else:
        config = config_of(job.policy, dimension=data.codes.shape[1], horizon=total, seed=job.seed)
        learner = Learner(config)
    rounds = rounds_of(job, data)
    saved = time.perf_counter()
    while progress.done < total and not stopped():
        block = rounds.block(progress.done // BLOCK_ROUNDS)
        start = time.perf_counter()
        _play_block(learner, block, progress)
        now = time.perf_counter()
        progress.seconds += now - start
        tick(progress.done, int(progress.hits.sum()))
        if now - saved > SAVE_EVERY_S:
            progress.learner = dump(learner)
            store.save(job, progress)
            saved = now
    # A finished run needs no learner any more.
    progress.learner = b"" if progress.done >= total else dump(learner)
    store.save(job, progress)
    return progress


def _play_block(learner: Learner, block: Block, progress: Progress) -> None:
    for x, paid in zip(block.x, block.paid, strict=True):
        choices = learner.select(x)
        hit = bool(paid[choices.index[0]])
        learner.reward(choices, float(hit))
        progress.hits[progress.done] = hit
        progress.done += 1


def ctr(progress: Progress) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """CTR(t) for t = 1, 2, …"""
    hits = progress.hits[: progress.done]
    return np.asarray(np.cumsum(hits) / np.arange(1, len(hits) + 1))
