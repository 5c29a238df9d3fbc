"""One request as the front sees it: the headers that matter to us, and the body."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from service.errors import OtherSite, TooLarge, WrongMediaType

if TYPE_CHECKING:
    from starlette.types import Message, Receive

JSON_TYPE = re.compile(rb"\s*application/(json|[\w.-]+\+json)\s*(;.*)?", re.IGNORECASE)
OTHER_SITES = (b"cross-site", b"same-site")
DISCARDED_BYTES = 64 << 20


class Gone(Exception):
    """The caller hung up before its request was complete."""


class Request:
    __slots__ = (
        *("authorization", "body", "content_length", "content_type", "expects"),
        *("fetch_site", "id", "method", "path", "query", "x_api_key"),
    )

    def __init__(
        self, method: str, path: str, query: bytes, headers: list[tuple[bytes, bytes]]
    ) -> None:
        self.method = method
        self.path = path
        self.query = query
        self.body = b""
        self.content_type = self.authorization = self.x_api_key = self.id = self.fetch_site = b""
        self.content_length = -1
        self.expects = False  # the caller waits for leave to send its body
        for name, value in headers:
            if name == b"content-type":
                self.content_type = value
            elif name == b"content-length":
                self.content_length = int(value)  # the parser has checked it
            elif name == b"authorization":
                self.authorization = value
            elif name == b"x-api-key":
                self.x_api_key = value
            elif name == b"x-request-id":
                self.id = value
            elif name == b"expect":
                self.expects = True
            elif name == b"sec-fetch-site":
                self.fetch_site = value

    def refuse_other_sites(self) -> None:
        """A browser says where a request comes from: another site's page may not change anything.

        It could not read an answer, but it need not: a `POST …/reset` is harm enough.
        """
        if self.fetch_site in OTHER_SITES and self.method not in ("GET", "HEAD"):
            raise OtherSite("a page of another site may not send this")

    def require_json(self) -> None:
        given = self.content_type
        if given and given != b"application/json" and not JSON_TYPE.fullmatch(given):
            raise WrongMediaType(
                "content-type", f"must be application/json, not {given.decode('latin-1')!r}"
            )

    async def read_body(self, receive: Receive, limit: int) -> None:
        if self.expects and self.content_length > limit:
            raise _too_large(limit)
        parts: list[bytes] = []
        size = 0
        more = True
        # Most callers send all before they listen: what is too much is read too, up to a point.
        while more and size <= limit + DISCARDED_BYTES:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Gone
            part = message.get("body", b"")
            size += len(part)
            if size <= limit:
                parts.append(part)
            more = message.get("more_body", False)
        if size > limit:
            raise _too_large(limit)
        self.body = b"".join(parts)

    def replay(self, receive: Receive) -> Receive:
        """A `receive` that gives the body once, and then waits for the caller to hang up."""
        given = False

        async def again() -> Message:
            nonlocal given
            if not given:
                given = True
                body, self.body = self.body, b""  # it may be large, and is not ours any more
                return {"type": "http.request", "body": body, "more_body": False}
            return await receive()

        return again


def _too_large(limit: int) -> TooLarge:
    return TooLarge("body", f"must be at most {limit:,} bytes")
