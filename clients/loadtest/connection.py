"""One keep-alive HTTP/1.1 connection on a plain socket, one request at a time.

A client library costs more per request than the service does. This one knows as much HTTP as the
service's answers need.
"""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass
from urllib.parse import urlsplit

from clients.errors import BadArgument, ServiceFailed

CONNECT_TIMEOUT_S = 5.0
CHUNK = 1 << 16


class Closed(Exception):
    """The other side hung up, or never answered the door."""


@dataclass(frozen=True, slots=True)
class Target:
    host: str
    port: int
    path: str  # before /select; empty for most
    tls: bool

    @classmethod
    def of(cls, url: str) -> Target:
        """
        >>> Target.of("http://localhost:8080/")
        Target(host='localhost', port=8080, path='', tls=False)
        """
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            port = -1
        if parts.scheme not in ("http", "https") or not parts.hostname or port == -1:
            raise BadArgument(f"URL: must be like http://localhost:8080; it is {url}")
        tls = parts.scheme == "https"
        return cls(parts.hostname, port or (443 if tls else 80), parts.path.rstrip("/"), tls)

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class Connection:
    __slots__ = ("_in", "_out", "fd", "request", "sent_at", "sock")

    def __init__(self, target: Target) -> None:
        try:
            sock = socket.create_connection((target.host, target.port), CONNECT_TIMEOUT_S)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if target.tls:
                context = ssl.create_default_context()
                sock = context.wrap_socket(sock, server_hostname=target.host)
        except OSError as error:
            raise Closed(f"{target.authority}: {error.strerror or error}") from error
        sock.setblocking(False)
        self.sock, self.fd = sock, sock.fileno()
        self.request: object = None  # the one under way
        self.sent_at = 0.0
        self._in = b""
        self._out = memoryview(b"")

    def send(self, data: bytes) -> bool:
        """Whether all of it is on its way; if not, `flush` once the socket is writable."""
        try:
            sent = self.sock.send(data)
        except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
            sent = 0
        except OSError as error:
            raise Closed(str(error)) from error
        if sent == len(data):
            return True
        self._out = memoryview(data)[sent:]
        return False

    def flush(self) -> bool:
        try:
            self._out = self._out[self.sock.send(self._out) :]
        except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
            pass
        except OSError as error:
            raise Closed(str(error)) from error
        return not self._out

    def receive(self) -> tuple[int, bytes, bool] | None:
        """Status, body, and whether the other side will hang up; None: there is more to come."""
        data = self._in
        while True:
            try:
                part = self.sock.recv(CHUNK)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                self._in = data
                return None
            except OSError as error:
                raise Closed(str(error)) from error
            if not part:
                raise Closed("the connection was closed")
            data = data + part if data else part
            answer = parse(data)
            if answer is not None:
                self._in = b""
                return answer
            # TLS may hold more than the socket shows; plain sockets say so by EAGAIN.

    def close(self) -> None:
        self.sock.close()


def parse(data: bytes) -> tuple[int, bytes, bool] | None:
    """
    >>> parse(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")
    (200, b'ok', False)
    """
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return None
    head = data[:end].lower()
    at = head.find(b"\r\ncontent-length:")
    if at >= 0:
        stop = head.find(b"\r\n", at + 17)
        length = int(head[at + 17 :] if stop < 0 else head[at + 17 : stop])
    elif b"\r\ntransfer-encoding:" in head:
        raise ServiceFailed("answers in chunks are not understood here; ask a worker directly")
    else:
        length = 0
    begin = end + 4
    if len(data) < begin + length:
        return None
    return int(head[9:12]), data[begin : begin + length], b"\r\nconnection: close" in head
