"""The servers under measurement: each a process of its own, placed on cores where that works."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from clients.serving import OwnService


def cores() -> list[int]:
    """Those this process may use; none where the system does not let one choose."""
    if not hasattr(os, "sched_setaffinity"):
        return []
    return sorted(os.sched_getaffinity(0))


def placing() -> str:
    """In words, for the report."""
    if len(cores()) < 2:
        return "no core was reserved for anybody"
    rest = "the other one" if len(cores()) == 2 else "the others"
    return (
        f"{len(cores())} cores: workers and yardsticks on the first, "
        f"the store and the load generator on {rest}"
    )


def pin(pid: int, on: list[int]) -> None:
    """All threads of a process that is there; a thread that has just ended is no error."""
    if not on:
        return
    tasks = Path(f"/proc/{pid}/task")
    threads = [int(one.name) for one in tasks.iterdir()] if tasks.is_dir() else [pid]
    for thread in threads:
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(thread, on)


def server_cores() -> list[int]:
    return cores()[:1] if len(cores()) > 1 else []


def other_cores() -> list[int]:
    return cores()[1:] if len(cores()) > 1 else []


@dataclass(frozen=True, slots=True)
class Running:
    url: str
    workers: list[int]  # process ids
    stores: list[int]

    def spent_s(self) -> tuple[float, float]:
        """Seconds of CPU until now: the workers', the store's."""
        return sum(map(cpu_s, self.workers)), sum(map(cpu_s, self.stores))


@contextmanager
def lacuna(data_dir: Path, *arguments: str, placed: bool = True) -> Iterator[Running]:
    with OwnService(data_dir, *arguments) as service:
        started = descendants(service.process.pid)
        workers = [pid for pid, command in started if "service.worker" in command]
        others = [pid for pid, _ in started if pid not in workers]
        if placed:
            for pid, _ in started:
                pin(pid, server_cores() if pid in workers else other_cores())
        yield Running(service.url, workers, others)


@contextmanager
def yardstick(name: str) -> Iterator[Running]:
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.service_apps", name],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        if not found:
            raise RuntimeError(f"the yardstick {name} did not start")
        pin(process.pid, server_cores())
        yield Running(found[0], [process.pid], [])
    finally:
        process.terminate()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def cpu_s(pid: int) -> float:
    """Of one process, all its threads; 0 where the system does not say."""
    told = Path(f"/proc/{pid}/stat")
    if not told.is_file():
        return 0.0
    fields = told.read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def descendants(pid: int) -> list[tuple[int, str]]:
    """Processes that a process started, and theirs, with their command lines."""
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    )
    rows = [line.split(maxsplit=2) for line in listed.stdout.splitlines()]
    found: list[tuple[int, str]] = []
    parents = {pid}
    while parents:
        children = [(int(r[0]), r[2] if len(r) > 2 else "") for r in rows if int(r[1]) in parents]
        found += children
        parents = {child for child, _ in children}
    return found
