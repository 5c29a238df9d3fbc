from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.api.running import Service, service
from tests.page.browser import Tab, chromium
from tests.page.traffic import FEATURES, Traffic
from tests.servers import Server, server, wait_for

KEY = "a-key-of-the-page"

# Chromium's driver keeps an event loop running in this thread, so it may not outlive the package:
# coroutines of other tests could not run beside it.


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    with chromium() as one:
        yield one


@pytest.fixture(scope="package")
def store(browser: Any) -> Iterator[Server]:
    """A server that can be stopped, and has what it had when it is started again."""
    with server(appendonly="yes") as one:
        yield one


@pytest.fixture(scope="package")
def busy(store: Server) -> Iterator[Service]:
    """Two workers, and callers of the learner `ads` all the time."""
    with service("--workers", "2", "--redis-url", store.url) as one:
        with one.client() as http:
            ads = {"features": FEATURES, "reward_wait_s": 1.0, "default_reward": 0.0}
            assert http.put("/learners/ads", json=ads).status_code == 201
        traffic = Traffic(one.url, "ads")
        traffic.start()
        try:
            with one.client() as http:
                wait_for(lambda: _has_everything(http), "rewards, defaults and duplicates", 60.0)
            yield one
        finally:
            traffic.stop()


def _has_everything(http: httpx.Client) -> bool:
    so_far = http.get("/learners/ads").json()
    return so_far["rewards"] > 200 and so_far["defaults"] > 20 and so_far["duplicates"] > 0


@pytest.fixture(scope="package")
def guarded(browser: Any) -> Iterator[Service]:
    """A service that asks for a key, and has no learner."""
    with server() as own, service("--redis-url", own.url, LACUNA_API_KEYS=KEY) as one:
        yield one


@pytest.fixture
def http(busy: Service) -> Iterator[httpx.Client]:
    with busy.client() as client:
        yield client


@pytest.fixture
def new_tab(browser: Any) -> Iterator[Callable[..., Tab]]:
    tabs: list[Tab] = []

    def opened(url: str, **options: Any) -> Tab:
        tabs.append(Tab(browser, url, **options))
        return tabs[-1]

    yield opened
    for tab in tabs:
        tab.close()


@pytest.fixture
def tab(new_tab: Callable[..., Tab], busy: Service) -> Tab:
    return new_tab(busy.url)
