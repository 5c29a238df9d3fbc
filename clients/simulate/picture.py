"""Regret as pictures: lines with 95 % bands, named at their ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from clients.errors import MissingExtra

from .play import curve_rounds
from .report import Summary, half_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

# Okabe and Ito's palette: told apart with any colour vision; dashes and markers say it again.
LOOKS = {
    "clbbf": ("CLBBF", "#0072B2", "-", "o"),
    "clbbf-paper": ("CLBBF, paper's constants", "#56B4E9", (0, (4, 2)), "s"),
    "clbbf-paper-c6-0": ("CLBBF, paper's constants, C₆ = 0", "#56B4E9", (0, (4, 2)), "s"),
    "clbbf-uniform": ("CLBBF, one missing rate", "#56B4E9", (0, (2, 1)), "P"),
    "e-clbbf": ("E-CLBBF", "#009E73", (0, (6, 2, 1, 2)), "X"),
    "thompson": ("Thompson", "#CC79A7", (0, (4, 1)), "v"),
    "greedy": ("greedy", "#000000", (0, (1, 1)), "*"),
    "oful": ("OFUL, zero fill", "#E69F00", (0, (5, 1, 1, 1)), "^"),
    "oful-paper": ("OFUL, paper's constants", "#D55E00", (0, (5, 1, 1, 1)), "^"),
    "mean-fill": ("OFUL, mean fill", "#009E73", (0, (2, 2)), "D"),
    "random": ("random", "#7F7F7F", (0, (1, 2)), "."),
}
INK, RULE = "#333333", "#DDDDDD"
STYLE: Any = {  # matplotlib types the keys as one long list of literals
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.edgecolor": "#999999",
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "svg.hashsalt": "lacuna",
}
DPI = 200


@dataclass(frozen=True, slots=True)
class Line:
    policy: str
    x: Floats
    mean: Floats
    half_width: Floats


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line]
    markers: bool = False


def curves(title: str, summaries: Sequence[Summary]) -> Panel:
    """R(t) against t."""
    lines = [
        Line(
            s.policy,
            curve_rounds(s.setting.rounds).astype(np.float64),
            s.curves.mean(axis=0),
            half_width(s.curves),
        )
        for s in summaries
    ]
    return Panel(title, "round t", "regret R(t)", lines)


def draw(panels: Sequence[Panel], path: Path, *, log: bool = False, note: str = "") -> None:
    """One row of panels. A single one names its lines at their ends, several share a legend."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("pictures need lacuna[clients]") from error

    single = len(panels) == 1
    with rc_context(STYLE):
        size = (7.2, 4.0) if single else (3.6 * len(panels), 3.7)
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(1, len(panels), squeeze=False)[0]
        for axis, panel in zip(axes, panels, strict=True):
            _draw_panel(axis, panel, log=log)
            if single:
                _name_ends(axis, panel.lines)
        if not single:
            handles, labels = axes[0].get_legend_handles_labels()
            columns = min(len(handles), 4)
            figure.legend(handles, labels, loc="outside upper center", ncols=columns, frameon=False)
        if note:
            figure.supxlabel(note, fontsize=7.5, color="#777777")
        path.parent.mkdir(parents=True, exist_ok=True)
        # Without a date in it, the same runs give the same file.
        metadata = {"Date": None} if path.suffix == ".svg" else None
        figure.savefig(path, dpi=DPI, metadata=metadata)


def _draw_panel(axis: Axes, panel: Panel, *, log: bool) -> None:
    for line in panel.lines:
        label, colour, dashes, marker = LOOKS[line.policy]
        axis.plot(
            line.x,
            line.mean,
            color=colour,
            linestyle=dashes,
            linewidth=1.8,
            marker=marker if panel.markers else None,
            markersize=4.5,
            label=label,
        )
        if np.isfinite(line.half_width).all():
            low = line.mean - line.half_width
            axis.fill_between(
                line.x,
                np.maximum(low, 0.02 * line.mean) if log else low,
                line.mean + line.half_width,
                color=colour,
                alpha=0.18,
                linewidth=0,
            )
    axis.set_title(panel.title, loc="left", color=INK)
    axis.set_xlabel(panel.x_label)
    axis.set_ylabel(panel.y_label)
    if panel.markers:
        axis.set_xticks(panel.lines[0].x)
    if log:
        axis.set_yscale("log")
    else:
        axis.set_ylim(bottom=0.0)
        axis.yaxis.set_major_formatter("{x:,.0f}" if axis.get_ylim()[1] >= 10 else "{x:g}")
    if not panel.markers:
        axis.set_xlim(0.0, max(line.x[-1] for line in panel.lines))
        axis.xaxis.set_major_formatter("{x:,.0f}")


def _name_ends(axis: Axes, lines: Sequence[Line]) -> None:
    """Every line's name beside its last point, kept apart where lines end close together."""
    to_axes = axis.transData + axis.transAxes.inverted()
    ends = [float(to_axes.transform((line.x[-1], line.mean[-1]))[1]) for line in lines]
    for line, height in zip(lines, spread(ends, 0.062), strict=True):
        label, colour, _, _ = LOOKS[line.policy]
        axis.annotate(
            label,
            xy=(1.0, height),
            xycoords="axes fraction",
            xytext=(6, 0),
            textcoords="offset points",
            color=colour,
            va="center",
            fontweight="bold" if line.policy == "clbbf" else "normal",
            annotation_clip=False,
        )


def spread(heights: Sequence[float], gap: float) -> list[float]:
    """The heights, moved up as little as needed to be at least `gap` apart.

    >>> spread([0.5, 0.0, 0.01], 0.1)
    [0.5, 0.0, 0.1]
    """
    placed = list(heights)
    below = -np.inf
    for i in sorted(range(len(heights)), key=lambda i: heights[i]):
        placed[i] = below = max(heights[i], below + gap)
    return placed
