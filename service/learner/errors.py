"""What the learner refuses, and nothing else.

LearnerError
├── BadInput    a caller's value; `field` names it; nothing has changed
└── BadState    bytes that are not a learner this version can read
"""


class LearnerError(Exception):
    """Any refusal of the learner."""


class BadInput(LearnerError, ValueError):
    """A value the learner cannot use. Raised before anything changes."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class BadState(LearnerError):
    """Truncated, foreign or newer bytes."""
