"""Many jobs on all cores, with a progress bar. Ctrl-C ends it between two blocks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from clients import pool
from clients.errors import MissingExtra

from .play import Job, Run, play

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
    plays, stop = pool.CONTEXT.Value("q", 0), pool.CONTEXT.Event()
    found = pool.run(
        _work,
        [(job,) for job in jobs],
        processes=processes,
        start=_start_worker,
        shared=(plays, stop),
        stop=stop,
        look=lambda done: report(plays.value, done),
    )
    return [result for results in found for result in results]


_plays: Any = None
_stop: Any = None


def _start_worker(plays: Any, stop: Any) -> None:
    global _plays, _stop
    _plays, _stop = plays, stop


def _work(job: Job) -> list[Run]:
    def tick(count: int) -> None:
        with _plays.get_lock():
            _plays.value += count

    return play(job, tick, _stop.is_set)


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
