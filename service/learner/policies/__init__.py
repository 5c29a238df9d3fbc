"""One policy per file, all behind `Policy`."""

from __future__ import annotations

from ..config import LearnerConfig, PolicyName
from .base import Policy, Scoring
from .clbbf import Clbbf
from .e_clbbf import EClbbf
from .oful import Oful
from .random import Random
from .thompson import Thompson

__all__ = ["Policy", "Scoring", "make_policy"]

POLICIES: dict[PolicyName, type[Policy]] = {
    "clbbf": Clbbf,
    "e-clbbf": EClbbf,
    "oful": Oful,
    "thompson": Thompson,
    "random": Random,
}


def make_policy(config: LearnerConfig) -> Policy:
    return POLICIES[config.policy](config)
