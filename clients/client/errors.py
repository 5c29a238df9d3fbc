"""What can go wrong between a caller and the service.

ClientError
├── BadArms         the arms cannot be sent, and nothing was
├── ServiceAway     no answer after all tries
├── BadAnswer       an answer that is not Lacuna's
└── Refused         the service said no; `problem` is its problem document
    ├── NotAllowed    401
    ├── NotFound      404  no such learner, or event
    ├── Conflict      409
    ├── BadRequest    413, 415, 422; `errors` names each field
    └── Unavailable   502, 503, 504, after all tries
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class FieldError:
    loc: str
    msg: str


@dataclass(frozen=True, slots=True)
class Problem:
    """RFC 9457."""

    status: int
    title: str = ""
    detail: str = ""
    type: str = "about:blank"
    errors: list[FieldError] = field(default_factory=list)


class ClientError(Exception):
    """Its text is a sentence for a person."""


class BadArms(ClientError):
    pass


class ServiceAway(ClientError):
    pass


class BadAnswer(ClientError):
    pass


class Refused(ClientError):
    def __init__(self, problem: Problem) -> None:
        super().__init__(f"{problem.status} {problem.title}: {problem.detail or 'no detail'}")
        self.problem = problem

    @property
    def status(self) -> int:
        return self.problem.status

    @property
    def errors(self) -> list[FieldError]:
        return self.problem.errors


class NotAllowed(Refused):
    pass


class NotFound(Refused):
    pass


class Conflict(Refused):
    pass


class BadRequest(Refused):
    pass


class Unavailable(Refused):
    pass


BY_STATUS: dict[int, type[Refused]] = {
    401: NotAllowed,
    404: NotFound,
    409: Conflict,
    413: BadRequest,
    415: BadRequest,
    422: BadRequest,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}


def refusal(problem: Problem) -> Refused:
    return BY_STATUS.get(problem.status, Refused)(problem)
