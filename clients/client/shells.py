"""The two clients: a way to send a described call, and nothing else of their own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

import httpx

from . import calls
from .arms import Arms
from .calls import Call, Request
from .errors import ServiceAway
from .results import Selected
from .retries import Retries
from .verbs import Verbs

T = TypeVar("T")

TIMEOUT_S = 10.0
DEFAULT_URL = "http://127.0.0.1:8080"


class Choice:
    """A choice whose reward is reported when its block ends."""

    def __init__(self, selected: Selected, default: float | None) -> None:
        self.selected = selected
        self.arm = selected.arm
        self.index = selected.index
        self.event_id = selected.event_id or ""
        self._reward: float | None = None
        self._default = default

    def reward(self, value: float) -> None:
        self._reward = float(value)

    def outcome(self, failed: bool) -> float | None:
        """What to report: nothing of a block that failed before it knew, nor of a dry run."""
        if not self.event_id:
            return None
        if self._reward is not None or failed:
            return self._reward
        return self._default


class _Shell(Verbs):
    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        learner: str = "default",
        api_key: str | None = None,
        timeout_s: float = TIMEOUT_S,
        retries: int | Retries = 4,
        compact: bool = True,
        transport: Any = None,
    ) -> None:
        self.url = url.rstrip("/")
        self.learner = learner
        self.compact = compact
        self.retries = Retries(retries) if isinstance(retries, int) else retries
        self._options: dict[str, Any] = {
            "base_url": self.url,
            "timeout": timeout_s,
            "headers": {"authorization": f"Bearer {api_key}"} if api_key else {},
            "transport": transport,
        }
        self._open()

    def _open(self) -> None:
        raise NotImplementedError

    def _away(self, request: Request, tried: int, error: Exception) -> ServiceAway:
        why = str(error) or type(error).__name__
        times = "try" if tried == 1 else "tries"
        what = f"{request.method} {request.path}"
        return ServiceAway(f"{self.url} did not answer {what} after {tried} {times}: {why}")


def _sendable(request: Request) -> dict[str, Any]:
    return {
        "method": request.method,
        "url": request.path,
        "content": request.content,
        "headers": request.headers,
        "params": request.query or None,
    }


class Client(_Shell):
    """
    >>> with Client("http://127.0.0.1:8080") as client:  # doctest: +SKIP
    ...     with client.choose([[0.2, None], [0.1, 0.7]]) as choice:
    ...         choice.reward(1.0)
    """

    def _open(self) -> None:
        self._http = httpx.Client(**self._options)

    def send(self, call: Call[T]) -> T:
        return call.read([self._answered(request) for request in call.requests])

    def _answered(self, request: Request) -> bytes:
        tried = 0
        while True:
            tried += 1
            answer: httpx.Response | None = None
            try:
                answer = self._http.request(**_sendable(request))
            except (httpx.TransportError, httpx.InvalidURL) as error:
                wait_s = self.retries.wait_s(tried, None)
                if wait_s is None or not isinstance(error, httpx.TransportError):
                    raise self._away(request, tried, error) from error
            else:
                wait_s = self.retries.wait_s(tried, answer)
                if wait_s is None:
                    return calls.accepted(request, tried, answer)
            time.sleep(wait_s)

    @contextmanager
    def choose(
        self, arms: Arms, *, default: float | None = 0.0, **options: Any
    ) -> Iterator[Choice]:
        """Choose; when the block ends, report its reward, or `default` (None: nothing)."""
        choice = Choice(self.select(arms, **options), default)
        failed = True
        try:
            yield choice
            failed = False
        finally:
            outcome = choice.outcome(failed)
            if outcome is not None:
                self.reward(choice.event_id, outcome, learner=choice.selected.learner)

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


class AsyncClient(_Shell):
    """As `Client`; every call is awaited, and `choose` is an `async with`."""

    def _open(self) -> None:
        self._http = httpx.AsyncClient(**self._options)

    async def send(self, call: Call[T]) -> T:
        return call.read([await self._answered(request) for request in call.requests])

    async def _answered(self, request: Request) -> bytes:
        tried = 0
        while True:
            tried += 1
            try:
                answer = await self._http.request(**_sendable(request))
            except (httpx.TransportError, httpx.InvalidURL) as error:
                wait_s = self.retries.wait_s(tried, None)
                if wait_s is None or not isinstance(error, httpx.TransportError):
                    raise self._away(request, tried, error) from error
            else:
                wait_s = self.retries.wait_s(tried, answer)
                if wait_s is None:
                    return calls.accepted(request, tried, answer)
            await asyncio.sleep(wait_s)

    @asynccontextmanager
    async def choose(
        self, arms: Arms, *, default: float | None = 0.0, **options: Any
    ) -> AsyncIterator[Choice]:
        choice = Choice(await self.select(arms, **options), default)
        failed = True
        try:
            yield choice
            failed = False
        finally:
            outcome = choice.outcome(failed)
            if outcome is not None:
                await self.reward(choice.event_id, outcome, learner=choice.selected.learner)

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.close()
