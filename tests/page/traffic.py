"""Callers of the service while a page looks on: holes, rewards, and rewards that never come."""

from __future__ import annotations

import logging
import threading
from contextlib import suppress

import httpx
import numpy as np

FEATURES = ["taste", "past_clicks", "price", "quality", "freshness"]
MIX = np.array([[0.9, 0.0], [0.8, 0.0], [0.1, 0.7], [0.0, 0.9], [0.0, 0.0]])  # of two hidden sides
SEEN = np.array([0.6, 0.5, 1.0, 0.8, 0.9])
PAUSE_S = 0.01


class Traffic(threading.Thread):
    """One caller after another until it is stopped; a service that is away is waited for."""

    def __init__(self, url: str, learner: str, *, unrewarded: float = 0.3) -> None:
        super().__init__(daemon=True)
        self.url, self.learner, self.unrewarded = url, learner, unrewarded
        self.rng = np.random.default_rng(1)
        self.stopped = threading.Event()

    def run(self) -> None:
        # A line a request, into a stream that pytest closes between tests.
        logging.getLogger("httpx").setLevel(logging.WARNING)
        with httpx.Client(base_url=self.url, timeout=30.0) as http:
            while not self.stopped.wait(PAUSE_S):
                with suppress(httpx.TransportError):
                    self.visit(http)

    def arms(self, many: int = 6) -> list[dict[str, object]]:
        sides = self.rng.standard_normal((many, 2))
        x = sides @ MIX.T + 0.3 * self.rng.standard_normal((many, len(FEATURES)))
        places = range(len(FEATURES))
        seen = self.rng.random(x.shape) < SEEN
        return [
            {"id": f"ad-{k}", "features": [float(x[k, j]) if seen[k, j] else None for j in places]}
            for k in range(many)
        ]

    def visit(self, http: httpx.Client) -> None:
        arms = self.arms()
        answer = http.post("/select", json={"learner": self.learner, "arms": arms})
        if answer.status_code != 200 or self.rng.random() < self.unrewarded:
            return
        chosen = answer.json()
        features = arms[chosen["index"]]["features"]
        assert isinstance(features, list)
        liked = sum(value or 0.0 for value in features[:4])
        reward = float(self.rng.random() < 1 / (1 + np.exp(-liked)))
        body = {"learner": self.learner, "event_id": chosen["event_id"], "reward": reward}
        for _ in range(2 if self.rng.random() < 0.1 else 1):  # some say it twice
            http.post("/reward", json=body)

    def stop(self) -> None:
        self.stopped.set()
        self.join()
