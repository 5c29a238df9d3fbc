"""What every request meets first: its id, its key, the limits; and the way out for errors.

The calls of the hot path are answered here, on plain ASGI. Everything else goes to FastAPI.
"""

from __future__ import annotations

import itertools
import logging
import os
import re
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import TYPE_CHECKING

from service.errors import LacunaError, TooLarge, WrongMediaType
from service.settings import Settings

from . import problems
from .auth import Keys
from .logs import request_id_now

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from .metrics import Metrics

log = logging.getLogger("lacuna.api")

JSON_HEADER = (b"content-type", b"application/json")
PROBLEM_HEADER = (b"content-type", problems.MEDIA_TYPE.encode())
CLOSE_HEADER = (b"connection", b"close")
DISCARDED_BYTES = 64 << 20
SANE_ID = re.compile(rb"[A-Za-z0-9._:/+=-]{1,128}")
JSON_TYPE = re.compile(rb"\s*application/(json|[\w.-]+\+json)\s*(;.*)?", re.IGNORECASE)

Handler = Callable[["Request"], Awaitable[bytes]]


class Gone(Exception):
    """The caller hung up before its request was complete."""


class Request:
    """One request of the hot path."""

    __slots__ = (
        *("authorization", "body", "content_length", "content_type"),
        *("expects", "id", "query", "x_api_key"),
    )

    def __init__(self, scope: Scope) -> None:
        self.content_type = self.authorization = self.x_api_key = b""
        self.content_length = -1
        self.expects = False  # the caller waits for leave to send its body
        self.id = b""
        self.body = b""
        self.query: bytes = scope["query_string"]
        for name, value in scope["headers"]:
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

    def require_json(self) -> None:
        given = self.content_type
        if given and given != b"application/json" and not JSON_TYPE.fullmatch(given):
            raise WrongMediaType(
                "content-type", f"must be application/json, not {given.decode('latin-1')!r}"
            )


class Front:
    def __init__(
        self,
        app: ASGIApp,
        hot: dict[str, Handler],
        settings: Settings,
        metrics: Metrics,
    ) -> None:
        self.app = app
        self.hot = hot
        self.keys = Keys(settings.api_keys)
        self.metrics = metrics
        self.max_body_bytes = settings.max_body_bytes
        self.max_import_bytes = settings.max_import_bytes
        self.access_log = settings.access_log
        self.draining = False  # answers ask for the connection to be closed
        self._id_prefix = os.urandom(6).hex()
        self._id_numbers = itertools.count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = perf_counter()
        request = Request(scope)
        if not SANE_ID.fullmatch(request.id):
            request.id = f"{self._id_prefix}{next(self._id_numbers):08x}".encode()
        request_id_now.set(request.id)
        path: str = scope["path"]
        handler = self.hot.get(path)
        try:
            if handler is not None:
                status = await self._answer(handler, request, scope, receive, send)
                endpoint = path
            else:
                status = await self._pass_on(request, scope, receive, send)
                endpoint = getattr(scope.get("route"), "path", "other")
        except Gone:
            return
        elapsed_s = perf_counter() - started
        self.metrics.answered(endpoint, status, elapsed_s)
        if self.access_log or status >= 500:
            log.log(
                logging.ERROR if status >= 500 else logging.INFO,
                "%s %s %d %.1f ms",
                scope["method"],
                path,
                status,
                elapsed_s * 1e3,
            )

    async def _answer(
        self, handler: Handler, request: Request, scope: Scope, receive: Receive, send: Send
    ) -> int:
        """One call of the hot path."""
        status = 200
        extra: problems.Headers = []
        try:
            if self.keys:
                self.keys.check(scope["path"], request.authorization, request.x_api_key)
            if scope["method"] != "POST":
                status, extra = 405, [(b"allow", b"POST")]
                body = problems.of_status(405, "only POST is allowed here").encoded()
            else:
                request.body = await read_body(receive, request, self.max_body_bytes)
                body = await handler(request)
        except LacunaError as error:
            status, body, extra = error.status, *_problem(error)
        except Gone:
            raise
        except Exception:
            log.exception("%s %s failed", scope["method"], scope["path"])
            status, body = 500, problems.of_status(500).encoded()
        await self._send(send, status, body, request, extra)
        return status

    async def _pass_on(self, request: Request, scope: Scope, receive: Receive, send: Send) -> int:
        """Everything else: FastAPI, with the body read and within its limit."""
        status = 0

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", request.id)]
                if self.draining:
                    message["headers"].append(CLOSE_HEADER)
            await send(message)

        try:
            if self.keys:
                self.keys.check(scope["path"], request.authorization, request.x_api_key)
            limit = self.max_body_bytes
            if scope["method"] == "PUT":
                if scope["path"].endswith("/import"):
                    limit = self.max_import_bytes
                else:
                    request.require_json()
            body = await read_body(receive, request, limit)
            await self.app(scope, _replay(body, receive), send_on)
        except Gone:
            raise
        except LacunaError as error:
            body, extra = _problem(error)
            status = error.status
            await self._send(send, status, body, request, extra)
        except Exception:
            log.exception("%s %s failed", scope["method"], scope["path"])
            if status == 0:
                status = 500
                await self._send(send, 500, problems.of_status(500).encoded(), request, [])
        return status

    async def _send(
        self, send: Send, status: int, body: bytes, request: Request, extra: problems.Headers
    ) -> None:
        headers = [
            JSON_HEADER if status == 200 else PROBLEM_HEADER,
            (b"content-length", b"%d" % len(body)),
            (b"x-request-id", request.id),
            *extra,
        ]
        if self.draining or status == 413:  # there may be more of it
            headers.append(CLOSE_HEADER)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


async def read_body(receive: Receive, request: Request, limit: int) -> bytes:
    if request.expects and request.content_length > limit:
        raise too_large(limit)
    message = await receive()
    if message["type"] == "http.disconnect":
        raise Gone
    body: bytes = message.get("body", b"")
    if not message.get("more_body", False) and len(body) <= limit:
        return body
    parts = [body]
    size = len(body)
    # Most callers send all before they listen: what is too much is read too, up to a point.
    while message.get("more_body", False) and size <= limit + DISCARDED_BYTES:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        part = message.get("body", b"")
        size += len(part)
        if size <= limit:
            parts.append(part)
    if size > limit:
        raise too_large(limit)
    return b"".join(parts)


def too_large(limit: int) -> TooLarge:
    return TooLarge("body", f"must be at most {limit:,} bytes")


def _replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body once, and then waits for the caller to hang up."""
    given = False

    async def again() -> Message:
        nonlocal given
        if not given:
            given = True
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return again


def _problem(error: LacunaError) -> tuple[bytes, problems.Headers]:
    return problems.of_error(error).encoded(), problems.headers_of(error)
