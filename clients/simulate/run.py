"""Many jobs on all cores, with a progress bar. Ctrl-C ends it between two blocks."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from .errors import MissingExtra, WorkerDied
from .play import Job, Run, play

POLL_S = 0.2
# A worker has one core: BLAS threads of its own would fight those of the other workers.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

Report = Callable[[int, int], None]  # plays and jobs done so far


def run(jobs: Sequence[Job], *, processes: int | None = None, quiet: bool = False) -> list[Run]:
    """Play every job; runs come back in the order of the jobs and of their policies."""
    with _progress(jobs, quiet=quiet) as report:
        warm(jobs)
        processes = min(processes or os.cpu_count() or 1, len(jobs))
        if processes <= 1:
            return _here(jobs, report)
        return _in_pool(jobs, processes, report)


def warm(jobs: Sequence[Job]) -> None:
    """Compile the learner's kernels once, so that workers load them from the cache."""
    if all(job.url for job in jobs):
        return
    names = dict.fromkeys(name for job in jobs for name in job.policies)
    for setting in dict.fromkeys(job.setting for job in jobs):
        play(Job(replace(setting, rounds=3), jobs[0].seed, tuple(names)))


def _here(jobs: Sequence[Job], report: Report) -> list[Run]:
    runs: list[Run] = []
    plays = 0
    for number, job in enumerate(jobs):

        def tick(count: int, finished: int = number) -> None:
            nonlocal plays
            plays += count
            report(plays, finished)

        runs += play(job, tick)
        report(plays, number + 1)
    return runs


def _in_pool(jobs: Sequence[Job], processes: int, report: Report) -> list[Run]:
    context = multiprocessing.get_context("spawn")
    plays = context.Value("q", 0)
    stop = context.Event()
    with (
        _environment(ONE_THREAD),
        ProcessPoolExecutor(processes, context, _start_worker, (plays, stop)) as pool,
    ):
        try:
            # A worker is started by `submit` and must not hear of Ctrl-C: this process does, and
            # tells it by `stop`.
            with _interrupts_ignored():
                futures = [pool.submit(_work, job) for job in jobs]
            waiting: set[Future[list[Run]]] = set(futures)
            while waiting:
                done, waiting = wait(waiting, POLL_S)
                for future in done:
                    future.result()
                report(plays.value, len(jobs) - len(waiting))
        except BaseException as error:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            if isinstance(error, BrokenProcessPool):
                raise WorkerDied("a worker process died; --jobs 1 runs without workers") from error
            raise
        return [result for future in futures for result in future.result()]


_plays: Any = None
_stop: Any = None


def _start_worker(plays: Any, stop: Any) -> None:
    global _plays, _stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _plays, _stop = plays, stop


def _work(job: Job) -> list[Run]:
    def tick(count: int) -> None:
        with _plays.get_lock():
            _plays.value += count

    return play(job, tick, _stop.is_set)


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _progress(jobs: Sequence[Job], *, quiet: bool) -> Iterator[Report]:
    if quiet:
        yield lambda plays, finished: None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError as error:
        raise MissingExtra("the progress bar needs lacuna[clients]; or use --quiet") from error

    runs = [len(job.policies) for job in jobs]
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[runs]}/{task.fields[all_runs]} runs"),
        TextColumn("{task.fields[rate]} rounds/s"),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        total = sum(job.plays for job in jobs)
        task = bar.add_task("preparing", total=total, runs=0, all_runs=sum(runs), rate="–")

        def report(plays: int, finished: int) -> None:
            speed = bar.tasks[task].speed
            bar.update(
                task,
                completed=plays,
                description="playing",
                # Jobs end out of order, but nearly all have equally many runs.
                runs=sum(runs[:finished]),
                rate="–" if speed is None else f"{speed:,.0f}",
            )

        yield report
