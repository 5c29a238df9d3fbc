"""The paper on a few pages: moments, estimate, completion, regression, policies."""

from .arms import Arms
from .config import Constants, LearnerConfig
from .errors import BadInput, BadState, LearnerError
from .learner import Choices, Learner
from .moments import Moments
from .state import dump, dump_moments, load, load_moments

__all__ = [
    "Arms",
    "BadInput",
    "BadState",
    "Choices",
    "Constants",
    "Learner",
    "LearnerConfig",
    "LearnerError",
    "Moments",
    "dump",
    "dump_moments",
    "load",
    "load_moments",
]
