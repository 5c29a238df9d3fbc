"""One line of progress on the terminal, drawn only when asked to; elsewhere a line now and then.

A bar that redraws itself from a thread of its own would take the interpreter away from what is
being timed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

LINE_EVERY_S = 30.0


class Steps(Protocol):
    def plan(self, count: int) -> None:
        """There are this many steps more."""
        ...

    def done(self, what: str) -> None:
        """One step is done; `what` comes next."""
        ...


class Lines:
    def __init__(self, name: str) -> None:
        self.name, self.total, self.count = name, 0, 0
        self.next_at = time.monotonic() + LINE_EVERY_S

    def plan(self, count: int) -> None:
        self.total += count

    def done(self, what: str) -> None:
        self.count += 1
        if time.monotonic() >= self.next_at:
            print(f"{self.name}: {self.count} of {self.total}, {what}", file=sys.stderr, flush=True)
            self.next_at = time.monotonic() + LINE_EVERY_S


class Bar:
    def __init__(self, progress: Progress, name: str) -> None:
        self.progress, self.name, self.total = progress, name, 0
        self.task = progress.add_task(name, total=0)

    def plan(self, count: int) -> None:
        self.total += count
        self.progress.update(self.task, total=self.total)
        self.progress.refresh()

    def done(self, what: str) -> None:
        self.progress.update(self.task, advance=1, description=f"{self.name}: {what}")
        self.progress.refresh()


@contextmanager
def shown(name: str) -> Iterator[Steps]:
    console = Console(stderr=True)
    if not console.is_terminal:
        yield Lines(name)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True, auto_refresh=False) as progress:
        yield Bar(progress, name)
