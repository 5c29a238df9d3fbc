"""The figures as pictures, in the looks of `lacuna simulate`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from clients.simulate.environments import Setting
from clients.simulate.picture import DPI, INK, LOOKS, STYLE
from clients.simulate.play import curve_rounds
from clients.simulate.report import half_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .learner import Cell
    from .regret import Findings

OURS, THEIRS, LIMIT = "#0072B2", "#E69F00", "#D55E00"


def draw_speed(cells: Sequence[Cell], path: Path) -> None:
    """Time of a round on both sides, and how many times faster, for every (K, d)."""
    from .learner import FASTER, JUDGED

    names = [f"{cell.arms}, {cell.dimension}" for cell in cells]
    place = np.arange(len(cells))[::-1]  # the first on top
    with rc_context(STYLE | {"axes.grid.axis": "x"}):
        figure = Figure(figsize=(8.0, 1.3 + 0.36 * len(cells)), layout="constrained")
        times, ratios = figure.subplots(1, 2, sharey=True)
        for at, cell in zip(place, cells, strict=True):
            ends = [np.median(cell.ours), np.median(cell.theirs)]
            times.plot(ends, [at, at], color="#BBBBBB", linewidth=1.2, zorder=1)
        sides: Sequence[tuple[str, str, str, Any]] = (
            ("Lacuna", OURS, "o", [np.median(cell.ours) for cell in cells]),
            ("Vowpal Wabbit", THEIRS, "s", [np.median(cell.theirs) for cell in cells]),
        )
        for label, colour, marker, medians in sides:
            times.scatter(medians, place, color=colour, marker=marker, s=36, label=label, zorder=2)
        times.set_xscale("log")
        times.set_yticks(place, names)
        times.set_ylabel("K, d")
        times.set_xlabel("µs, one select and one reward")
        times.xaxis.set_major_formatter("{x:,.0f}")
        found = [cell.faster for cell in cells]
        values = np.array([ratio.value for ratio in found])
        around = np.abs([[r.value - r.low for r in found], [r.high - r.value for r in found]])
        judged = [(cell.arms, cell.dimension) == JUDGED for cell in cells]
        shades = [OURS if this else "#9CC3DD" for this in judged]
        ratios.barh(place, values, xerr=around, color=shades, ecolor=INK, height=0.62)
        ratios.axvline(FASTER, color=LIMIT, linewidth=1.4, linestyle=(0, (4, 2)))
        ratios.set_xlim(left=0.0)
        ratios.set_xlabel("times faster, with quartiles")
        judged_at = "K={}, d={}".format(*JUDGED)
        ratios.set_title(f"bar of {FASTER:g} × at {judged_at}", loc="left", color=LIMIT)
        ratios.legend(*times.get_legend_handles_labels(), loc="lower right", frameon=False)
        times.set_title("time of a round", loc="left", color=INK)
        figure.savefig(path, dpi=DPI)


def draw_regret(found: Findings, path: Path) -> None:
    """Regret against its bounds, and the three comparisons over time."""
    scenes = found.scenes
    with rc_context(STYLE):
        figure = Figure(figsize=(8.0, 6.4), layout="constrained")
        (bounds, apart), (low, rare) = figure.subplots(2, 2)
        _draw_bounds(bounds, found)
        _draw_curves(apart, found, scenes.heterogeneous, "missing rates differ by feature")
        _draw_curves(low, found, scenes.low_diversity, "five fixed arms")
        _draw_curves(rare, found, scenes.rare, "rewards of 1 in 100")
        count = len(next(iter(found.late.values())))
        figure.supxlabel(f"mean of {count} seeds, 95 % bands", fontsize=7.5, color="#777777")
        figure.savefig(path, dpi=DPI)


def _draw_bounds(axis: Axes, found: Findings) -> None:
    names = []
    for place, (setting, bound) in enumerate(found.scenes.bounds.items()):
        summary = found.summaries[setting, "clbbf"]
        seeds = summary.curves[:, -1] / bound
        beside = np.full(len(seeds), place + 0.18)
        axis.scatter(beside, seeds, s=9, color="#9CC3DD", linewidth=0)
        axis.errorbar(
            place,
            summary.regret / bound,
            yerr=summary.regret_half_width / bound,
            color=OURS,
            marker="o",
            markersize=5,
            capsize=3,
        )
        names.append(f"{setting.observed:g}, {setting.arms}, {setting.dimension}\n≤ {bound:g}")
    axis.axhline(1.0, color=LIMIT, linewidth=1.4, linestyle=(0, (4, 2)))
    axis.set_ylim(bottom=0.0)
    axis.set_xlim(-0.5, len(names) - 0.5)
    axis.set_xticks(range(len(names)), names)
    axis.set_xlabel("p, K, d")
    axis.set_ylabel("R(T) over its bound")
    axis.set_title("regret and its bounds, mean and every seed", loc="left", color=INK)


def _draw_curves(axis: Axes, found: Findings, setting: Setting, title: str) -> None:
    t = curve_rounds(setting.rounds)
    for name in found.scenes.policies()[setting]:
        label, colour, dashes, _ = LOOKS[name]
        curves = found.summaries[setting, name].curves
        mean, band = curves.mean(axis=0), half_width(curves)
        axis.plot(t, mean, color=colour, linestyle=dashes, linewidth=1.8, label=label)
        low = np.maximum(mean - band, 0.0)
        axis.fill_between(t, low, mean + band, color=colour, alpha=0.18, linewidth=0)
    axis.set_ylim(bottom=0.0)
    axis.set_xlim(0.0, setting.rounds)
    axis.xaxis.set_major_formatter("{x:,.0f}")
    axis.set_xlabel("round t")
    axis.set_ylabel("regret R(t)")
    axis.set_title(title, loc="left", color=INK)
    axis.legend(loc="upper left", frameon=False)
