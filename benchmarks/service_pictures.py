"""The figures of the service as one picture."""

from __future__ import annotations

from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure

from clients.simulate.picture import DPI, INK, STYLE

from .pictures import OURS, THEIRS
from .service_rates import SIDES, Rates


def draw(rates: Rates, path: Path) -> None:
    with rc_context(STYLE | {"axes.grid.axis": "x"}):
        figure = Figure(figsize=(8.0, 3.2), layout="constrained")
        axes = figure.subplots()
        place = range(len(SIDES))[::-1]
        values = [rates.median(side) for side in SIDES]
        shades = [THEIRS if side.startswith("(") else OURS for side in SIDES]
        axes.barh(place, values, color=shades, height=0.62, ecolor=INK)
        axes.set_yticks(place, SIDES)
        axes.set_xlabel("answers per second, one worker, closed loop, median of rounds")
        axes.xaxis.set_major_formatter("{x:,.0f}")
        figure.savefig(path, dpi=DPI)
