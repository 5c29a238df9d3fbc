"""Thompson sampling on completed features: θ̃ ~ N(θ̂, v² V⁻¹), the arm that is best under θ̃."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.linalg import lapack

from .. import presets, randomness
from ..arms import Floats
from ..presets import Round
from .base import Policy, Scoring

# Draws per round. The first decides; the share of all of them that agree is the probability.
# Draws are exchangeable, so given the draws that share is exact, not an estimate.
DRAWS = 128


class Thompson(Policy):
    refreshes: ClassVar[bool] = True
    deterministic: ClassVar[bool] = False

    def bonus(self, scoring: Scoring, width: Floats) -> Floats:
        """ẑᵀ(θ̃ − θ̂)"""
        bonus = np.empty(len(scoring.z))
        for r, this in enumerate(scoring.rounds):
            deviation = self._deviations(this, scoring, 1)[:, 0]  # (n,)
            bonus[scoring.arms(r)] = scoring.z[scoring.arms(r)] @ deviation
        return bonus

    def propensity(self, scoring: Scoring, best: list[int], chosen: list[int]) -> list[float]:
        shares = []
        for r, this in enumerate(scoring.rounds):
            if self.explores(this):
                shares.append(0.0)  # nothing of such a round is left to the draws
                continue
            draws = self._deviations(this, scoring, DRAWS)  # (n, DRAWS)
            parameters = scoring.model.theta[:, None] + draws
            values = scoring.z[scoring.arms(r)] @ parameters  # (K, DRAWS)
            allowed = scoring.allowed(r)
            winners = allowed[values[allowed].argmax(axis=0)]
            # The draw that decided agrees with itself, whatever rounding says of the product.
            winners[0] = best[r]
            shares.append(float(np.mean(winners == chosen[r])))
        return shares

    def _deviations(self, this: Round, scoring: Scoring, draws: int) -> Floats:
        """θ̃ − θ̂ = v L⁻ᵀ ε for the first `draws` draws of this round, (n, draws)."""
        generator = randomness.of_round(self.config.seed, this.number)
        generator.random(2)  # the round's coins come first in its stream
        noise = generator.standard_normal((draws, len(scoring.model.b)))  # row by row
        scale = presets.thompson_width(self.config, this, scoring.model)
        solution, _ = lapack.dtrtrs(scoring.model.factor, scale * noise.T)  # factor is Lᵀ
        return solution
