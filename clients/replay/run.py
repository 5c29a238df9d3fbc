"""Many runs in processes of their own. Ctrl-C ends each between two blocks, saved."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from .errors import WorkerDied
from .local import play
from .prepare import Prepared
from .state import Job, Progress, Store

POLL_S = 0.2
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")

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
    with interrupts_noted() as stopped:
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
    context = multiprocessing.get_context("spawn")
    board = context.Array("q", 2 * len(jobs))
    stop = context.Event()
    with (
        _one_thread_each(),
        ProcessPoolExecutor(
            processes, context, _start_worker, (board, stop, codes, data, store)
        ) as pool,
    ):
        try:
            # Workers must not hear of Ctrl-C: this process does, and tells them by `stop`.
            with _interrupts_ignored():
                futures = [pool.submit(_work, number, job) for number, job in enumerate(jobs)]
            waiting: set[Future[Progress]] = set(futures)
            while waiting:
                done, waiting = wait(waiting, POLL_S)
                for future in done:
                    future.result()
                for number in range(len(jobs)):
                    report(number, board[2 * number], board[2 * number + 1])
        except BaseException as error:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            if isinstance(error, BrokenProcessPool):
                raise WorkerDied("a worker process died; --jobs 1 runs without workers") from error
            raise
        return [future.result() for future in futures]


_board: Any = None
_stop: Any = None
_data: Any = None
_store: Any = None


def _start_worker(board: Any, stop: Any, codes: Path, data: Prepared, store: Store) -> None:
    global _board, _stop, _data, _store
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _board, _stop, _store = board, stop, store
    _data = replace(data, codes=np.load(codes, mmap_mode="r"))


def _work(number: int, job: Job) -> Progress:
    def tick(done: int, hits: int) -> None:
        _board[2 * number], _board[2 * number + 1] = done, hits

    return play(job, _data, _store, tick, _stop.is_set)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """A worker has one core: BLAS threads of its own would fight those of the other workers."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def interrupts_noted() -> Iterator[threading.Event]:
    """Ctrl-C sets the event, so that nothing is cut in the middle."""
    noted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield noted
        return
    before = signal.signal(signal.SIGINT, lambda *_: noted.set())
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """A process started meanwhile inherits it."""
    with interrupts_noted():
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        yield
