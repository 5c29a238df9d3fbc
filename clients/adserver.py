"""A small ad server that uses Lacuna: asks for a choice per page, reports clicks when they come.

`GET /page?user=17` collects what is known about the user and the candidate ads, with holes where a
supplier has nothing to say, and asks each learner for an ad. `GET /click?slot=…&impression=…` is a
click. What is never clicked is never reported: the learners book their default reward for it.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Protocol
from urllib.parse import parse_qs

import httpx
import numpy as np
from numpy.typing import NDArray

from clients.client.retries import Retries
from clients.loadtest.histogram import Histogram

TIMEOUT_S = 10.0
RETRIES = Retries(count=3, longest_s=1.0)  # a visitor waits


class Supply(Protocol):
    """What an ad server gets from others: candidates, and what is known of each."""

    names: tuple[str, ...]

    def candidates(self, user: int) -> NDArray[np.int64]: ...

    def scores(self, user: int, ads: NDArray[np.int64]) -> NDArray[np.float64]: ...


class BadQuery(Exception):
    """Not what a browser would ask for."""


class LacunaRefused(Exception):
    """The service did not answer, or not with what was asked for."""


@dataclass(slots=True)
class Seen:
    """What the ad server itself can count."""

    pages: int = 0
    clicks: int = 0
    late: int = 0  # clicks after the default was booked
    degraded: int = 0
    entries: int = 0
    missing: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    select_s: Histogram = field(default_factory=Histogram)


class AdServer:
    """An ASGI application; `learners` by the names shown. `first` is the one to be judged: asked
    alone and timed. The others are asked together, which is cheaper for all."""

    def __init__(
        self,
        lacuna: httpx.AsyncClient,
        supply: Supply,
        learners: Mapping[str, str],
        first: str,
    ) -> None:
        self.lacuna, self.supply, self.learners, self.first = lacuna, supply, learners, first
        self.seen = Seen(missing=np.zeros(len(supply.names), dtype=np.int64))

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        query = {name: one[0] for name, one in parse_qs(scope["query_string"].decode()).items()}
        route = {"/page": self.page, "/click": self.click}.get(scope["path"])
        said: dict[str, Any] = {}
        try:
            status, said = (200, await route(query)) if route else (404, said)
        except BadQuery as error:
            status, said = 400, {"detail": str(error)}
        except LacunaRefused as error:
            status, said = 502, {"detail": str(error)}
        body = json.dumps(said).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def page(self, query: Mapping[str, str]) -> dict[str, Any]:
        """One page, one ad per learner: all of them see the same candidates and the same holes."""
        if not query.get("user", "").isdecimal():
            raise BadQuery("user: must be a number")
        user = int(query["user"])
        ads = self.supply.candidates(user)
        x = self.supply.scores(user, ads)
        holes = np.isnan(x)
        self.seen.pages += 1
        self.seen.entries += len(ads)
        self.seen.missing += holes.sum(axis=0)
        arms = [
            {
                "id": f"ad-{ad}",
                "features": {
                    name: round(value, 4)
                    for name, value in zip(self.supply.names, row, strict=True)
                    if value == value  # a name left out is missing
                },
            }
            for ad, row in zip(ads.tolist(), x.tolist(), strict=True)
        ]
        impression = uuid.uuid4().hex[:16]
        asked = {
            shown: {"learner": learner, "event_id": impression, "arms": arms}
            for shown, learner in self.learners.items()
        }
        began = perf_counter()
        chosen = await self._post("/select", asked.pop(self.first))
        self.seen.select_s.add([perf_counter() - began])
        self.seen.degraded += chosen["degraded"]
        others = await self._post("/select/batch", {"requests": list(asked.values())})
        slots = {self.first: int(ads[chosen["index"]])}
        for shown, one in zip(asked, others["results"], strict=True):
            if "error" in one:
                raise LacunaRefused(f"/select/batch: {one['error'].get('detail')}")
            slots[shown] = int(ads[one["index"]])
        return {"impression": impression, "slots": slots, "considered": ads.tolist()}

    async def click(self, query: Mapping[str, str]) -> dict[str, Any]:
        learner, impression = self.learners.get(query.get("slot", "")), query.get("impression")
        if learner is None or not impression:
            raise BadQuery("slot, impression: must be those of a page")
        body = {"learner": learner, "event_id": impression, "reward": 1.0}
        answer = await self._post("/reward", body)
        self.seen.clicks += 1
        self.seen.late += answer["status"] == "late"
        return {"status": answer["status"]}

    async def _post(self, path: str, body: Any) -> Any:
        """Asked again where a worker died over it: the event's id makes it count once."""
        tried = 0
        while True:
            tried += 1
            answer = None
            try:
                answer = await self.lacuna.post(path, json=body, timeout=TIMEOUT_S)
                answer.raise_for_status()
                return answer.json()
            except httpx.HTTPError as error:
                pause_s = RETRIES.wait_s(tried, answer)
                if pause_s is None:
                    raise LacunaRefused(f"{path}: {error}") from error
            await asyncio.sleep(pause_s)
