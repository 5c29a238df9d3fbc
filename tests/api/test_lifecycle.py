"""Ends and deaths of the service, under load. Everything acknowledged is there afterwards."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from service.door import Door
from service.errors import BadSetting
from tests.api.running import ROOT, Service, service
from tests.servers import free_port, wait_for

ARMS = [{"features": [0.5, None, 1.0]}, {"features": [0.1, 0.3, 0.2]}]
CLIENTS = 8


class Load:
    """Callers that select and reward without a pause, each on a connection of its own."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.selected: list[str] = []
        self.rewarded: list[str] = []
        self.cut: list[str] = []  # requests that got no answer though they had a connection
        self.refused = 0  # connections that could not be made
        self.unsure: set[str] = set()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._call, args=(n,)) for n in range(CLIENTS)]

    def _call(self, number: int) -> None:
        with httpx.Client(base_url=self.url, timeout=30.0) as http:
            count = 0
            while not self._stop.is_set():
                count += 1
                event_id = f"c{number}-{count}"
                try:
                    answer = http.post("/select", json={"event_id": event_id, "arms": ARMS})
                    if answer.status_code == 200:
                        self.selected.append(event_id)
                    body = {"event_id": event_id, "reward": 1.0}
                    answer = http.post("/reward", json=body)
                    if answer.status_code == 200:
                        self.rewarded.append(event_id)
                except httpx.ConnectError:
                    self.refused += 1
                    time.sleep(0.02)
                except httpx.HTTPError as error:
                    self.cut.append(repr(error))
                    self.unsure.add(event_id)

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


@contextmanager
def load(url: str) -> Iterator[Load]:
    callers = Load(url)
    callers.start()
    try:
        yield callers
    finally:
        callers.end()


def check_nothing_is_lost(running: Service, callers: Load) -> None:
    with running.client() as http:
        rewards = [{"event_id": event_id, "reward": 0.0} for event_id in callers.rewarded]
        for start in range(0, len(rewards), 500):
            batch = {"rewards": rewards[start : start + 500]}
            results = http.post("/reward/batch", json=batch).json()["results"]
            assert {(one["status"], one["reward"]) for one in results} == {("duplicate", 1.0)}
        seen = http.get("/learners/default").json()
    # A request that was cut may have been stored all the same.
    sure, unsure = len(callers.rewarded), len(callers.unsure)
    assert sure <= seen["rewards"] <= sure + unsure
    assert len(callers.selected) <= seen["rounds"] <= len(callers.selected) + unsure
    assert seen["arms"] == 2 * seen["rounds"]


def test_what_a_start_prints_can_be_pasted(tmp_path):
    with service("--data-dir", str(tmp_path)) as running:
        text = "".join(running.said)
        assert f"Lacuna is ready at {running.url}" in text
        assert str(tmp_path) in text
        commands = [line.strip() for line in text.splitlines() if line.startswith("  curl ")]
        answers = [
            subprocess.run(
                [*shlex.split(command), "--silent"], capture_output=True, text=True, check=True
            ).stdout
            for command in commands
        ]
    assert '"event_id":"e1"' in answers[0]
    assert answers[1] == '{"event_id":"e1","status":"recorded"}'


def test_a_port_that_is_taken_is_not_shared(running, tmp_path):
    port = running.url.rpartition(":")[2]
    second = subprocess.run(
        [sys.executable, "-m", "service.cli", "serve", "--port", port, "--data-dir", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert second.returncode == 2
    assert "cannot be listened on" in second.stderr


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_stop_under_load_loses_nothing_and_cuts_nobody(tmp_path, sign):
    flags = ("--workers", "2", "--data-dir", str(tmp_path))
    first = Service(*flags)
    try:
        with load(first.url) as callers:
            wait_for(lambda: len(callers.rewarded) > 50, "traffic", 30.0)
            first.process.send_signal(sign)
            assert first.process.wait(30.0) == 0
            time.sleep(0.1)
    finally:
        first.end()
    assert callers.cut == []
    assert callers.refused > 0
    with service(*flags) as again:
        check_nothing_is_lost(again, callers)


def test_a_killed_worker_is_replaced_and_nothing_acknowledged_is_lost(tmp_path):
    with service("--workers", "2", "--data-dir", str(tmp_path)) as running:
        before = running.workers()
        assert len(before) == 2
        with load(running.url) as callers:
            time.sleep(0.5)
            os.kill(before[0], signal.SIGKILL)
            deadline = time.monotonic() + 30.0
            while len(running.workers()) < 2:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            time.sleep(2.0)
        after = running.workers()
        assert before[1] in after
        assert before[0] not in after
        check_nothing_is_lost(running, callers)
        with running.client() as http:
            text = http.get("/metrics").text
            # What the dead worker had counted is still there.
            line = 'lacuna_rewards_total{learner="default",status="recorded"} '
            counted = float(text.partition(line)[2].partition("\n")[0])
            assert len(callers.rewarded) <= counted <= len(callers.rewarded) + len(callers.unsure)


def test_workers_end_when_their_parent_is_killed(tmp_path):
    running = Service("--workers", "2", "--data-dir", str(tmp_path))
    workers = running.workers()
    running.process.kill()
    running.end()
    deadline = time.monotonic() + 30.0
    while any(map(is_alive, workers)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    with service("--data-dir", str(tmp_path)):
        pass  # the store is free again


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_an_embedded_store_that_is_full_refuses_writes_and_selects_go_on(tmp_path):
    arms = [{"features": [0.5] * 64} for _ in range(50)]
    flags = ("--data-dir", str(tmp_path), "--max-memory-bytes", "3000000")
    with service(*flags) as running, running.client() as http:
        answers = []
        for _ in range(3_000):
            answers.append(http.post("/select", json={"arms": arms}))
            if answers[-1].json()["degraded"]:
                break
        assert {one.status_code for one in answers} == {200}
        assert answers[-1].json()["degraded"]
        assert http.get("/health/ready").status_code == 503
        assert "maxmemory" in "".join(running.logged)


def test_two_services_that_start_at_once_do_not_share_a_port():
    port = free_port()
    first = Door("127.0.0.1", port)  # it does not listen yet
    try:
        with pytest.raises(BadSetting, match="cannot be listened on"):
            Door("127.0.0.1", port)
    finally:
        first.close()
    Door("127.0.0.1", port).close()
