"""Algorithm 1, CLBBF: optimism on completed features, past choices completed anew."""

from __future__ import annotations

from typing import ClassVar

from .. import presets
from ..presets import Round
from ..regression import Regression
from .base import Policy


class Clbbf(Policy):
    refreshes: ClassVar[bool] = True

    def beta(self, this: Round, model: Regression, p_hat: float) -> float:
        return presets.optimistic_width(self.config, this, model, p_hat, completion_error=True)
