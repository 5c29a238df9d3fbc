"""The address that workers share.

On Linux every worker has a socket of its own on it, and the kernel deals connections out among
those that listen. With one socket for all, whoever wakes up first takes whatever waits: one worker
would often have everything to do. Elsewhere that one socket is all there is.
"""

from __future__ import annotations

import socket
import sys

from service.errors import BadSetting

EVENLY = sys.platform == "linux"  # others know SO_REUSEPORT too, but do not deal out


class Door:
    def __init__(self, host: str, port: int) -> None:
        self._family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._claim: socket.socket | None = None
        try:
            if EVENLY and port:
                # A service that is starting does not listen yet; this name it has already.
                self._claim = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                self._claim.bind(f"\0lacuna-door-{port}-{host}"[:100])
                # Sharing is for our workers only: a stranger on this port is to be noticed.
                self._bound((host, port), shared=False).close()
            self._held = self._bound((host, port), shared=EVENLY)
        except (OSError, OverflowError) as error:
            if self._claim is not None:
                self._claim.close()
            why = getattr(error, "strerror", None) or error
            raise BadSetting(f"{host}:{port}", f"cannot be listened on: {why}") from error

    def entrance(self) -> socket.socket:
        """A socket for one worker, which makes it listen when it is ready."""
        if EVENLY:
            return self._bound(self._held.getsockname()[:2], shared=True)
        return self._held.dup()

    def close(self) -> None:
        self._held.close()
        if self._claim is not None:
            self._claim.close()

    @property
    def url(self) -> str:
        """As somebody on this machine would call it."""
        host, port = self._held.getsockname()[:2]
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def _bound(self, address: tuple[str, int], *, shared: bool) -> socket.socket:
        made = socket.socket(self._family, socket.SOCK_STREAM)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if shared:
                made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            made.bind(address)
            if not shared:
                made.listen(2_048)  # without this, SO_REUSEADDR would not notice another's
        except BaseException:
            made.close()
            raise
        return made
