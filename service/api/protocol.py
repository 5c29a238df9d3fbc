"""uvicorn's HTTP protocol, with the head and the body of an answer in one write to the socket."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from . import problems

END_OF_HEAD = b"\r\n\r\n"
INTERIM = b"HTTP/1.1 1"  # 100 Continue is to be seen before the body comes


class OneWrite:
    """A transport that holds an answer's head back until what follows it is written."""

    __slots__ = ("_head", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head = b""

    def write(self, data: bytes) -> None:
        if self._head:
            data = self._head + data
            self._head = b""
        elif data.endswith(END_OF_HEAD) and not data.startswith(INTERIM):
            self._head = data
            return
        self._transport.write(data)

    def flush(self) -> None:
        if self._head:
            self.write(b"")

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Protocol(HttpToolsProtocol):
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(OneWrite(transport))  # type: ignore[arg-type]

    def send_400_response(self, msg: str) -> None:
        """What is not HTTP at all gets a problem document too."""
        body = problems.of_status(400, msg).encoded()
        head = (
            f"HTTP/1.1 400 Bad Request\r\ncontent-type: {problems.MEDIA_TYPE}\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()

    def on_response_complete(self) -> None:
        self.transport.flush()  # type: ignore[attr-defined]  # an answer without a body
        super().on_response_complete()
