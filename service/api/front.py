"""What every request meets first: its id, its key, the limits; and the way out for errors.

The calls of the hot path are answered here. Everything else goes to FastAPI.
"""

from __future__ import annotations

import itertools
import logging
import os
import re
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from service.errors import LacunaError
from service.settings import Settings

from . import problems
from .auth import Keys
from .logs import request_id_now
from .request import Gone, Request

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from .metrics import Metrics

log = logging.getLogger("lacuna.api")

JSON_HEADER = (b"content-type", b"application/json")
PROBLEM_HEADER = (b"content-type", problems.MEDIA_TYPE.encode())
CLOSE_HEADER = (b"connection", b"close")
SANE_ID = re.compile(rb"[A-Za-z0-9._:/+=-]{1,128}")

Handler = Callable[[Request], Awaitable[bytes]]


class Reply(NamedTuple):
    status: int
    body: bytes
    headers: problems.Headers


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
        request = Request(scope["method"], scope["path"], scope["query_string"], scope["headers"])
        self._identify(request)
        try:
            if request.path in self.hot:
                endpoint = request.path
                reply = await self._hot_asgi(request, receive)
                status = await self._send(send, request, reply)
            else:
                status = await self._pass_on(request, scope, receive, send)
                endpoint = getattr(scope.get("route"), "path", "other")
        except Gone:
            return
        self._account(request, endpoint, status, started)

    async def hot_reply(self, request: Request) -> Reply:
        """A call of the hot path whose body has been read, from its id to its metrics."""
        started = perf_counter()
        self._identify(request)
        reply = await self._hot(request)
        self._account(request, request.path, reply.status, started)
        return reply

    def headers(self, request: Request, reply: Reply) -> problems.Headers:
        return [
            JSON_HEADER if reply.status == 200 else PROBLEM_HEADER,
            (b"content-length", b"%d" % len(reply.body)),
            (b"x-request-id", request.id),
            *reply.headers,
        ]

    def _identify(self, request: Request) -> None:
        if not request.id or not SANE_ID.fullmatch(request.id):
            request.id = f"{self._id_prefix}{next(self._id_numbers):08x}".encode()
        request_id_now.set(request.id)

    def _account(self, request: Request, endpoint: str, status: int, started: float) -> None:
        elapsed_s = perf_counter() - started
        self.metrics.answered(endpoint, status, elapsed_s)
        if self.access_log or status >= 500:
            log.log(
                logging.ERROR if status >= 500 else logging.INFO,
                "%s %s %d %.1f ms",
                request.method,
                request.path,
                status,
                elapsed_s * 1e3,
            )

    async def _hot(self, request: Request) -> Reply:
        try:
            self._admit(request)
            return Reply(200, await self.hot[request.path](request), [])
        except LacunaError as error:
            return _refusal(error)
        except Exception:
            return _failure(request)

    async def _hot_asgi(self, request: Request, receive: Receive) -> Reply:
        try:
            self._admit(request)
            if request.method != "POST":
                problem = problems.of_status(405, "only POST is allowed here")
                return Reply(405, problem.encoded(), [(b"allow", b"POST")])
            await request.read_body(receive, self.max_body_bytes)
        except LacunaError as error:
            return _refusal(error)
        return await self._hot(request)

    async def _pass_on(self, request: Request, scope: Scope, receive: Receive, send: Send) -> int:
        """Everything else: FastAPI, with the body read and within its limit."""
        status = 0
        head = request.method == "HEAD"
        if head:  # in a copy: the server must know that no body is to follow
            scope = {**scope, "method": "GET"}

        async def send_on(message: Message) -> None:
            nonlocal status
            if head and message["type"] == "http.response.body":
                message = {**message, "body": b""}
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", request.id)]
                if self.draining:
                    message["headers"].append(CLOSE_HEADER)
            await send(message)

        try:
            self._admit(request)
            limit = self.max_body_bytes
            if request.method == "PUT":
                if request.path.endswith("/import"):
                    limit = self.max_import_bytes
                else:
                    request.require_json()
            await request.read_body(receive, limit)
            await self.app(scope, request.replay(receive), send_on)
        except Gone:
            raise
        except LacunaError as error:
            return await self._send(send, request, _refusal(error))
        except Exception:
            failure = _failure(request)
            if status == 0:
                return await self._send(send, request, failure)
        return status

    def _admit(self, request: Request) -> None:
        request.refuse_other_sites()
        if self.keys.guard(request.path):
            self.keys.check(request.authorization, request.x_api_key)

    async def _send(self, send: Send, request: Request, reply: Reply) -> int:
        headers = self.headers(request, reply)
        if self.draining or reply.status == 413:  # there may be more of its body
            headers.append(CLOSE_HEADER)
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "http.response.body", "body": reply.body})
        return reply.status


def _refusal(error: LacunaError) -> Reply:
    return Reply(error.status, problems.of_error(error).encoded(), problems.headers_of(error))


def _failure(request: Request) -> Reply:
    log.exception("%s %s failed", request.method, request.path)
    return Reply(500, problems.of_status(500).encoded(), [])
