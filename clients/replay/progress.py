"""How far a replay has come: rounds, rate, and click-through rate so far, for every policy."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from clients.errors import MissingExtra

from .state import Job

LINE_EVERY_S = 15.0  # where there is no terminal

Report = Callable[[int, int, int], None]


class Board:
    """Sums over the seeds of a policy."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.jobs = jobs
        self.counts = [(0, 0)] * len(jobs)
        self.groups: dict[str, list[int]] = {}
        several = len({job.setting for job in jobs}) > 1
        for number, job in enumerate(jobs):
            label = f"{job.policy}, {job.setting.erased:g} erased" if several else job.policy
            self.groups.setdefault(label, []).append(number)

    def total(self, label: str) -> int:
        return sum(self.jobs[number].setting.rounds for number in self.groups[label])

    def so_far(self, label: str) -> tuple[int, float | None]:
        """Rounds and CTR."""
        done = sum(self.counts[number][0] for number in self.groups[label])
        hits = sum(self.counts[number][1] for number in self.groups[label])
        return done, hits / done if done else None


@contextmanager
def shown(jobs: Sequence[Job], *, quiet: bool) -> Iterator[Report]:
    board = Board(jobs)
    if quiet:
        yield lambda number, done, hits: None
        return
    if not sys.stderr.isatty():
        yield _Lines(board)
        return
    with _bars() as bar:
        tasks = {
            label: bar.add_task(label, total=board.total(label), ctr="–", rate="–")
            for label in board.groups
        }
        labels = {number: label for label, numbers in board.groups.items() for number in numbers}

        def report(number: int, done: int, hits: int) -> None:
            board.counts[number] = (done, hits)
            label = labels[number]
            rounds, ctr = board.so_far(label)
            speed = bar.tasks[tasks[label]].speed
            bar.update(
                tasks[label],
                completed=rounds,
                ctr="–" if ctr is None else f"{ctr:.4f}",
                rate="–" if speed is None else f"{speed:,.0f}",
            )

        yield report


class _Lines:
    """For logs: a line now and then."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.told = time.monotonic()
        self.before: tuple[float, int] | None = None  # when, and how many had been played

    def __call__(self, number: int, done: int, hits: int) -> None:
        self.board.counts[number] = (done, hits)
        now = time.monotonic()
        if now - self.told < LINE_EVERY_S:
            return
        self.told = now
        played = sum(count for count, _ in self.board.counts)
        then, earlier = self.before or (now, played)
        self.before = now, played
        total = sum(job.setting.rounds for job in self.board.jobs)
        rates = ", ".join(
            f"{label} {ctr:.4f}"
            for label in self.board.groups
            if (ctr := self.board.so_far(label)[1]) is not None
        )
        speed = f", {(played - earlier) / (now - then):,.0f}/s" if now > then else ""
        print(f"{played:,}/{total:,} rounds{speed}; CTR {rates}", file=sys.stderr)


@contextmanager
def reading(*, quiet: bool) -> Iterator[Callable[[int], None]]:
    """While files are read."""
    if quiet or not sys.stderr.isatty():
        yield lambda rows: None
        return
    from rich.console import Console

    with Console(stderr=True).status("reading …") as status:
        started = time.monotonic()

        def tick(rows: int) -> None:
            rate = rows / max(time.monotonic() - started, 1e-9)
            status.update(f"reading … {rows:,} impressions, {rate:,.0f}/s")

        yield tick


def _bars() -> Any:
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError as error:
        raise MissingExtra("the progress bar needs lacuna[clients]; or use --quiet") from error
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f}/{task.total:,.0f}"),
        TextColumn("{task.fields[rate]} rounds/s"),
        TextColumn("CTR {task.fields[ctr]}"),
        TimeRemainingColumn(elapsed_when_finished=True),
        console=Console(stderr=True),
    )
