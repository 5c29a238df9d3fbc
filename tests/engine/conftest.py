from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from redis.asyncio import Redis

from service.engine.registry import Engines
from service.engine.settings import EngineSettings
from service.store.connect import connect
from tests.servers import Server, server

IMPATIENT: dict[str, Any] = {  # so that tests need not wait
    "follow_interval_s": 0.02,
    "moments_interval_s": 0.02,
    "moments_bytes_per_s": 1e9,
    "retry_first_s": 0.02,
    "retry_most_s": 0.2,
    "others_back_s": 0.0,
    "timeline_interval_ms": 50,
}


@pytest.fixture(scope="session")
def shared_server() -> Iterator[Server]:
    with server() as running:
        yield running


@pytest.fixture
async def client(shared_server: Server) -> AsyncIterator[Redis]:
    client = connect(shared_server.url)
    assert isinstance(client, Redis)
    await client.flushall()
    yield client
    await client.aclose()


@pytest.fixture
def settings() -> EngineSettings:
    return EngineSettings(**IMPATIENT)


@pytest.fixture
async def engines(client: Redis, settings: EngineSettings) -> AsyncIterator[Engines]:
    engines = Engines(client, settings)
    await engines.start()
    yield engines
    await engines.stop()


@contextlib.asynccontextmanager
async def worker(url: str, **settings: Any) -> AsyncIterator[Engines]:
    """A worker with a connection of its own."""
    client = connect(url, timeout_s=2.0)
    engines = Engines(client, EngineSettings(**IMPATIENT | settings))
    await engines.start()
    try:
        yield engines
    finally:
        await engines.stop()
        await client.aclose()


async def until(condition: Callable[[], object], what: str, within_s: float = 15.0) -> None:
    deadline_s = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline_s, f"within {within_s:g} s: {what}"
        await asyncio.sleep(0.005)
