"""Real servers for tests: each starts on a free port of the loopback, and ends with its block.

    with server(maxmemory="2mb") as one: ...
    with server() as primary, replica_of(primary) as replica: ...
    with cluster(nodes=3) as three: ...
    with sentinel(primary) as watchers: ...

`start()` starts a killed server again, with what it had on disk. On Linux all servers end with the
thread that started them, however that ends: start them in the main thread.
"""

import contextlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from service.store.embedded import find_server, tethered

HOST = "127.0.0.1"
SLOTS = 16384
EMPTY = '""'
Directives = dict[str, Any]  # to be passed as keyword arguments among others of other types
# Directives of a server that keeps nothing, and lets a replica begin at once.
PLAIN = {"save": "", "appendonly": "no", "repl-diskless-sync-delay": "0"}


class ServerDied(Exception):
    pass


@dataclass
class Server:
    folder: Path
    port: int
    config: dict[str, str]
    executable: Path
    mode: tuple[str, ...] = ()
    tls: bool = False
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        password = self.config.get("requirepass")
        user = f":{password}@" if password else ""
        return f"{'rediss' if self.tls else 'redis'}://{user}{HOST}:{self.port}/0"

    @property
    def pid(self) -> int:
        assert self.process is not None, "the server does not run"
        return self.process.pid

    def admin(self) -> redis.Redis:
        """A plain client to arrange and inspect things with; close it."""
        return redis.Redis(
            host=HOST,
            port=self.port,
            password=self.config.get("requirepass"),
            socket_timeout=10,
            retry=Retry(NoBackoff(), 0),
            driver_info=None,
        )

    def do(self, *command: str | int | bytes) -> object:
        with self.admin() as client:
            return client.execute_command(*command)

    def info(self, section: str) -> dict[str, object]:
        with self.admin() as client:
            return dict(client.info(section))

    def start(self, *, wait: bool = True) -> None:
        conf = self.folder / "server.conf"
        if not conf.exists():  # sentinels and cluster nodes write their own state into it
            lines = (f"{name} {value or EMPTY}\n" for name, value in self.config.items())
            conf.write_text("".join(lines))
        command = [str(self.executable), str(conf), *self.mode]
        with (self.folder / "stdout.log").open("ab") as log:
            self.process = subprocess.Popen(
                tethered(command) if sys.platform == "linux" else command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        if wait:
            wait_for(self.answers, "the server answers")

    def answers(self) -> bool:
        assert self.process is not None
        if self.process.poll() is not None:
            raise ServerDied((self.folder / "stdout.log").read_text()[-2000:])
        if self.tls:
            with contextlib.suppress(OSError), socket.create_connection((HOST, self.port), 1):
                return True
            return False
        try:
            self.do("PING")
        except (redis.ConnectionError, redis.TimeoutError):
            return False
        except redis.ResponseError:
            pass  # a complaint is an answer
        return True

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        """kill -9, and gone when this returns."""
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def stop(self) -> None:
        if self.process:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()
            self.process = None

    def restart(self, *, wait: bool = True) -> None:
        self.stop()
        self.start(wait=wait)


@dataclass
class Cluster:
    nodes: list[Server]

    @property
    def url(self) -> str:
        return "redis+cluster://" + ",".join(f"{HOST}:{node.port}" for node in self.nodes)

    def owner(self, key: str) -> Server:
        """The node that the key's slot was given to at the start."""
        slot = self.nodes[0].do("CLUSTER", "KEYSLOT", key)
        assert isinstance(slot, int)
        return self.nodes[slot * len(self.nodes) // SLOTS]


@dataclass
class Sentinels:
    service: str
    servers: list[Server]

    @property
    def url(self) -> str:
        hosts = ",".join(f"{HOST}:{one.port}" for one in self.servers)
        return f"redis+sentinel://{hosts}/{self.service}/0"


def wait_for(condition: Callable[[], bool], what: str, within_s: float = 15.0) -> None:
    deadline_s = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline_s, f"within {within_s:g} s: {what}"
        time.sleep(0.01)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def other_server() -> Path | None:
    """A server from the system, beside the wheel's: another make, version and build."""
    found = shutil.which("valkey-server") or shutil.which("redis-server")
    return Path(found) if found else None


@contextlib.contextmanager
def server(
    executable: Path | None = None, *, tls: bool = False, mode: tuple[str, ...] = (), **config: str
) -> Iterator[Server]:
    """One server; keyword arguments are its directives, `_` for `-`. No persistence by default."""
    with tempfile.TemporaryDirectory(prefix="lacuna-test-") as folder:
        one = _started(executable, Path(folder), mode, tls, config)
        try:
            yield one
        finally:
            one.stop()


@contextlib.contextmanager
def replica_of(primary: Server, **config: str) -> Iterator[Server]:
    """A replica that has caught up with its primary."""
    own: Directives = {"replicaof": f"{HOST} {primary.port}", **config}
    if password := primary.config.get("requirepass"):
        own |= {"masterauth": password, "requirepass": password}
    with server(primary.executable, **own) as replica:
        wait_for(
            lambda: replica.info("replication")["master_link_status"] == "up",
            "the replica is in step",
        )
        yield replica


@contextlib.contextmanager
def cluster(nodes: int = 3, executable: Path | None = None, **config: str) -> Iterator[Cluster]:
    """Primaries that share all slots evenly, in order."""
    with contextlib.ExitStack() as stack:
        own: Directives = {"cluster_enabled": "yes", "cluster_node_timeout": "2000", **config}
        members = [
            stack.enter_context(server(executable, cluster_port=str(free_port()), **own))
            for _ in range(nodes)
        ]
        bounds = [-(-SLOTS * part // nodes) for part in range(nodes + 1)]
        for node, first, end in zip(members, bounds[:-1], bounds[1:], strict=True):
            node.do("CLUSTER", "ADDSLOTSRANGE", first, end - 1)
            bus = int(node.config["cluster-port"])
            members[0].do("CLUSTER", "MEET", HOST, node.port, bus)

        def joined() -> bool:
            return all(
                b"cluster_state:ok" in bytes_of(node.do("CLUSTER", "INFO"))
                and bytes_of(node.do("CLUSTER", "NODES")).count(b" connected") == nodes
                for node in members
            )

        wait_for(joined, "the cluster is whole")
        yield Cluster(members)


@contextlib.contextmanager
def sentinel(
    primary: Server, count: int = 1, service: str = "lacuna", **config: str
) -> Iterator[Sentinels]:
    """Sentinels that watch a primary and fail over after about half a second."""
    with contextlib.ExitStack() as stack:
        watchers = []
        for _ in range(count):
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="lacuna-test-"))
            # Directives about a service follow the line that names it.
            about = {
                "sentinel monitor": f"{service} {HOST} {primary.port} {count // 2 + 1}",
                "sentinel down-after-milliseconds": f"{service} 500",
                "sentinel failover-timeout": f"{service} 5000",
            }
            if password := primary.config.get("requirepass"):
                about["sentinel auth-pass"] = f"{service} {password}"
            one = _started(primary.executable, Path(folder), ("--sentinel",), False, config | about)
            stack.callback(one.stop)
            watchers.append(one)

        def knows_all() -> bool:
            with primary.admin() as client:
                replicas = int(client.info("replication")["connected_slaves"])
            return all(_counts(one) == (replicas, count) for one in watchers)

        wait_for(knows_all, "the sentinels know one another and the replicas")
        yield Sentinels(service, watchers)


def bytes_of(reply: object) -> bytes:
    """A text reply as bytes; the driver parses some, and leaves others as they are."""
    return reply if isinstance(reply, bytes) else repr(reply).encode()


def _counts(watcher: Server) -> tuple[int, int]:
    state = watcher.info("sentinel")["master0"]
    assert isinstance(state, dict)
    return int(state["slaves"]), int(state["sentinels"])


def _started(
    executable: Path | None, folder: Path, mode: tuple[str, ...], tls: bool, config: dict[str, str]
) -> Server:
    attempts = 5
    while True:
        port = free_port()
        own = {
            "tls-port" if tls else "port": str(port),
            **({"port": "0"} if tls else {}),
            "bind": HOST,
            "dir": str(folder),
            "daemonize": "no",
            **({} if mode else PLAIN),
            **{name.replace("_", "-"): value for name, value in config.items()},
        }
        one = Server(folder, port, own, executable or find_server(), mode, tls)
        try:
            one.start()
        except ServerDied as died:
            attempts -= 1
            # Between finding the port and binding it another process may have taken it.
            if not attempts or "in use" not in str(died):
                raise
            (folder / "server.conf").unlink()
        else:
            return one
