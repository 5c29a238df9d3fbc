"""What is seen of a demo: live, as a line now and then, and at its end."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from clients.adserver import AdServer
from clients.errors import MissingExtra

from .score import Score
from .traffic import SimulatedSupply, Visitors
from .world import NAMES, REASONS, block

if TYPE_CHECKING:
    from rich.console import Group

LINE_EVERY_S = 10.0
LINE_EVERY_FOREVER_S = 60.0  # somebody keeps the log
LABELS = {"lacuna": "Lacuna", "zero-fill": "zero-fill", "random": "random"}
BAR_CELLS = 32
SIMULATED = "Users, ads and clicks are simulated; the service and all requests are real."


@dataclass(frozen=True, slots=True)
class Scene:
    """All that a view looks at."""

    url: str
    score: Score
    server: AdServer
    supply: SimulatedSupply
    visitors: Visitors
    duration_s: float | None

    def missing(self, places: list[int]) -> float:
        seen = self.server.seen
        if not seen.entries:
            return math.nan
        return float(seen.missing[places].sum()) / (seen.entries * len(places))

    @property
    def missing_rate(self) -> float:
        return self.missing(list(range(len(NAMES))))

    def latency_ms(self) -> tuple[float, float]:
        p50, p99 = self.server.seen.select_s.quantiles_ms((0.5, 0.99))
        return p50, p99


@contextmanager
def shown(scene: Scene, *, quiet: bool) -> Iterator[Callable[[], None]]:
    """A function to call a few times a second."""
    if quiet:
        yield lambda: None
        return
    try:
        from rich.console import Console
        from rich.live import Live
    except ImportError as error:
        raise MissingExtra("the live view needs lacuna[clients]; or use --quiet") from error
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines(scene)
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield lambda: live.update(_drawn(scene), refresh=True)


def _lines(scene: Scene) -> Callable[[], None]:
    last = monotonic()
    every_s = LINE_EVERY_FOREVER_S if scene.duration_s is None else LINE_EVERY_S

    def see() -> None:
        nonlocal last
        if monotonic() - last >= every_s:
            last = monotonic()
            rates = "  ".join(
                f"{LABELS[name]} {tally.rate:.1%}" for name, tally in scene.score.slots.items()
            )
            p50, p99 = scene.latency_ms()
            failed = f"  failed {scene.visitors.failed:,}" if scene.visitors.failed else ""
            print(
                f"{scene.supply.elapsed_s:6.0f} s  {scene.score.pages:,} pages  CTR: {rates}  "
                f"missing {scene.missing_rate:.0%}  select p50 {p50:.1f} p99 {p99:.1f} ms{failed}",
                file=sys.stderr,
                flush=True,
            )

    return see


def _drawn(scene: Scene) -> Group:
    from rich.console import Group
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    score, seen = scene.score, scene.server.seen
    clicks = Table(box=None, pad_edge=False)
    for name in ("click rate", "all", "last 10 s", ""):
        clicks.add_column(name, justify="left" if name in ("click rate", "") else "right")
    most = max((t.rate for t in score.slots.values() if t.pages), default=0.0) or 1.0
    for name, tally in score.slots.items():
        rate = 0.0 if math.isnan(tally.rate) else tally.rate
        bar = "█" * round(BAR_CELLS * rate / most)
        style = "bold green" if name == "lacuna" else ""
        recent = score.recent(name)
        clicks.add_row(
            Text(LABELS[name], style),
            f"{rate:.1%}",
            "–" if math.isnan(recent) else f"{recent:.1%}",
            Text(bar, style),
        )
    holes = Table(box=None, pad_edge=False)
    for name in ("missing", "", "because of"):
        holes.add_column(name, justify="right" if not name else "left")
    for supplier, reason in REASONS.items():
        down = supplier == "quality" and scene.supply.outage
        holes.add_row(
            supplier,
            f"{scene.missing(block(supplier)):.0%}",
            Text("OUTAGE now" if down else reason, "bold red" if down else ""),
        )
    p50, p99 = scene.latency_ms()
    left = "" if scene.duration_s is None else f"of {scene.duration_s:.0f} "
    status = (
        f"{scene.supply.elapsed_s:.0f} {left}s · {score.pages:,} pages · "
        f"{seen.clicks:,} clicks reported, {seen.late:,} too late · "
        f"select p50 {p50:.1f} ms, p99 {p99:.1f} ms"
    )
    if scene.visitors.failed:
        status += f" · {scene.visitors.failed:,} requests failed"
    panel = Panel(clicks, title=f"the same traffic at {scene.url}", title_align="left")
    return Group(panel, Panel(holes, title="what is not known", title_align="left"), Text(status))


def summary(scene: Scene) -> str:
    score, seen = scene.score, scene.server.seen
    if not score.pages:
        return f"No page was served. {scene.visitors.why}".rstrip()
    rows = [
        f"{LABELS[name]:<12}{tally.rate:>8.1%}{tally.expected_rate:>12.1%}{tally.clicks:>10,}"
        for name, tally in score.slots.items()
    ]
    p50, p99 = scene.latency_ms()
    worst = sorted(REASONS, key=lambda one: -scene.missing(block(one)))
    holes = ", ".join(f"{one} {scene.missing(block(one)):.0%}" for one in worst)
    lines = [
        f"{score.pages:,} pages in {scene.supply.elapsed_s:.0f} s, the same for all",
        "",
        f"{'':<12}{'clicked':>8}{'expected':>12}{'clicks':>10}",
        *rows,
        f"{'at best':<12}{'':>8}{score.best / score.pages:>12.1%}",
        "",
        f"Lacuna got {score.lift('lacuna', 'zero-fill'):+.0%} clicks against zero-fill "
        f"and {score.lift('lacuna', 'random'):+.0%} against random.",
        f"{scene.missing_rate:.0%} of all features were missing ({holes}).",
        f"A select took {p50:.1f} ms (median), {p99:.1f} ms (p99), seen from the ad server; "
        f"{seen.clicks:,} clicks were reported, {seen.late:,} after their default was booked.",
        SIMULATED,
    ]
    if scene.visitors.failed:
        lines.append(f"{scene.visitors.failed:,} requests failed; the last: {scene.visitors.why}")
    return "\n".join(lines)


def by_feature(scene: Scene) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([scene.missing([place]) for place in range(len(NAMES))])
