"""What real processes take: memory and CPU of workers and of the store, and the time of a start.

The figures behind docs/operations.md. They are for sizing; there is no bar to reach.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import redis

from clients.loadtest.bodies import Shape
from clients.serving import OwnService

from .footprint_report import Busy, Learners, Rest, Rows, Start, report
from .progress import Steps, shown
from .report import Report
from .service_load import OwnClient
from .service_rates import TIMEOUT_S, prepare, reward_all
from .service_servers import cpu_s, descendants

MIB = float(1 << 20)
ARMS = 2  # what is stored of a select does not depend on how many there were


@dataclass(frozen=True, slots=True)
class Plan:
    dimensions: tuple[int, ...] = (8, 32, 128)
    learners: int = 100
    rows: int = 40_000
    watch_s: float = 10.0
    load_s: int = 8


FULL = Plan()
QUICK = Plan(dimensions=(8,), learners=10, rows=1_000, watch_s=1.0, load_s=1)


@dataclass(frozen=True, slots=True)
class Processes:
    url: str
    parent: int
    workers: list[int]
    store: int
    data_dir: Path

    def store_used(self) -> int:
        with self.asked() as client:
            return int(client.info("memory")["used_memory"])

    def stream_bytes(self, learner: str) -> int:
        with self.asked() as client:
            return int(client.memory_usage(f"lacuna:{{{learner}}}:rewards", samples=0) or 0)

    @contextmanager
    def asked(self) -> Iterator[redis.Redis]:
        path = (self.data_dir / "owner.lock").read_text().splitlines()[1]
        with redis.Redis(unix_socket_path=path, driver_info=None) as client:
            yield client

    def busy_cores(self, watch_s: float) -> tuple[float, float]:
        """Of the first worker and of the store, over a while."""
        before = cpu_s(self.workers[0]), cpu_s(self.store)
        time.sleep(watch_s)
        after = cpu_s(self.workers[0]), cpu_s(self.store)
        return (after[0] - before[0]) / watch_s, (after[1] - before[1]) / watch_s


@contextmanager
def processes(*arguments: str, **environment: str) -> Iterator[Processes]:
    with TemporaryDirectory(prefix="lacuna-bench-") as name:
        data_dir = Path(name) / "data"
        with OwnService(data_dir, *arguments, environment=environment) as service:
            started = descendants(service.process.pid)
            workers = [pid for pid, command in started if "service.worker" in command]
            [store] = [pid for pid, _ in started if pid not in workers]
            yield Processes(service.url, service.process.pid, workers, store, data_dir)


def measure(quick: bool) -> Report:
    plan = QUICK if quick else FULL
    with shown("footprint") as steps:
        steps.plan(3 + 2 * len(plan.dimensions))
        start = measure_start(steps)
        rest = measure_rest(plan, steps)
        learners = [measure_learners(plan, d, steps) for d in plan.dimensions]
        rows = [measure_rows(plan, d, steps) for d in plan.dimensions]
        busy = measure_busy(plan, steps)
    return report(quick, start, rest, learners, rows, busy)


def measure_start(steps: Steps) -> Start:
    def once(**environment: str) -> tuple[float, float]:
        began = time.perf_counter()
        with processes(**environment) as running:
            took_s = time.perf_counter() - began
            return took_s, cpu_s(running.parent) + sum(map(cpu_s, running.workers))

    with TemporaryDirectory(prefix="lacuna-bench-") as cache:
        found = Start(*once(NUMBA_CACHE_DIR=cache), *once(NUMBA_CACHE_DIR=cache))
    steps.done("start")
    return found


def measure_rest(plan: Plan, steps: Steps) -> Rest:
    with processes() as running:
        time.sleep(1)
        cores = running.busy_cores(plan.watch_s)
        found = Rest(
            resident(running.parent) / MIB,
            resident(running.workers[0]) / MIB,
            resident(running.store) / MIB,
            *cores,
        )
    steps.done("at rest")
    return found


def measure_learners(plan: Plan, d: int, steps: Steps) -> Learners:
    with processes() as running, httpx.Client(base_url=running.url, timeout=TIMEOUT_S) as http:

        def use(name: str) -> None:
            prepare(running.url, name, "e", 1, d, arms=ARMS)
            http.post("/reward", json={"learner": name, "event_id": f"e{1:09d}", "reward": 1.0})

        use("first")
        time.sleep(1)
        memory, used = resident(running.workers[0]), running.store_used()
        alone = running.busy_cores(plan.watch_s)
        for number in range(plan.learners):
            use(f"learner-{number}")
        time.sleep(1)
        together = running.busy_cores(plan.watch_s)
        found = Learners(
            d,
            (resident(running.workers[0]) - memory) / plan.learners,
            (running.store_used() - used) / plan.learners,
            *((many - one) / plan.learners for many, one in zip(together, alone, strict=True)),
        )
    steps.done("learners")
    return found


def measure_rows(plan: Plan, d: int, steps: Steps) -> Rows:
    learner, n = "rows", plan.rows
    # Two workers: all requests go to one on one connection, the other follows.
    with processes("--workers", "2") as running:
        for _ in range(20):  # until both have met the learner
            prepare(running.url, learner, f"first{time.monotonic_ns()}-", 1, d, arms=ARMS)
        time.sleep(2)
        memory = [resident(pid) for pid in running.workers]
        used = running.store_used()
        prepare(running.url, learner, "row-", n, d, arms=ARMS)
        time.sleep(1)
        pending = running.store_used()
        before = [cpu_s(pid) for pid in running.workers]
        reward_all(running.url, learner, "row-", n)
        time.sleep(1)
        spent = sorted(cpu_s(pid) - was for pid, was in zip(running.workers, before, strict=True))
        rewarded, log = running.store_used(), running.stream_bytes(learner)
        grown = [resident(pid) - was for pid, was in zip(running.workers, memory, strict=True)]
        peaks = [peak(pid) - was for pid, was in zip(running.workers, memory, strict=True)]
    steps.done("rows")
    return Rows(
        d,
        (pending - used) / n,
        (rewarded - used) / n,
        log / n,
        min(grown) / n,  # the follower's: the other has buffers of large batches besides
        min(peaks) / n,
        1e6 * spent[0] / n,
        1e6 * spent[1] / n,
    )


def measure_busy(plan: Plan, steps: Steps) -> Busy:
    shape = Shape(arms=20, dimension=32, missing=0.1)
    with processes() as running:
        before = cpu_s(running.workers[0]), cpu_s(running.store)
        found = OwnClient(shape).run(running.url, "json", "busy", "b-", plan.load_s)
        worker_s, store_s = cpu_s(running.workers[0]) - before[0], cpu_s(running.store) - before[1]
        busy = Busy(
            peak(running.workers[0]) / MIB,
            peak(running.store) / MIB,
            worker_s / plan.load_s,
            store_s / plan.load_s,
            found.rate,
        )
    steps.done("busy")
    return busy


def resident(pid: int) -> int:
    return _status(pid, "VmRSS")


def peak(pid: int) -> int:
    return _status(pid, "VmHWM")


def _status(pid: int, name: str) -> int:
    """Bytes of a process, as the system counts them."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) << 10
    raise RuntimeError(f"/proc/{pid}/status has no {name}")
