"""A real `lacuna serve` for the clients' tests: free port, data of its own, one worker."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from clients.client import Client

ROOT = Path(__file__).resolve().parents[2]
KEY = "key-of-the-tests"
numbers = count(1)


@contextmanager
def serving(folder: Path, **environment: str) -> Iterator[str]:
    """The URL of a service that runs as long as the block does."""
    clean = {name: value for name, value in os.environ.items() if name[:7] != "LACUNA_"}
    log = folder / "log"
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "service.cli", "serve", "--port", "0", "--workers", "1"),
                *("--data-dir", str(folder / "data")),
            ],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            cwd=ROOT,
            env=clean | environment,
        )
    assert process.stdout is not None
    try:
        said = ""
        while "curl" not in said:
            line = process.stdout.readline()
            assert line, f"the service did not start: {said} {log.read_text()}"
            said += line
        address = re.search(r"http://[\d.]+:\d+", said)
        assert address, said
        yield address[0]
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


@pytest.fixture(scope="session")
def url(tmp_path_factory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("service"), LACUNA_API_KEYS=KEY) as address:
        yield address


@pytest.fixture
def client(url: str, learner: str) -> Iterator[Client]:
    with Client(url, learner=learner, api_key=KEY) as one:
        yield one


@pytest.fixture
def learner() -> str:
    """A name that no other test uses."""
    return f"learner-{next(numbers)}"
