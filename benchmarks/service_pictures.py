"""The figures of the service as one picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from clients.simulate.picture import DPI, INK, STYLE

from .pictures import OURS, THEIRS
from .service_rates import SIDES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .service_report import Findings


def draw(found: Findings, path: Path) -> None:
    with rc_context(STYLE | {"axes.grid.axis": "x"}):
        figure = Figure(figsize=(9.0, 4.2), layout="constrained")
        rates, latency = figure.subplots(1, 2)
        _draw_rates(rates, found)
        _draw_sizes(latency, found)
        figure.savefig(path, dpi=DPI)


def _draw_rates(axes: Axes, found: Findings) -> None:
    place = np.arange(len(SIDES))[::-1]
    values = [found.rates.median(side) for side in SIDES]
    around = np.array([np.quantile(found.rates.found[side], (0.25, 0.75)) for side in SIDES]).T
    errors = np.abs(around - values)
    shades = [THEIRS if side.startswith("(") else OURS for side in SIDES]
    axes.barh(place, values, xerr=errors, color=shades, height=0.62, ecolor=INK)
    axes.set_yticks(place, SIDES)
    axes.set_xlabel("answers per second, one worker, with quartiles")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.set_title("(a) bare FastAPI, (b) raw ASGI", loc="left")


def _draw_sizes(axes: Axes, found: Findings) -> None:
    cells = found.cells
    place = np.arange(len(cells))[::-1]
    for at, cell in zip(place, cells, strict=True):
        axes.plot(cell.quantiles_ms[:3:2], [at, at], color="#BBBBBB", linewidth=1.2, zorder=1)
    for column, colour, label in ((0, OURS, "p50"), (2, THEIRS, "p99")):
        values = [cell.quantiles_ms[column] for cell in cells]
        axes.scatter(values, place, color=colour, s=22, label=label, zorder=2)
    axes.set_xscale("log")
    axes.set_yticks(place, [f"{cell.arms}, {cell.dimension} {cell.body}" for cell in cells])
    axes.set_xlabel("ms at half of the highest rate, open loop")
    axes.set_ylabel("K, d, body")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter("{x:g}")
    axes.legend(frameon=False)
