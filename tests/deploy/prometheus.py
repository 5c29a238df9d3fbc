"""A real Prometheus for tests, with the configuration that is deployed."""

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from service.store.embedded import tethered
from tests.servers import HOST, free_port, wait_for

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
FOLDER = DEPLOY / "prometheus"


def program(name: str) -> str:
    """Where it is; skips the test where it is not installed."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def rules() -> list[dict[str, Any]]:
    """All recording and alert rules."""
    return [
        rule
        for path in sorted(FOLDER.glob("rules/*.yml"))
        for group in yaml.safe_load(path.read_text())["groups"]
        for rule in group["rules"]
    ]


def alerts() -> list[dict[str, Any]]:
    return [rule for rule in rules() if "alert" in rule]


class Prometheus:
    def __init__(self, url: str) -> None:
        self._http = httpx.Client(base_url=url, timeout=30.0)

    def get(self, path: str, **query: str) -> Any:
        """What the HTTP API answers; an error of Prometheus is one of the test."""
        answer = self._http.get(f"/api/v1/{path}", params=query).json()
        assert answer["status"] == "success", (query, answer)
        return answer["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        data = self.get("query", query=expression)
        return data["result"] if data["resultType"] == "vector" else [data]

    def ready(self) -> bool:
        with contextlib.suppress(httpx.TransportError):
            return self._http.get("/-/ready").status_code == 200
        return False

    def close(self) -> None:
        self._http.close()


@contextlib.contextmanager
def prometheus(folder: Path, targets: Mapping[str, str]) -> Iterator[Prometheus]:
    """As deployed, but for where its targets are, and impatient."""
    port = free_port()
    configuration = yaml.safe_load((FOLDER / "prometheus.yml").read_text())
    configuration["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    configuration["rule_files"] = [str(FOLDER / one) for one in configuration["rule_files"]]
    places = {**targets, "localhost:9090": f"{HOST}:{port}"}
    for job in configuration["scrape_configs"]:
        for group in job["static_configs"]:
            group["targets"] = [places[name] for name in group["targets"]]
    path = folder / "prometheus.yml"
    path.write_text(yaml.safe_dump(configuration))
    with running(
        folder / "prometheus.log",
        program("prometheus"),
        f"--config.file={path}",
        f"--storage.tsdb.path={folder / 'prometheus'}",
        f"--web.listen-address={HOST}:{port}",
    ) as process:
        found = Prometheus(f"http://{HOST}:{port}")
        try:

            def ready() -> bool:
                assert process.poll() is None, (folder / "prometheus.log").read_text()[-2000:]
                return found.ready()

            wait_for(ready, "Prometheus is ready", within_s=60.0)
            yield found
        finally:
            found.close()


@contextlib.contextmanager
def redis_exporter(folder: Path, url: str) -> Iterator[str]:
    """Its address."""
    address = f"{HOST}:{free_port()}"
    with running(
        folder / "exporter.log",
        program("prometheus-redis-exporter"),
        f"-redis.addr={url}",
        f"-web.listen-address={address}",
    ):
        yield address


@contextlib.contextmanager
def running(log: Path, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program that ends with its block, and with this process."""
    whole = tethered(list(command)) if sys.platform == "linux" else list(command)
    with log.open("wb") as file:
        process = subprocess.Popen(whole, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30.0)
