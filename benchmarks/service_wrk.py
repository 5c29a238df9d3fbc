"""wrk as the load generator: the highest rate of one endpoint, closed loop."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

from clients.loadtest.bodies import Shape, compact_bodies, json_tails

from .service_load import CONNECTIONS, POOL, LoadFailed, Rate
from .service_servers import other_cores

SCRIPT = Path(__file__).with_suffix(".lua")


def installed() -> bool:
    return shutil.which("wrk") is not None


class Wrk:
    """Bodies on disk, where its script finds them."""

    name = "wrk"

    def __init__(self, folder: Path, shape: Shape, *, seed: int = 1) -> None:
        self.json, self.compact = folder / "bodies.jsonl", folder / "bodies.f32"
        self.json.write_bytes(b"\n".join(json_tails(shape, POOL, seed)) + b"\n")
        bodies = compact_bodies(shape, POOL, seed)
        self.compact.write_bytes(b"".join(bodies))
        self.compact_size = len(bodies[0])

    def run(
        self,
        url: str,
        kind: str,
        learner: str,
        prefix: str,
        duration_s: int,
        *,
        connections: int = CONNECTIONS,
        limit: int = 0,
    ) -> Rate:
        """Event ids are `prefix` and a number from 1; of kind `reward` at most `limit`."""
        bodies = self.compact if kind == "compact" else self.json
        size = self.compact_size if kind == "compact" else 0
        command = [
            *("wrk", "-t1", f"-c{connections}", f"-d{duration_s}s", "-s", str(SCRIPT), url, "--"),
            *(kind, learner, prefix, str(bodies), str(size), str(limit)),
        ]
        taskset = shutil.which("taskset")
        if taskset and other_cores():
            command = [taskset, "-c", ",".join(map(str, other_cores())), *command]
        done = subprocess.run(command, capture_output=True, text=True)
        line = re.search(r"^FOUND (.*)$", done.stdout, re.MULTILINE)
        if not line:
            raise LoadFailed(f"wrk: {done.stderr or done.stdout}")
        found = json.loads(line[1])
        if found["failed"]:
            raise LoadFailed(f"{found['failed']} of {found['requests']} requests failed at {url}")
        if kind == "reward" and found["requests"] + connections >= limit:
            raise LoadFailed(f"{limit:,} events were too few for {duration_s} s of rewards")
        rate = found["requests"] / (found["duration_us"] / 1e6)
        return Rate(rate, found["requests"])
