"""The HTTP server of a worker: uvicorn, with an end that cuts nobody off.

On a signal it takes what has already connected, closes the door, answers requests that still come
with `Connection: close`, and only then closes connections that stay silent.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import socket
from time import monotonic

import uvicorn

from service.settings import Settings

from .front import Front
from .protocol import Protocol

READY = b"ready\n"


class Server(uvicorn.Server):
    def __init__(self, front: Front, settings: Settings, leash_fd: int | None = None) -> None:
        super().__init__(
            uvicorn.Config(
                front,
                loop="uvloop",
                http=Protocol,
                ws="none",
                lifespan="on",
                interface="asgi3",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=settings.keep_alive_s,
                timeout_graceful_shutdown=settings.drain_s,
            )
        )
        self._front = front
        self._drain_idle_s = settings.drain_idle_s
        self._leash_fd = leash_fd

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        # What is here now stays: the collector need not look at it again and again.
        gc.collect()
        gc.freeze()
        if self._leash_fd is not None and self.started:
            os.write(self._leash_fd, READY)
            # The other end closes when whoever started us is gone.
            asyncio.get_running_loop().add_reader(self._leash_fd, self._let_go)

    def _let_go(self) -> None:
        asyncio.get_running_loop().remove_reader(self._leash_fd or 0)
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._front.draining = True
        for listener in sockets or []:
            await self._take_waiting(listener)
        for server in self.servers:
            server.close()
        for listener in sockets or []:
            listener.close()
        deadline_s = monotonic() + self._drain_idle_s
        # uvicorn only has the set of connections, nothing to wait on
        while self.server_state.connections and monotonic() < deadline_s:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await super().shutdown([])

    async def _take_waiting(self, listener: socket.socket) -> None:
        """Connections that the kernel has made already; closing the door would reset them."""
        loop = asyncio.get_running_loop()
        with contextlib.suppress(BlockingIOError, InterruptedError):
            while True:
                connection, _ = listener.accept()
                connection.setblocking(False)
                await loop.connect_accepted_socket(self._protocol, connection)

    def _protocol(self) -> asyncio.Protocol:
        protocol: asyncio.Protocol = self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )
        return protocol
