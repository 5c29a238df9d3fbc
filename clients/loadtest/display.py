"""What is seen while it runs: a table that redraws itself, or a line now and then."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from clients.errors import MissingExtra

from .crew import Found
from .report import NAMES, SHARES

if TYPE_CHECKING:
    from rich.panel import Panel

LINE_EVERY_S = 5.0

See = Callable[[Found], None]


@contextmanager
def shown(title: str, *, quiet: bool) -> Iterator[See]:
    if quiet:
        yield lambda found: None
        return
    try:
        from rich.console import Console
        from rich.live import Live
    except ImportError as error:
        raise MissingExtra("the live display needs lacuna[clients]; or use --quiet") from error
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines()
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:

        def see(found: Found) -> None:
            live.update(_table(title, found), refresh=True)

        yield see


def _lines() -> See:
    last = monotonic()

    def see(found: Found) -> None:
        nonlocal last
        if monotonic() - last >= LINE_EVERY_S:
            last = monotonic()
            p50, p99 = found.selects.quantiles_ms((0.5, 0.99))
            print(
                f"{found.elapsed_s:6.1f} s  {found.rate:,.0f} selects/s  p50 {p50:.2f} ms  "
                f"p99 {p99:.2f} ms  errors {sum(found.account.errors.values()):,}",
                file=sys.stderr,
                flush=True,
            )

    return see


def _table(title: str, found: Found) -> Panel:
    from rich.panel import Panel
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in ("", "answers", "now/s", *NAMES):
        table.add_column(name, justify="left" if not name else "right")
    recent = found.timeline[-2] if len(found.timeline) > 1 else None
    for name in ("selects", "rewards"):
        histogram = getattr(found, name)
        now = getattr(recent, name).count / found.interval_s if recent else 0.0
        cells = [f"{value:,.2f}" for value in histogram.quantiles_ms(SHARES)]
        table.add_row(name, f"{histogram.count:,}", f"{now:,.0f}", *cells)
    account = found.account
    left = max(0.0, found.step.duration_s - found.elapsed_s)
    below = (
        f"{left:.0f} s left · {found.busy} under way, {found.waiting} waiting · "
        f"errors {sum(account.errors.values()):,} · recorded {account.recorded:,}, "
        f"duplicates {account.duplicates:,}, retries {account.retries:,}"
    )
    return Panel(table, title=title, subtitle=below, title_align="left", subtitle_align="left")
