"""Thompson sampling on completed features: θ̃ ~ N(θ̂, v² V⁻¹), the arm that is best under θ̃."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.linalg import solve_triangular

from .. import presets, randomness
from ..arms import Floats
from ..presets import Round
from .base import Optimistic, Scoring

# Draws per round. The first decides; the share of all of them that agree is the probability.
# Draws are exchangeable, so given the draws that share is exact, not an estimate.
DRAWS = 128


class Thompson(Optimistic):
    refreshes: ClassVar[bool] = True

    def bonus(self, scoring: Scoring) -> Floats:
        bonus = np.empty(len(scoring.z))
        for r, this in enumerate(scoring.rounds):
            deviation = self._deviations(this, scoring, 1)  # (n, 1)
            bonus[scoring.arms(r)] = scoring.z[scoring.arms(r)] @ deviation[:, 0]
        return bonus

    def propensity(self, scoring: Scoring, best: list[int], chosen: list[int]) -> list[float]:
        shares = []
        for r, this in enumerate(scoring.rounds):
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
        factor = scoring.model.factor  # Lᵀ
        return scale * solve_triangular(factor, noise.T, check_finite=False)
