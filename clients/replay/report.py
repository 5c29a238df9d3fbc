"""What the runs say: click-through rates with 95 % bands over the seeds."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clients.simulate.picture import Line, Panel
from clients.simulate.players import config_of
from clients.simulate.report import half_width
from clients.tables import aligned
from service import __version__

from .local import ctr
from .protocol import Setting
from .state import Job, Progress

Floats = NDArray[np.float64]

FORMAT = 1
POINTS = 200
BASELINE = "oful"


@dataclass(frozen=True, slots=True)
class Summary:
    """One policy in one setting, over all seeds."""

    setting: Setting
    policy: str
    seeds: tuple[int, ...]
    curves: Floats  # (seeds, points)  CTR(t) at curve_rounds(T)
    seconds: float

    @property
    def ctr(self) -> float:
        """CTR(T)"""
        return float(self.curves[:, -1].mean())

    @property
    def half_width(self) -> float:
        return float(half_width(self.curves[:, -1]))

    @property
    def round_us(self) -> float:
        return 1e6 * self.seconds / (len(self.seeds) * self.setting.rounds)


def curve_rounds(rounds: int) -> NDArray[np.int64]:
    """Where curves are kept: evenly, T among them."""
    return np.unique(np.linspace(rounds / POINTS, rounds, POINTS).round().astype(np.int64).clip(1))


def summarise(jobs: Sequence[Job], results: Sequence[Progress]) -> list[Summary]:
    groups: dict[tuple[Setting, str], list[tuple[Job, Progress]]] = {}
    for job, progress in zip(jobs, results, strict=True):
        groups.setdefault((job.setting, job.policy), []).append((job, progress))
    return [
        Summary(
            setting,
            policy,
            tuple(job.seed for job, _ in group),
            np.array([ctr(one)[curve_rounds(setting.rounds) - 1] for _, one in group]),
            sum(one.seconds for _, one in group),
        )
        for (setting, policy), group in groups.items()
    ]


def ratios(summaries: Sequence[Summary], baseline: str) -> list[float]:
    base = {s.setting: s.ctr for s in summaries if s.policy == baseline}
    return [s.ctr / base[s.setting] if base.get(s.setting) else math.nan for s in summaries]


def table(summaries: Sequence[Summary], baseline: str) -> str:
    rows: dict[Setting, list[list[str]]] = {}
    for one, ratio in zip(summaries, ratios(summaries, baseline), strict=True):
        width = f" ± {one.half_width:.4f}" if math.isfinite(one.half_width) else ""
        rows.setdefault(one.setting, []).append(
            [
                one.policy,
                f"{one.ctr:.4f}{width}",
                f"{ratio:.3f}" if math.isfinite(ratio) else "–",
                f"{one.round_us:,.0f}",
            ]
        )
    head = ["policy", "CTR(T), 95 % band", f"over {baseline}", "µs/round"]
    seeds = summaries[0].seeds
    counted = f"{len(seeds)} seeds from {seeds[0]}" if len(seeds) > 1 else f"seed {seeds[0]}"
    return "\n\n".join(
        f"{describe(setting)}, {counted}\n{aligned([head, *body])}"
        for setting, body in rows.items()
    )


def describe(setting: Setting) -> str:
    """
    >>> describe(Setting(rounds=10_000))
    '10 % erased, K=20, T=10,000'
    """
    log = "as logged, " if setting.mode == "log" else ""
    return f"{log}{100 * setting.erased:g} % erased, K={setting.arms}, T={setting.rounds:,}"


def panels(summaries: Sequence[Summary]) -> list[Panel]:
    """One for each setting: CTR(t) against t."""
    found: dict[Setting, list[Line]] = {}
    for one in summaries:
        found.setdefault(one.setting, []).append(
            Line(
                one.policy,
                curve_rounds(one.setting.rounds).astype(np.float64),
                one.curves.mean(axis=0),
                half_width(one.curves),
            )
        )
    return [
        Panel(describe(setting), "round t", "click-through rate", lines)
        for setting, lines in found.items()
    ]


def to_dict(
    about: dict[str, Any], summaries: Sequence[Summary], baseline: str, dimension: int
) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "data": about,
        "versions": {
            "lacuna": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "scipy", "numba")},
        },
        "baseline": baseline,
        "results": [
            _result(one, ratio, dimension)
            for one, ratio in zip(summaries, ratios(summaries, baseline), strict=True)
        ],
    }


def _result(one: Summary, ratio: float, dimension: int) -> dict[str, Any]:
    setting = one.setting
    config = config_of(
        one.policy, dimension=dimension, horizon=setting.rounds, seed=one.seeds[0]
    ).to_dict()
    del config["seed"]  # each run's own, as listed
    return {
        "setting": setting.to_dict(),
        "policy": one.policy,
        "config": config,
        "seeds": list(one.seeds),
        "ctr": {
            "mean": one.ctr,
            "half_width": finite(one.half_width),
            "per_seed": one.curves[:, -1].tolist(),
            "over_baseline": finite(ratio),
        },
        "round_us": one.round_us,
        "curve": {
            "t": curve_rounds(setting.rounds).tolist(),
            "mean": one.curves.mean(axis=0).tolist(),
            "half_width": [finite(value) for value in half_width(one.curves).tolist()],
        },
    }


def finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def write_json(path: Path, document: dict[str, Any]) -> None:
    path.write_text(json.dumps(document, allow_nan=False) + "\n", encoding="utf-8")
