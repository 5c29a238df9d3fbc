"""How long a start takes: from the command until a select is answered."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx

from clients.serving import OwnService

from .service_rates import BATCH, TIMEOUT_S, prepare, reward_all
from .timing import Floats, interleaved

LEARNER = "history"


def starts(
    folder: Path, *, rows: int, dimension: int, rounds: int, tick: Callable[[], None]
) -> Floats:
    """Seconds with that many rows of history, and with none, (rounds, 2)."""
    kept = folder / "history"
    with OwnService(kept) as service:
        for number, first in enumerate(range(0, rows, 20 * BATCH)):
            prefix, count = f"h{number}-", min(20 * BATCH, rows - first)
            prepare(service.url, LEARNER, prefix, count, dimension)
            reward_all(service.url, LEARNER, prefix, count)
        told = httpx.get(f"{service.url}/learners/{LEARNER}", timeout=TIMEOUT_S).json()
        assert told["rewards"] == rows, told["rewards"]
    tick()

    def with_none() -> float:
        with TemporaryDirectory(dir=folder) as fresh:
            return _start_s(Path(fresh), dimension)

    return interleaved([lambda: _start_s(kept, dimension), with_none], rounds, tick)


def _start_s(data_dir: Path, dimension: int) -> float:
    body = {"learner": LEARNER, "arms": [{"features": [0.5] * dimension}] * 2}
    began = time.perf_counter()
    with OwnService(data_dir) as service:
        answer = httpx.post(f"{service.url}/select", json=body, timeout=TIMEOUT_S)
        took_s = time.perf_counter() - began
        answer.raise_for_status()
    return took_s
