"""The paper on a few pages: moments, estimate, completion, regression, policies."""

from .arms import MAX_MAGNITUDE, Arms
from .completion import complete
from .config import Constants, LearnerConfig
from .errors import BadInput, BadState, LearnerError
from .estimate import Estimate
from .history import Refreshed, Rows
from .learner import Choices, Learner
from .moments import Moments
from .state import dump, dump_model, dump_moments, dump_parts, load, load_model, load_moments

__all__ = [
    "MAX_MAGNITUDE",
    "Arms",
    "BadInput",
    "BadState",
    "Choices",
    "Constants",
    "Estimate",
    "Learner",
    "LearnerConfig",
    "LearnerError",
    "Moments",
    "Refreshed",
    "Rows",
    "complete",
    "dump",
    "dump_model",
    "dump_moments",
    "dump_parts",
    "load",
    "load_model",
    "load_moments",
]
