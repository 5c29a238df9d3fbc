"""The Python client, sync and async. docs/client.md shows how it is used."""

from .arms import COMPACT_ENTRIES, Arms
from .errors import (
    BadAnswer,
    BadArms,
    BadRequest,
    ClientError,
    Conflict,
    FieldError,
    NotAllowed,
    NotFound,
    Problem,
    Refused,
    ServiceAway,
    Unavailable,
)
from .results import Decision, Learner, Model, Rewarded, Selected, Statistics, Worth
from .retries import Retries
from .shells import AsyncClient, Choice, Client

__all__ = [
    "COMPACT_ENTRIES",
    "Arms",
    "AsyncClient",
    "BadAnswer",
    "BadArms",
    "BadRequest",
    "Choice",
    "Client",
    "ClientError",
    "Conflict",
    "Decision",
    "FieldError",
    "Learner",
    "Model",
    "NotAllowed",
    "NotFound",
    "Problem",
    "Refused",
    "Retries",
    "Rewarded",
    "Selected",
    "ServiceAway",
    "Statistics",
    "Unavailable",
    "Worth",
]
