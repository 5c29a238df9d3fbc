"""A demo as a picture: click rates over time, and what was missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from clients.errors import MissingExtra

from .view import LABELS, SIMULATED, Scene, by_feature
from .world import NAMES

# Okabe and Ito's palette; every line is also named at its end.
COLOURS = {"lacuna": "#0072B2", "zero-fill": "#E69F00", "random": "#7F7F7F"}
INK, RULE, OUTAGE = "#333333", "#DDDDDD", "#D55E00"
WINDOW_S = 10
DPI = 150


def draw(scene: Scene, path: Path) -> None:
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("the picture needs lacuna[clients]; or use --no-picture") from error
    style = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    with rc_context(style):  # type: ignore[arg-type]
        figure = Figure(figsize=(9.5, 3.9), layout="constrained")
        rates, holes = figure.subplots(1, 2, width_ratios=(2.2, 1.0))
        seconds = list(scene.score.seconds)
        time = np.array([number for number, _ in seconds])
        for name in scene.score.names:
            expected = np.array([second.slots[name].expected for _, second in seconds])
            pages = np.array([second.slots[name].pages for _, second in seconds])
            share = _moving(expected) / np.maximum(1, _moving(pages))
            rates.plot(time, share, color=COLOURS[name], linewidth=2.0)
            _name(rates, LABELS[name], time, share, COLOURS[name])
        best = np.array([second.best for _, second in seconds])
        pages = np.array([second.pages for _, second in seconds])
        share = _moving(best) / np.maximum(1, _moving(pages))
        rates.plot(time, share, color=INK, linewidth=1.0, linestyle=(0, (3, 2)))
        _name(rates, "all-knowing", time, share, INK)
        for number, second in seconds:
            if second.outage:
                rates.axvspan(number, number + 1, color=OUTAGE, alpha=0.08, linewidth=0)
        rates.set_ylim(bottom=0.0)
        rates.margins(x=0.12)
        rates.set_xlim(left=0.0)
        rates.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        rates.grid(axis="y", color=RULE, linewidth=0.6)
        rates.set_xlabel("seconds; shaded: the quality scores' supplier is down")
        rates.set_title(f"Expected click rate of the ads shown, last {WINDOW_S} s", loc="left")
        place = np.arange(len(NAMES))[::-1]
        holes.barh(place, by_feature(scene), color="#9CC3DD")
        holes.set_yticks(place, NAMES)
        holes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        holes.set_title("Missing", loc="left")
        figure.suptitle(SIMULATED, fontsize=8, color=INK, x=0.01, ha="left")
        figure.savefig(path, dpi=DPI)


def _moving(
    values: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Sums over the last seconds."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    last = np.arange(1, len(total))
    return np.asarray(total[last] - total[np.maximum(0, last - WINDOW_S)])


def _name(axes: object, name: str, x: object, y: object, colour: str) -> None:
    axes.annotate(  # type: ignore[attr-defined]
        name,
        (x[-1], y[-1]),  # type: ignore[index]
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
        color=colour,
    )
