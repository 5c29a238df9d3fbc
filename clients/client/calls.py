"""A call, described but not made: what to send, and how to read what comes back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import httpx
import msgspec

from .errors import BadAnswer, Problem, Refused, refusal

T = TypeVar("T")

JSON = "application/json"
BYTES = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    content: bytes = b""
    media_type: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    gone_is_done: bool = False  # after a lost answer, 404 says that the first try succeeded

    @property
    def headers(self) -> dict[str, str]:
        return {"content-type": self.media_type} if self.media_type else {}


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request, or several in a row where one would be too large."""

    requests: Sequence[Request]
    read: Callable[[list[bytes]], T]


def one(request: Request, read: Callable[[bytes], T]) -> Call[T]:
    return Call([request], lambda bodies: read(bodies[0]))


def json_request(method: str, path: str, body: Any) -> Request:
    return Request(method, path, msgspec.json.encode(body), JSON)


def reader(kind: type[T]) -> Callable[[bytes], T]:
    return lambda body: decoded(body, kind)


def nothing(body: bytes) -> None:
    return None


def decoded(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadAnswer(f"the answer is not one of Lacuna's: {error}") from None


def accepted(request: Request, tried: int, answer: httpx.Response) -> bytes:
    """The body of an answer that is a success."""
    if answer.is_success or (request.gone_is_done and tried > 1 and answer.status_code == 404):
        return answer.content
    raise refused(answer)


def refused(answer: httpx.Response) -> Refused:
    try:
        problem = msgspec.json.decode(answer.content, type=Problem)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        # A proxy's page, most likely.
        problem = Problem(answer.status_code, answer.reason_phrase, answer.text[:200])
    return refusal(problem)
