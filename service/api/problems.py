"""Errors as RFC 9457 problem documents: one form for every answer that is not a success."""

from __future__ import annotations

import json
import re
from http import HTTPStatus
from typing import Any

import msgspec

from service.errors import BadRequest, LacunaError, NotAllowed, Unavailable
from service.learner import BadInput

MEDIA_TYPE = "application/problem+json"
TYPE = "urn:lacuna:problem:"

Headers = list[tuple[bytes, bytes]]


class Problem(msgspec.Struct, omit_defaults=True):
    type: str
    title: str
    status: int
    detail: str
    errors: list[dict[str, str]] = []

    def encoded(self) -> bytes:
        return msgspec.json.encode(self)


def of_error(error: LacunaError) -> Problem:
    return Problem(
        TYPE + _slug(type(error).__name__),
        error.title,
        error.status,
        str(error),
        error.errors if isinstance(error, BadRequest) else [],
    )


def of_status(status: int, detail: str = "") -> Problem:
    """For what the framework refuses, and for bugs: there the caller learns no more than this."""
    title = HTTPStatus(status).phrase
    return Problem(TYPE + _slug(title), title, status, detail or title)


def headers_of(error: LacunaError) -> Headers:
    if isinstance(error, Unavailable):
        return [(b"retry-after", str(error.retry_after_s).encode())]
    if isinstance(error, NotAllowed):
        return [(b"www-authenticate", b'Bearer realm="lacuna"')]
    return []


def bad_fields(errors: list[dict[str, Any]]) -> BadRequest:
    """What pydantic found, as one error of ours."""
    found = [
        ("body", "is not JSON: " + one["ctx"]["error"])
        if one["type"] == "json_invalid"
        else (_location(one["loc"]), one["msg"])
        for one in errors
    ]
    refused = BadRequest(*found[0])
    refused.errors = [{"loc": loc, "msg": msg} for loc, msg in found]
    return refused


def bad_arms(error: BadInput) -> BadRequest:
    """The learner speaks of `features[2][0]`, callers of `arms[2].features[0]`."""
    field = re.sub(r"^features\[(\d+)\]", r"arms[\1].features", error.field)
    field = {"features": "arms", "mask": "arms"}.get(field, field)
    return BadRequest(field, error.problem.removesuffix(", or NaN where missing"))


def bad_json(error: Exception, body: bytes) -> BadRequest:
    """What a decoder refused: malformed text, or `Expected … - at `$.arms[0].id``."""
    if isinstance(error, RecursionError):
        return BadRequest("body", "is nested too deeply")
    if isinstance(error, UnicodeDecodeError):
        return BadRequest("body", "is not valid UTF-8")
    text, _, place = str(error).partition(" - at `")
    field = place.rstrip("`").removeprefix("$").removeprefix(".")
    if not isinstance(error, msgspec.ValidationError):
        if not_finite := _first_constant(body):
            return BadRequest(not_finite, "must be a finite number")
        return BadRequest("body", f"is not JSON: {text}")
    if named := re.fullmatch(r"arms\[(\d+)\]\.features\[\.\.\.\]", field):
        field = _first_wrong_name(body, int(named[1])) or field
    if unknown := re.fullmatch(r"Object contains unknown field `(.*)`", text, re.DOTALL):
        text, field = "is not a field of this request", _joined(field, unknown[1])
    elif missing := re.fullmatch(r"Object missing required field `(.*)`", text):
        text, field = "is required", _joined(field, missing[1])
    return BadRequest(field or "body", text[0].lower() + text[1:])


def _first_wrong_name(body: bytes, arm: int) -> str:
    """Which of an arm's named features is no number: the decoder does not tell."""
    try:
        features = json.loads(body)["arms"][arm]["features"].items()
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return ""  # the decoder had not come to what is wrong further on
    for name, value in features:
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            return f"arms[{arm}].features.{name}"
    return ""


def _first_constant(body: bytes) -> str:
    """Where the first NaN or Infinity is, in a body that would be JSON but for those."""
    constant = object()
    try:
        found = json.loads(body, parse_constant=lambda _: constant)
    except (ValueError, RecursionError):
        return ""
    waiting = [("", found)]
    while waiting:
        place, value = waiting.pop()
        if value is constant:
            return place or "body"
        if isinstance(value, dict):
            inner = [(_joined(place, key), one) for key, one in value.items()]
        elif isinstance(value, list):
            inner = [(f"{place}[{index}]", one) for index, one in enumerate(value)]
        else:
            continue
        waiting.extend(reversed(inner))
    return ""


def _joined(outer: str, inner: str) -> str:
    return f"{outer}.{inner}" if outer and inner and not inner.startswith("[") else outer + inner


def _location(parts: tuple[str | int, ...]) -> str:
    """`("body", "constants", "c2")` as `constants.c2`; the first part only says where to look."""
    found = ""
    for part in parts[1:] if len(parts) > 1 else parts:
        found = f"{found}[{part}]" if isinstance(part, int) else _joined(found, part)
    return found


def _slug(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[^A-Za-z]+", "-", name).lower()
