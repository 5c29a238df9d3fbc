"""A player whose learner lives behind a URL: a fresh one for every policy and seed.

The service must be running. `LACUNA_API_KEY` holds the key where the service asks for one.
"""

from __future__ import annotations

import math
import os
import uuid
from typing import Any

import httpx
import numpy as np
from numpy.typing import NDArray

from clients.errors import ServiceFailed
from service.learner import LearnerConfig

TIMEOUT_S = 30.0


class OverHttp:
    def __init__(
        self,
        url: str,
        name: str,
        config: LearnerConfig,
        *,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        key = os.environ.get("LACUNA_API_KEY")
        self.http = httpx.Client(
            base_url=url,
            timeout=TIMEOUT_S,
            transport=transport,
            headers={"Authorization": f"Bearer {key}"} if key else None,
        )
        # Runs at the same time, or one cut short before, must not meet in a learner.
        self.name = f"{name}-{uuid.uuid4().hex[:8]}"
        self.event = ""
        self.round = 0
        try:
            self._call("PUT", f"/learners/{self.name}", config.to_dict())
        except ServiceFailed:
            self.http.close()
            raise

    def choose(self, x: NDArray[np.float64]) -> int:
        self.round += 1
        self.event = f"{self.name}-{self.round}"
        # NaN is not JSON: a hole is null.
        rows = [[None if math.isnan(value) else value for value in row] for row in x.tolist()]
        answer = self._call(
            "POST",
            "/select",
            {
                "learner": self.name,
                "event_id": self.event,
                "arms": [{"features": row} for row in rows],
            },
        )
        return int(answer["index"])

    def learn(self, reward: float) -> None:
        self._call(
            "POST",
            "/reward",
            {"learner": self.name, "event_id": self.event, "reward": reward},
        )

    def close(self) -> None:
        try:
            self._call("DELETE", f"/learners/{self.name}")
        finally:
            self.http.close()

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        try:
            answer = self.http.request(method, path, json=body)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            where = self.http.base_url
            raise ServiceFailed(
                f"--url: {where} did not answer {method} {path}: {error}"
            ) from error
        if answer.is_error:
            raise ServiceFailed(
                f"--url: {method} {path} was refused, {answer.status_code}: {_detail(answer)}"
            )
        return answer.json() if answer.content else None


def _detail(answer: httpx.Response) -> str:
    """What the problem document says, or the start of whatever came instead."""
    try:
        return str(answer.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return answer.text[:200]
