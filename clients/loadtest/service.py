"""The few calls to the service that are not load: a learner to load, and what it counted."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import httpx

from clients.errors import ServiceFailed

TIMEOUT_S = 60.0


class Service:
    def __init__(self, url: str, api_key: str = "") -> None:
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else None
        self.http = httpx.Client(base_url=url, timeout=TIMEOUT_S, headers=headers)

    def make(self, learner: str, dimension: int, decision_ttl_s: float) -> None:
        configuration = {"dimension": dimension, "decision_ttl_s": decision_ttl_s}
        self._call("PUT", f"/learners/{learner}", configuration)

    def remove(self, learner: str) -> None:
        self._call("DELETE", f"/learners/{learner}")

    def counted(self, learner: str) -> Counted:
        return Counted.of(self._call("GET", f"/learners/{learner}"))

    def exists(self, learner: str) -> bool:
        listed = self._call("GET", "/learners")["learners"]
        return learner in [one["name"] for one in listed]

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        try:
            answer = self.http.request(method, path, json=body)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            where = self.http.base_url
            raise ServiceFailed(f"{where} did not answer {method} {path}: {error}") from error
        if answer.status_code == 401:
            raise ServiceFailed("the service asks for a key: set LACUNA_API_KEY")
        if answer.is_error:
            raise ServiceFailed(
                f"{method} {path} was refused, {answer.status_code}: {answer.text[:200]}"
            )
        return answer.json() if answer.content else None

    def __enter__(self) -> Service:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.http.close()


class Counted:
    """What the learner says that it has counted."""

    def __init__(self, rounds: int, recorded: int, reward_sum: float, duplicates: int) -> None:
        self.rounds, self.recorded = rounds, recorded
        self.reward_sum, self.duplicates = reward_sum, duplicates

    @classmethod
    def of(cls, told: dict[str, Any]) -> Counted:
        # Defaults are in the sum as well; a learner made for the test has none.
        mean = told["mean_reward"] or 0.0
        recorded = told["rewards"] - told["defaults"]
        return cls(told["rounds"], recorded, mean * told["rewards"], told["duplicates"])

    def since(self, before: Counted) -> Counted:
        return Counted(
            self.rounds - before.rounds,
            self.recorded - before.recorded,
            self.reward_sum - before.reward_sum,
            self.duplicates - before.duplicates,
        )
