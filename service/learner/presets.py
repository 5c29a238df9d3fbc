"""λ and β, the two numbers that say how carefully to explore.

`paper`      the constants of Theorem regret; valid, and far wider than needed
`practical`  chosen by experiment: docs/decisions/0003-practical-constants.md
"""

from __future__ import annotations

import math
from typing import NamedTuple

from .config import LearnerConfig
from .regression import Regression

PRACTICAL_RIDGE = 1.0
PRACTICAL_WIDTH = 0.1


class Round(NamedTuple):
    """What the formulas know of a request."""

    number: int  # t
    arms: int  # K
    horizon: int  # T


def horizon_of(config: LearnerConfig, number: int) -> int:
    """T, or by the doubling trick T = 2^⌈log2(t+1)⌉."""
    if config.horizon is not None:
        return max(2, config.horizon)  # ln(KT) must not vanish
    return 1 << number.bit_length()


def ridge(config: LearnerConfig, this: Round) -> float:
    """λ"""
    if config.ridge is not None:
        return config.ridge
    if config.preset == "paper":
        # λ = C₄ d ln(KT)
        return config.constants.c4 * config.dimension * math.log(this.arms * this.horizon)
    return PRACTICAL_RIDGE


def paper_width(
    config: LearnerConfig, this: Round, model: Regression, p_hat: float, *, completes: bool
) -> float:
    """β = C₅√((d+1) ln(tT)) + C₂√λ + C₆ (d/p̂)^{3/2} √(ln(KT)/K) X   (eq. conf)

    The last term pays for errors of completion, so policies that do not complete, or complete
    only after their moments have settled (Algorithm 2), go without it.
    """
    c, d = config.constants, config.dimension
    beta = c.c5 * math.sqrt((d + 1) * math.log(this.number * this.horizon))
    beta += c.c2 * math.sqrt(model.ridge)
    if completes and c.c6 > 0.0:
        # X = Σ_s ‖ẑ_s‖_{V⁻¹} ≤ √(r tr(V⁻¹S)) by Cauchy-Schwarz: O(1) here instead of O(t).
        x = math.sqrt(model.count * model.effective_dimension())
        log_kt = math.log(this.arms * this.horizon)
        beta += c.c6 * (d / p_hat) ** 1.5 * math.sqrt(log_kt / this.arms) * x
    return beta


def practical_width(config: LearnerConfig, this: Round, model: Regression) -> float:
    d = config.dimension
    return PRACTICAL_WIDTH * (
        math.sqrt((d + 1) * math.log(this.number * this.horizon)) + math.sqrt(model.ridge)
    )


def thompson_scale(config: LearnerConfig, this: Round, model: Regression) -> float:
    return 0.3
