"""Algorithm 2, E-CLBBF: first explore for the moments alone, then never look back. O(1) memory."""

from __future__ import annotations

import math

from .. import presets
from ..presets import Round
from ..regression import Regression
from .base import Policy


class EClbbf(Policy):
    def exploration_rounds(self, this: Round) -> int:
        """τ′ = ⌈d ln²T / (K α⁴)⌉"""
        d, alpha = self.config.dimension, self.config.alpha
        return math.ceil(d * math.log(this.horizon) ** 2 / (this.arms * alpha**4))

    def explores(self, this: Round) -> bool:
        return this.number <= self.exploration_rounds(this)

    def learns(self, this: Round) -> bool:
        return not self.explores(this)

    def beta(self, this: Round, model: Regression, p_hat: float) -> float:
        return presets.optimistic_width(self.config, this, model, p_hat, completion_error=False)
