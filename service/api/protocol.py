"""uvicorn's HTTP protocol, with a short way for the calls of the hot path.

A plain POST to one of them needs no ASGI: its body is put together here, the front answers it, and
head and body of the answer go out in one write. Whatever is not so plain (chunked, pipelined,
asking for leave to continue) goes the long way, and gets the same answer.
"""

from __future__ import annotations

import asyncio
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from . import problems
from .front import Front
from .request import Request

END_OF_HEAD = b"\r\n\r\n"
INTERIM = b"HTTP/1.1 1"  # 100 Continue is to be seen before the body comes


class OneWrite:
    """A transport that holds an answer's head back until what follows it is written."""

    __slots__ = ("_head", "_transport", "is_closing", "write_now")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head = b""
        self.write_now = transport.write
        self.is_closing = transport.is_closing

    def write(self, data: bytes) -> None:
        if self._head:
            data = self._head + data
            self._head = b""
        elif data.endswith(END_OF_HEAD) and not data.startswith(INTERIM):
            self._head = data
            return
        self.write_now(data)

    def flush(self) -> None:
        if self._head:
            self.write(b"")

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class HotCycle:
    """Stands where uvicorn has a request under way; has what uvicorn asks of that."""

    __slots__ = ("body", "disconnected", "keep_alive", "request", "response_complete")

    def __init__(self, request: Request, keep_alive: bool) -> None:
        self.request = request
        self.keep_alive = keep_alive
        self.body: list[bytes] = []
        self.disconnected = False
        self.response_complete = False

    @property
    def message_event(self) -> HotCycle:
        return self

    def set(self) -> None:
        """Nobody waits for the body."""


class Protocol(HttpToolsProtocol):
    app: Front
    cycle: Any  # uvicorn's own, or a HotCycle
    reading: HotCycle | None = None  # its body is coming in

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(OneWrite(transport))  # type: ignore[arg-type]

    def data_received(self, data: bytes) -> None:
        """A caller that offers another protocol (Java's client and `curl --http2` offer HTTP/2) is
        served as if it had not: the parser takes the body for the other protocol's."""
        self._unset_keepalive_if_required()
        while data:
            try:
                self.parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as upgrade:
                if self.parser.get_method() == b"CONNECT":
                    self.send_400_response("Invalid HTTP request received.")
                    return
                data = self._head_without_upgrade() + data[upgrade.args[0] :]
                self.parser = httptools.HttpRequestParser(self)
            except httptools.HttpParserError:
                self.send_400_response("Invalid HTTP request received.")
                return

    def _head_without_upgrade(self) -> bytes:
        version = self.parser.get_http_version().encode()
        parts = [self.parser.get_method(), b" ", self.url, b" HTTP/", version, b"\r\n"]
        for name, value in self.headers:
            if name != b"upgrade":
                parts += (name, b": ", value, b"\r\n")
        return b"".join([*parts, b"\r\n"])

    def on_headers_complete(self) -> None:
        if self.parser.should_upgrade():
            return  # it comes again, without that
        request = self._hot_request()
        if request is None:
            super().on_headers_complete()
        else:
            self.cycle = self.reading = HotCycle(request, self.parser.should_keep_alive())

    def _hot_request(self) -> Request | None:
        if self.parser.get_method() != b"POST" or self.parser.get_http_version() != "1.1":
            return None
        path, _, query = self.url.partition(b"?")
        name = path.decode("latin-1")
        if name not in self.app.hot:
            return None
        if self.cycle is not None and not self.cycle.response_complete:
            return None
        request = Request("POST", name, query, self.headers)
        if request.expects or not 0 <= request.content_length <= self.app.max_body_bytes:
            return None
        return request

    def on_body(self, body: bytes) -> None:
        if self.reading is None:
            super().on_body(body)
        else:
            self.reading.body.append(body)

    def on_message_complete(self) -> None:
        if self.parser.should_upgrade():
            return
        if self.reading is None:
            super().on_message_complete()
            return
        task = self.loop.create_task(self._answer(self.reading))
        self.reading = None
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _answer(self, cycle: HotCycle) -> None:
        request = cycle.request
        request.body = cycle.body[0] if len(cycle.body) == 1 else b"".join(cycle.body)
        reply = await self.app.hot_reply(request)
        if self.flow.write_paused and not cycle.disconnected:
            await self.flow.drain()
        cycle.response_complete = True
        if cycle.disconnected or self.transport.is_closing():
            return
        parts = [STATUS_LINE[reply.status]]
        for name, value in self.server_state.default_headers:
            parts += (name, b": ", value, b"\r\n")
        for name, value in self.app.headers(request, reply):
            parts += (name, b": ", value, b"\r\n")
        closing = self.app.draining or not cycle.keep_alive
        parts.append(b"connection: close\r\n\r\n" if closing else b"\r\n")
        parts.append(reply.body)
        self.transport.write_now(b"".join(parts))  # type: ignore[attr-defined]
        if closing:
            self.transport.close()
        self.on_response_complete()

    def on_response_complete(self) -> None:
        self.transport.flush()  # type: ignore[attr-defined]  # an answer without a body
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """What is not HTTP at all gets a problem document too."""
        body = problems.of_status(400, msg).encoded()
        head = (
            f"HTTP/1.1 400 Bad Request\r\ncontent-type: {problems.MEDIA_TYPE}\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()
