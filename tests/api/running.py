"""The real service for tests: `lacuna serve` as a process of its own, on a free port."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

ROOT = Path(__file__).resolve().parents[2]
START_TIMEOUT_S = 120.0  # kernels may have to be compiled first


class Service:
    def __init__(self, *arguments: str, **environment: str) -> None:
        clean = {name: value for name, value in os.environ.items() if name[:7] != "LACUNA_"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "service.cli", "serve", "--port", "0", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**clean, **environment},
        )
        self.said: list[str] = []
        self.logged: list[str] = []
        self._ready = threading.Event()
        self._readers = [
            threading.Thread(target=self._listen, args=(self.process.stdout, self.said)),
            threading.Thread(target=self._listen, args=(self.process.stderr, self.logged)),
        ]
        for reader in self._readers:
            reader.start()
        found = self._ready.wait(START_TIMEOUT_S)
        assert found, f"the service does not start: {self.said} {self.logged}"
        address = re.search(r"http://[\d.]+:\d+", "".join(self.said))
        assert address, f"the service did not start: {self.said} {self.logged}"
        self.url = address[0]

    def _listen(self, stream, lines: list[str]) -> None:
        with stream:
            for line in stream:
                lines.append(line)
                if "curl" in line:
                    self._ready.set()
        self._ready.set()

    def client(self, **options) -> httpx.Client:
        """Every request on a connection of its own, so that any worker may get it."""
        limits = httpx.Limits(max_keepalive_connections=0)
        return httpx.Client(base_url=self.url, timeout=30.0, limits=limits, **options)

    def workers(self) -> list[int]:
        listed = subprocess.run(
            ["ps", "-A", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
        )
        rows = [line.split(maxsplit=2) for line in listed.stdout.splitlines()]
        parent = str(self.process.pid)
        return [int(pid) for pid, ppid, args in rows if ppid == parent and "worker" in args]

    def end(self) -> int:
        """Ask it to stop and wait; its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(60.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        for reader in self._readers:
            reader.join()
        return status


@contextmanager
def service(*arguments: str, **environment: str) -> Iterator[Service]:
    running = Service(*arguments, **environment)
    try:
        yield running
    finally:
        running.end()
