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
NARROW, WIDE = 0.2, 0.7
WIDE_EVERY = 16  # rounds
THOMPSON_WIDTH = 0.5


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


def optimistic_width(
    config: LearnerConfig, this: Round, model: Regression, p_hat: float, *, completion_error: bool
) -> float:
    """β of the arm's score ẑᵀθ̂ + β‖ẑ‖_{V⁻¹}."""
    if config.preset == "paper":
        beta = _paper_width(config, this, model, p_hat, completion_error)
        return beta if config.width is None else config.width * beta
    # β = w σ̂ √ln(tT): the paper's first term for one direction instead of the whole ball.
    w = practical_width(config, this) if config.width is None else config.width
    return w * noise(model) * math.sqrt(math.log(this.number * this.horizon))


def practical_width(config: LearnerConfig, this: Round) -> float:
    """w: narrow, but wide in the first d + 1 rounds and in every sixteenth after.

    Where arms differ from round to round they explore by themselves, and width only costs. Where
    the same few arms come again and again, a narrow width settles on the second best in one run
    of five; a wide round now and then finds out, at a sixteenth of the price.
    """
    wide = this.number <= config.dimension + 1 or this.number % WIDE_EVERY == 0
    return WIDE if wide else NARROW


def _paper_width(
    config: LearnerConfig, this: Round, model: Regression, p_hat: float, completion_error: bool
) -> float:
    """β = C₅√((d+1) ln(tT)) + C₂√λ + C₆ (d/p̂)^{3/2} √(ln(KT)/K) X   (eq. conf)

    The last term pays for errors of completion: policies that do not complete, or complete only
    after their moments have settled (Algorithm 2), go without it.
    """
    c, d = config.constants, config.dimension
    beta = c.c5 * math.sqrt((d + 1) * math.log(this.number * this.horizon))
    beta += c.c2 * math.sqrt(model.ridge)
    if completion_error and c.c6 > 0.0:
        # X = Σ_s ‖ẑ_s‖_{V⁻¹} ≤ √(r tr(V⁻¹S)) by Cauchy-Schwarz: O(1) here instead of O(t).
        x = math.sqrt(model.count * model.effective_dimension())
        log_kt = math.log(this.arms * this.horizon)
        beta += c.c6 * (d / p_hat) ** 1.5 * math.sqrt(log_kt / this.arms) * x
    return beta


def thompson_width(config: LearnerConfig, this: Round, model: Regression) -> float:
    """v of θ̃ ~ N(θ̂, v² V⁻¹)."""
    if config.preset == "paper":
        v = config.constants.c5 * math.sqrt(
            (config.dimension + 1) * math.log(this.number * this.horizon)
        )
        return v if config.width is None else config.width * v
    return (THOMPSON_WIDTH if config.width is None else config.width) * noise(model)


def noise(model: Regression) -> float:
    """σ̂, the noise of the rewards as far as seen: it makes β indifferent to their unit.

    As if one reward with an error of 1 had come before all others.
    """
    return math.sqrt((1.0 + model.residual_square()) / (1.0 + model.count))
