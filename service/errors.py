"""What callers of the service can do wrong, or the world to it; each with its HTTP status.

LacunaError
├── BadRequest         422  a field cannot be used; `errors` names each
│   ├── TooLarge       413  the body is longer than the service takes
│   └── WrongMediaType 415
├── NotAllowed         401  no key, or none that is known
├── OtherSite          403  a browser sent it for a page of another site
├── UnknownLearner     404
├── UnknownEvent       404
├── Conflict           409  it contradicts what is there
├── Unavailable        503  not now; `retry_after_s` says when
│   ├── StoreDown           the store does not answer
│   └── Overloaded          too much is waiting already
└── BadSetting              an option of the service itself cannot be used
"""

from __future__ import annotations

from typing import ClassVar


class LacunaError(Exception):
    status: ClassVar[int] = 500
    title: ClassVar[str] = "Internal error"


class BadRequest(LacunaError):
    status = 422
    title = "The request cannot be used"

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.errors = [{"loc": field, "msg": problem}]


class TooLarge(BadRequest):
    status = 413
    title = "The request is too large"


class WrongMediaType(BadRequest):
    status = 415
    title = "The media type is not understood"


class NotAllowed(LacunaError):
    status = 401
    title = "An API key is needed"


class OtherSite(LacunaError):
    status = 403
    title = "Not from another site"


class UnknownLearner(LacunaError):
    status = 404
    title = "Unknown learner"

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no learner {name!r}")


class UnknownEvent(LacunaError):
    status = 404
    title = "Unknown event"

    def __init__(self, event_id: str) -> None:
        super().__init__(f"there is no event {event_id!r}, or it has expired")


class Conflict(LacunaError):
    status = 409
    title = "Conflict"


class Unavailable(LacunaError):
    status = 503
    title = "Not available"
    retry_after_s: ClassVar[int] = 1


class StoreDown(Unavailable):
    title = "The store is not available"


class Overloaded(Unavailable):
    title = "Too many requests are waiting"


class BadSetting(LacunaError):
    title = "A setting cannot be used"

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name} {problem}")
