"""The report as one HTML file that needs nothing else: tables, and latency over time as SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

from . import report
from .crew import Found, Moment
from .histogram import Histogram
from .report import Outcome

WIDTH, HEIGHT = 860, 260
LEFT, RIGHT, TOP, BOTTOM = 64, 84, 12, 34

# Okabe and Ito's palette.
BLUE, ORANGE, RED, GREEN = "#0072B2", "#E69F00", "#D55E00", "#009E73"

Points = Sequence[tuple[float, float]]
Line = tuple[str, str, Points]  # name, colour

STYLE = """
:root { color-scheme: light dark; --ink: #222; --dim: #666; --rule: #ddd; --paper: #fff }
@media (prefers-color-scheme: dark) {
  :root { --ink: #eee; --dim: #aaa; --rule: #444; --paper: #16181c } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 900px; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.4rem } h2 { font-size: 1.05rem; margin-top: 2rem }
pre { overflow-x: auto; font-size: 13px; line-height: 1.45 }
svg { width: 100%; height: auto } svg text { font: 11px system-ui, sans-serif; fill: var(--dim) }
svg .rule { stroke: var(--rule) } svg path { fill: none; stroke-width: 1.8 }
.pass { color: #009E73 } .fail { color: #D55E00 } .verdict { font-weight: 600 }
"""


def page(outcome: Outcome) -> str:
    found = outcome.found
    verdict = (
        "<p class='verdict pass'>PASS</p>"
        if not outcome.failures
        else "".join(f"<p class='verdict fail'>FAIL: {escape(f)}</p>" for f in outcome.failures)
    )
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width'>",
        f"<title>Load test of {escape(outcome.url)}</title><style>{STYLE}</style>",
        f"<h1>Load test of {escape(outcome.url)}</h1>{verdict}",
        f"<pre>{escape(report.text(outcome))}</pre>",
        "<h2>Latency over time, ms</h2>",
        chart(_latency_lines(found), "seconds", log=True),
        "<h2>Answers per second over time</h2>",
        chart(_rate_lines(found), "seconds"),
        "<h2>Latency by percentile, ms</h2>",
        chart(_percentile_lines(found), "percentile", log=True, x_name=_percentile_name),
    ]
    if outcome.tried:
        held = sorted((one.rate, one.p99_ms) for one in outcome.tried)
        parts += [
            "<h2>p99 by selects due per second, ms</h2>",
            chart([("p99", BLUE, held)], "selects due per second", log=True),
        ]
    return "\n".join(parts) + "\n"


def _latency_lines(found: Found) -> list[Line]:
    lines: list[Line] = []
    for name, colour, share in (("p50", BLUE, 0.5), ("p99", ORANGE, 0.99), ("max", RED, 1.0)):
        lines.append((name, colour, _over_time(found, _quantile_ms(share))))
    rewards = _over_time(found, _quantile_ms(0.99), lambda moment: moment.rewards)
    return [*lines, ("reward p99", GREEN, rewards)] if rewards else lines


def _quantile_ms(share: float) -> Callable[[Histogram], float]:
    return lambda histogram: 1e3 * histogram.quantile_s(share)


def _rate_lines(found: Found) -> list[Line]:
    lines: list[Line] = []
    for name, colour, of in (
        ("selects", BLUE, lambda m: m.selects),
        ("rewards", GREEN, lambda m: m.rewards),
    ):
        # The last interval is rarely a whole one.
        points = _over_time(found, lambda h: h.count / found.interval_s, of)[:-1]
        if points:
            lines.append((name, colour, points))
    return lines


def _over_time(
    found: Found,
    value: Callable[[Histogram], float],
    of: Callable[[Moment], Histogram] = lambda moment: moment.selects,
) -> Points:
    return [
        ((number + 0.5) * found.interval_s, value(of(moment)))
        for number, moment in enumerate(found.timeline)
        if of(moment).count
    ]


def _percentile_lines(found: Found) -> list[Line]:
    """Against the number of nines, so that the tail has room."""
    lines: list[Line] = []
    for name, colour, histogram in (
        ("select", BLUE, found.selects),
        ("reward", GREEN, found.rewards),
    ):
        if histogram.count:
            nines = [n / 20.0 for n in range(1 + int(20 * math.log10(histogram.count)))]
            points = [(n, 1e3 * histogram.quantile_s(1.0 - 10.0**-n)) for n in nines]
            lines.append((name, colour, points[1:]))
    return lines


def _percentile_name(nines: float) -> str:
    return f"{100.0 * (1.0 - 10.0**-nines):.6g} %"


def chart(
    lines: Sequence[Line],
    x_label: str,
    *,
    log: bool = False,
    x_name: Callable[[float], str] = lambda x: f"{x:,.5g}",
) -> str:
    """Lines in one plot; an empty one says so."""
    points = [point for _, _, line in lines for point in line]
    if not points:
        return "<p>Nothing was measured.</p>"
    x_most = max(x for x, _ in points) or 1.0
    values = [y for _, y in points]
    ticks = _log_ticks(min(values), max(values)) if log else _ticks(max(values))
    low, high = ticks[0], ticks[-1]

    def place(x: float, y: float) -> tuple[float, float]:
        share = (
            (math.log(max(y, low)) - math.log(low)) / (math.log(high) - math.log(low))
            if log
            else y / high
        )
        across = LEFT + (WIDTH - LEFT - RIGHT) * x / x_most
        return across, HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share

    parts = [f"<svg viewBox='0 0 {WIDTH} {HEIGHT}' role='img'>"]
    for tick in ticks:
        _, y = place(0.0, tick)
        parts.append(
            f"<line class='rule' x1='{LEFT}' x2='{WIDTH - RIGHT}' y1='{y:.1f}' y2='{y:.1f}'/>"
            f"<text x='{LEFT - 6}' y='{y + 4:.1f}' text-anchor='end'>{tick:,.6g}</text>"
        )
    for at in _ticks(x_most):
        x, _ = place(at, low)
        if at <= x_most:
            parts.append(
                f"<text x='{x:.1f}' y='{HEIGHT - BOTTOM + 16}' text-anchor='middle'>"
                f"{x_name(at)}</text>"
            )
    parts.append(
        f"<text x='{(LEFT + WIDTH - RIGHT) / 2}' y='{HEIGHT - 4}' text-anchor='middle'>"
        f"{escape(x_label)}</text>"
    )
    for number, (name, colour, line) in enumerate(one for one in lines if one[2]):
        path = "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in line))
        parts.append(
            f"<path d='{path}' stroke='{colour}'/>"
            f"<text x='{WIDTH - RIGHT + 10}' y='{TOP + 4 + 15 * number}' style='fill:{colour}'>"
            f"{escape(name)}</text>"
        )
    return "".join([*parts, "</svg>"])


def _ticks(most: float) -> list[float]:
    most = most or 1.0
    step = 10.0 ** math.floor(math.log10(most))
    step *= next(part for part in (0.2, 0.5, 1.0, 2.0) if most / (step * part) <= 5.5)
    return [step * n for n in range(math.ceil(most / step) + 1)]


def _log_ticks(least: float, most: float) -> list[float]:
    """1, 2, 5, 10, … around both; fewer where there would be many."""
    low, high = math.floor(math.log10(max(least, 1e-3))), math.ceil(math.log10(max(most, 1e-2)))
    parts = (1, 2, 5) if high - low <= 3 else (1,)
    ticks = [part * 10.0**power for power in range(low, high + 1) for part in parts]
    first = max((t for t in ticks if t <= max(least, 1e-3)), default=ticks[0])
    last = min((t for t in ticks if t >= most), default=ticks[-1])
    return [t for t in ticks if first <= t <= last] if first < last else [first, 10.0 * first]
