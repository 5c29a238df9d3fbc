"""The regret that the practical constants must stay below."""

from __future__ import annotations

from collections.abc import Sequence

from clients.tables import aligned

from .environments import Setting
from .report import Summary

POLICY = "clbbf"
SEEDS = range(100, 110)
ROUNDS = 10_000
BARS = {
    Setting("homogeneous", 2, 100, 0.7, ROUNDS): 20.0,
    Setting("homogeneous", 2, 30, 0.6, ROUNDS): 25.0,
    Setting("homogeneous", 10, 20, 0.7, ROUNDS): 155.0,
    Setting("homogeneous", 32, 20, 0.9, ROUNDS): 310.0,
}


def verdicts(summaries: Sequence[Summary]) -> list[bool]:
    return [s.regret <= BARS[s.setting] for s in summaries]


def table(summaries: Sequence[Summary]) -> str:
    head = ["p, K, d", "reached", "95 % band", "at most", ""]
    body = [
        [
            f"{s.setting.observed:g}, {s.setting.arms}, {s.setting.dimension}",
            f"{s.regret:.1f}",
            f"± {s.regret_half_width:.1f}",
            f"{BARS[s.setting]:g}",
            "PASS" if passed else "FAIL",
        ]
        for s, passed in zip(summaries, verdicts(summaries), strict=True)
    ]
    return aligned([head, *body])
