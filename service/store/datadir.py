"""The embedded server's data directory: who holds it, and where its socket is.

It holds the append-only file, the server's log, and two locks. `owner.lock` is held by the process
that started the server: it is what refuses a second start. `server.lock` is held by the server
too, so a start after a crash of the owner waits until the old server has written its last byte.
The kernel gives both back, whoever dies and how.
"""

import fcntl
import os
import socket
import tempfile
import time
from pathlib import Path
from typing import IO

from service.store.errors import DataDirLocked

OLD_SERVER_WAIT_S = 60.0
LOG_LIMIT = 1 << 20  # bytes; a longer log is set aside at the next start
SOCKET_PATH_LIMIT = 103  # bytes; Linux would take 107, macOS takes 103


def default_data_dir() -> Path:
    """`lacuna` in the user's data directory, as the XDG specification places it."""
    given = os.environ.get("XDG_DATA_HOME", "")
    home = Path(given) if os.path.isabs(given) else Path.home() / ".local" / "share"
    return home / "lacuna"


class DataDir:
    """A data directory, this process's alone between `claim` and `release`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.log = path / "server.log"
        self.socket = path / "run" / "valkey.sock"
        self._owner: IO[str] | None = None
        self._server: IO[str] | None = None

    def claim(self) -> None:
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._owner = (self.path / "owner.lock").open("a+")
        if not _try_lock(self._owner):
            self._owner.close()
            self._owner = None
            raise DataDirLocked(
                f"The data directory {self.path} is in use by another lacuna "
                f"(pid {_first_line(self.path / 'owner.lock')}). "
                "Stop that one first, or give this one a data directory of its own."
            )
        self._server = (self.path / "server.lock").open("a+")
        self._wait_for_old_server(self._server)
        self._owner.seek(0)
        _, old_socket, directory, *_ = [*self._owner.read().splitlines(), "", "", ""]
        # In a temporary directory, perhaps, that a killed owner left behind. Where this directory
        # was copied from another, it is that one's, and may be in use.
        if directory == str(self.path):
            _remove_socket(Path(old_socket))
        self.socket = _private_socket(self.path)
        self._owner.truncate(0)
        self._owner.write(f"{os.getpid()}\n{self.socket}\n{self.path}\n")
        self._owner.flush()
        if self.log.exists() and self.log.stat().st_size > LOG_LIMIT:
            self.log.replace(self.log.with_suffix(".log.1"))

    def release(self) -> None:
        if self._server:
            _remove_socket(self.socket)
            self._server.close()
        if self._owner:
            self._owner.close()
        self._owner = self._server = None

    @property
    def server_lock_fd(self) -> int:
        """For the server to inherit: it holds the lock for as long as it lives."""
        assert self._server is not None, "the data directory is not claimed"
        return self._server.fileno()

    @property
    def server_pid(self) -> int:
        return int(_first_line(self.path / "server.lock") or 0)

    def _wait_for_old_server(self, lock: IO[str]) -> None:
        deadline_s = time.monotonic() + OLD_SERVER_WAIT_S
        while not _try_lock(lock):
            if time.monotonic() > deadline_s:
                raise DataDirLocked(
                    f"The data directory {self.path} is still in use by the server "
                    f"(pid {self.server_pid}) of a lacuna that is gone. End that process first."
                )
            time.sleep(0.02)


def _try_lock(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _first_line(path: Path) -> str:
    return path.read_text().partition("\n")[0].strip()


def _private_socket(data_dir: Path) -> Path:
    """A path that only this user can reach: in the data directory, if that can hold a socket."""
    run = data_dir / "run"
    run.mkdir(mode=0o700, exist_ok=True)
    run.chmod(0o700)
    path = run / "valkey.sock"
    path.unlink(missing_ok=True)
    if _can_hold_socket(path):
        return path
    for parent in (os.environ.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir(), "/tmp"):
        if os.path.isdir(parent) and len(os.fsencode(parent)) < SOCKET_PATH_LIMIT - 40:
            path = Path(tempfile.mkdtemp(prefix="lacuna-", dir=parent)) / "valkey.sock"
            if _can_hold_socket(path):
                return path
            path.parent.rmdir()
    raise OSError("there is no directory with a short enough path for the server's socket")


def _can_hold_socket(path: Path) -> bool:
    # Too deep a directory, or a file system without sockets (some network and desktop mounts).
    if len(os.fsencode(path)) > SOCKET_PATH_LIMIT:
        return False
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.bind(str(path))
        except OSError:
            return False
    path.unlink()
    return True


def _remove_socket(path: Path) -> None:
    path.unlink(missing_ok=True)
    if path.parent.name.startswith("lacuna-") and path.parent.is_dir():
        path.parent.rmdir()
