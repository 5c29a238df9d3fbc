from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from service.store.connect import connect
from service.store.learner_store import LearnerStore
from tests.servers import Server, server


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    with server() as one:
        yield one


@pytest.fixture
async def store(running: Server) -> AsyncIterator[LearnerStore]:
    client = connect(running.url)
    await client.flushall()
    store = LearnerStore(client, "one")
    assert await store.configure(None, b"{}", "birth") is True
    await store.load()
    yield store
    await client.aclose()
