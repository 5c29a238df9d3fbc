"""Uniform over the arms, always: the floor that every other policy is measured from."""

from __future__ import annotations

from typing import ClassVar

from ..presets import Round
from ..regression import Regression
from .base import Optimistic


class Random(Optimistic):
    completes: ClassVar[bool] = False

    def explores(self, this: Round) -> bool:
        return True

    def beta(self, this: Round, model: Regression, p_hat: float) -> float:
        return 0.0
