from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import httpx
import pytest

from tests.api.running import Service, service
from tests.servers import Server, server

numbers = count(1)


@pytest.fixture(scope="session")
def running(tmp_path_factory) -> Iterator[Service]:
    """One service with two workers for all tests that do not harm it."""
    folder = tmp_path_factory.mktemp("data")
    with service("--workers", "2", "--data-dir", str(folder)) as one:
        yield one


@pytest.fixture
def running_store() -> Iterator[Server]:
    with server() as one:
        yield one


@pytest.fixture
def http(running: Service) -> Iterator[httpx.Client]:
    with running.client() as client:
        yield client


@pytest.fixture
def steady(running: Service) -> Iterator[httpx.Client]:
    """One connection, so one worker for all of a test's requests."""
    with httpx.Client(base_url=running.url, timeout=30.0) as client:
        yield client


@pytest.fixture
def learner() -> str:
    """A name that no other test uses."""
    return f"learner-{next(numbers)}"
