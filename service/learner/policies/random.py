"""Uniform over the arms, always: the floor that every other policy is measured from."""

from __future__ import annotations

from typing import ClassVar

from ..presets import Round
from .base import Policy


class Random(Policy):
    completes: ClassVar[bool] = False

    def explores(self, this: Round) -> bool:
        return True
