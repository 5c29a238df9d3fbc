"""OFUL on [1; x] with missing entries 0: the baseline of the paper (Proposition LinRel)."""

from __future__ import annotations

from typing import ClassVar

from .. import presets
from ..presets import Round
from ..regression import Regression
from .base import Policy


class Oful(Policy):
    completes: ClassVar[bool] = False

    def beta(self, this: Round, model: Regression, p_hat: float) -> float:
        return presets.optimistic_width(self.config, this, model, p_hat, completion_error=False)
