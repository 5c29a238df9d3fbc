"""What the runs say: means with 95 % bands over the seeds, as a table and as JSON."""

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
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student

from clients.tables import aligned
from service import __version__

from .environments import Setting
from .play import Run, curve_rounds
from .players import config_of

Floats = NDArray[np.float64]

FORMAT = 1
CONFIDENCE = 0.95


def half_width(samples: ArrayLike) -> Floats:
    """Of the band about the mean over the first axis: t_{0.975, n−1} s / √n; NaN where n = 1."""
    values = np.asarray(samples, dtype=np.float64)
    n = len(values)
    if n < 2:
        return np.full(values.shape[1:], np.nan)
    quantile = student.ppf((1.0 + CONFIDENCE) / 2.0, n - 1)
    return np.asarray(quantile * values.std(axis=0, ddof=1) / math.sqrt(n))


@dataclass(frozen=True, slots=True)
class Summary:
    """One policy in one setting, over all seeds."""

    setting: Setting
    policy: str
    seeds: tuple[int, ...]
    curves: Floats  # (seeds, points)  R(t) at curve_rounds(T)
    rewards: Floats  # (seeds,)  mean reward of a round
    seconds: float  # all seeds together

    @property
    def regret(self) -> float:
        """R(T)"""
        return float(self.curves[:, -1].mean())

    @property
    def regret_half_width(self) -> float:
        return float(half_width(self.curves[:, -1]))

    @property
    def round_us(self) -> float:
        return 1e6 * self.seconds / (len(self.seeds) * self.setting.rounds)


def summarise(runs: Sequence[Run]) -> list[Summary]:
    """In the order of the runs."""
    groups: dict[tuple[Setting, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.setting, run.policy), []).append(run)
    return [
        Summary(
            setting,
            policy,
            tuple(run.seed for run in group),
            np.array([run.regret for run in group]),
            np.array([run.mean_reward for run in group]),
            sum(run.seconds for run in group),
        )
        for (setting, policy), group in groups.items()
    ]


def pick_baseline(policies: Sequence[str], asked: str | None = None) -> str:
    """The one that ratios are to: the one asked for, else OFUL as in the paper, else the last."""
    return asked or ("oful-paper" if "oful-paper" in policies else policies[-1])


def ratios(summaries: Sequence[Summary], baseline: str) -> list[float]:
    """R(T) over the baseline's in the same setting; NaN where that is not above 0."""
    base = {s.setting: s.regret for s in summaries if s.policy == baseline}
    return [
        s.regret / base[s.setting] if base.get(s.setting, 0.0) > 0.0 else math.nan
        for s in summaries
    ]


def table(summaries: Sequence[Summary], baseline: str) -> str:
    """A plain table for every setting."""
    rows: dict[Setting, list[list[str]]] = {}
    for summary, ratio in zip(summaries, ratios(summaries, baseline), strict=True):
        rows.setdefault(summary.setting, []).append(
            [
                summary.policy,
                f"{_short(summary.regret)} ± {_short(summary.regret_half_width)}",
                f"{ratio:.3f}" if math.isfinite(ratio) else "–",
                f"{summary.rewards.mean():.4f}",
                f"{summary.round_us:.0f}",
            ]
        )
    head = ["policy", "R(T), 95 % band", f"over {baseline}", "reward", "µs/round"]
    return "\n\n".join(
        f"{setting}, {_seeds(summaries[0].seeds)}\n{aligned([head, *body])}"
        for setting, body in rows.items()
    )


def to_dict(title: str, summaries: Sequence[Summary], baseline: str) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "title": title,
        "versions": {
            "lacuna": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "scipy", "numba")},
        },
        "confidence": CONFIDENCE,
        "baseline": baseline,
        "results": [
            _result(summary, ratio)
            for summary, ratio in zip(summaries, ratios(summaries, baseline), strict=True)
        ],
    }


def _result(summary: Summary, ratio: float) -> dict[str, Any]:
    setting = summary.setting
    config = config_of(
        summary.policy, dimension=setting.dimension, horizon=setting.rounds, seed=summary.seeds[0]
    ).to_dict()
    del config["seed"]  # each run's own, as listed
    return {
        "setting": setting.to_dict(),
        "policy": summary.policy,
        "config": config,
        "seeds": list(summary.seeds),
        "regret": {
            "mean": summary.regret,
            "half_width": _finite(summary.regret_half_width),
            "per_seed": summary.curves[:, -1].tolist(),
            "over_baseline": _finite(ratio),
        },
        "reward": {"mean": float(summary.rewards.mean()), "per_seed": summary.rewards.tolist()},
        "round_us": summary.round_us,
        "curve": {
            "t": curve_rounds(setting.rounds).tolist(),
            "mean": summary.curves.mean(axis=0).tolist(),
            "half_width": [_finite(value) for value in half_width(summary.curves).tolist()],
            "per_seed": summary.curves.tolist(),
        },
    }


def write_json(path: Path, report: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, allow_nan=False) + "\n", encoding="utf-8")


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _short(value: float) -> str:
    if not math.isfinite(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _seeds(seeds: Sequence[int]) -> str:
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    return f"seeds {seeds[0]} to {seeds[-1]}"
