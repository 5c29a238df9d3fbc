from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from redis.asyncio import Redis

from service.engine.registry import Engines
from service.engine.settings import EngineSettings
from service.store.connect import connect
from tests.servers import Server, server


@pytest.fixture(scope="session")
def shared_server() -> Iterator[Server]:
    with server() as running:
        yield running


@pytest.fixture
async def client(shared_server: Server) -> AsyncIterator[Redis]:
    client = connect(shared_server.url)
    await client.flushall()
    yield client
    await client.aclose()


@pytest.fixture
def settings() -> EngineSettings:
    """Impatient, so that tests need not wait."""
    return EngineSettings(
        follow_interval_s=0.02,
        moments_interval_s=0.02,
        moments_bytes_per_s=1e9,
        retry_first_s=0.02,
        retry_most_s=0.2,
    )


@pytest.fixture
async def engines(client: Redis, settings: EngineSettings) -> AsyncIterator[Engines]:
    engines = Engines(client, settings)
    await engines.start()
    yield engines
    await engines.stop()
