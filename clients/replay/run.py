"""Many runs in processes of their own. Ctrl-C ends each between two blocks, saved."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from clients import pool

from .local import play
from .prepare import Prepared
from .state import Job, Progress, Store

Report = Callable[[int, int, int], None]  # number of the job, rounds and hits so far


def run(
    jobs: Sequence[Job], data: Prepared, store: Store, report: Report, *, processes: int | None
) -> list[Progress]:
    processes = min(processes or os.cpu_count() or 1, len(jobs))
    if processes <= 1:
        return _here(jobs, data, store, report)
    with TemporaryDirectory(prefix="lacuna-") as folder:
        _warm(jobs, data, Path(folder))
        codes = Path(folder) / "codes.npy"
        np.save(codes, data.codes)
        return _in_pool(jobs, replace(data, codes=data.codes[:0]), codes, store, report, processes)


def _here(jobs: Sequence[Job], data: Prepared, store: Store, report: Report) -> list[Progress]:
    with pool.interrupts_noted() as stopped:
        results = [
            play(job, data, store, partial(report, number), stopped.is_set)
            for number, job in enumerate(jobs)
        ]
    if stopped.is_set():
        raise KeyboardInterrupt
    return results


def _warm(jobs: Sequence[Job], data: Prepared, folder: Path) -> None:
    """Compile the learner's kernels once, so that workers load them from the cache."""
    store = Store(folder)
    store.claim({})
    for policy in dict.fromkeys(job.policy for job in jobs):
        play(Job(replace(jobs[0].setting, rounds=3), policy, jobs[0].seed), data, store)


def _in_pool(
    jobs: Sequence[Job],
    data: Prepared,
    codes: Path,
    store: Store,
    report: Report,
    processes: int,
) -> list[Progress]:
    board, stop = pool.CONTEXT.Array("q", 2 * len(jobs)), pool.CONTEXT.Event()

    def look(_: int) -> None:
        for number in range(len(jobs)):
            report(number, board[2 * number], board[2 * number + 1])

    return pool.run(
        _work,
        list(enumerate(jobs)),
        processes=processes,
        start=_start_worker,
        shared=(board, stop, codes, data, store),
        stop=stop,
        look=look,
    )


_board: Any = None
_stop: Any = None
_data: Any = None
_store: Any = None


def _start_worker(board: Any, stop: Any, codes: Path, data: Prepared, store: Store) -> None:
    global _board, _stop, _data, _store
    _board, _stop, _store = board, stop, store
    _data = replace(data, codes=np.load(codes, mmap_mode="r"))


def _work(number: int, job: Job) -> Progress:
    def tick(done: int, hits: int) -> None:
        _board[2 * number], _board[2 * number + 1] = done, hits

    return play(job, _data, _store, tick, _stop.is_set)
