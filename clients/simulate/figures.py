"""The figures of the documentation, each from one command."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .environments import Setting
from .picture import Line, Panel, curves
from .report import Summary

SYNTHETIC_ARMS = (30, 100)
CURVE_SETTING = (100, 0.7)  # K, p of panel (c)
MISSING = (0.0, 0.1, 0.2, 0.3, 0.4)  # 1 − p


@dataclass(frozen=True, slots=True)
class Figure:
    summary: str
    policies: tuple[str, ...]
    settings: Callable[[int], list[Setting]]  # given T
    panels: Callable[[Sequence[Summary]], list[Panel]]


def synthetic_settings(rounds: int) -> list[Setting]:
    return [
        Setting("paper", 2, arms, _observed(missing), rounds)
        for arms in SYNTHETIC_ARMS
        for missing in MISSING
    ]


def synthetic_panels(summaries: Sequence[Summary]) -> list[Panel]:
    """Panels (a), (b), (c) of fig:syn."""
    few, many = ([s for s in summaries if s.setting.arms == arms] for arms in SYNTHETIC_ARMS)
    over_time = [s for s in summaries if (s.setting.arms, s.setting.observed) == CURVE_SETTING]
    return [
        against_missing("(a)  K = 30", few),
        against_missing("(b)  K = 100", many),
        curves("(c)  K = 100, 1 − p = 0.3", over_time),
    ]


def missing_settings(rounds: int) -> list[Setting]:
    return [Setting("homogeneous", 10, 20, _observed(missing), rounds) for missing in MISSING]


def missing_panels(summaries: Sequence[Summary]) -> list[Panel]:
    rounds = summaries[0].setting.rounds
    title = f"Regret after {rounds:,} rounds, 20 arms of 10 features"
    return [against_missing(title, summaries)]


def against_missing(title: str, summaries: Sequence[Summary]) -> Panel:
    """R(T) against 1 − p."""
    lines = []
    for policy in dict.fromkeys(s.policy for s in summaries):
        own = sorted((s for s in summaries if s.policy == policy), key=lambda s: -_seen(s.setting))
        lines.append(
            Line(
                policy,
                np.array([round(1.0 - _seen(s.setting), 9) for s in own]),
                np.array([s.regret for s in own]),
                np.array([s.regret_half_width for s in own]),
            )
        )
    return Panel(title, "missing probability 1 − p", "regret R(T)", lines, markers=True)


def _observed(missing: float) -> float:
    return round(1.0 - missing, 9)  # 0.7, not 0.7000000000000001: it is a key


def _seen(setting: Setting) -> float:
    assert setting.observed is not None
    return setting.observed


FIGURES = {
    "synthetic": Figure(
        "panels (a), (b), (c) of the paper's synthetic experiments",
        ("clbbf", "clbbf-paper-c6-0", "oful-paper"),
        synthetic_settings,
        synthetic_panels,
    ),
    "missing": Figure(
        "regret against the missing rate: completion, zero fill, mean fill",
        ("clbbf", "mean-fill", "oful"),
        missing_settings,
        missing_panels,
    ),
}
