"""docker-compose.yml at work: the same processes, on the loopback (see stack.py).

API keys are set, so that everything here also shows that callers and probes get by with them.
"""

import json
import re
import signal
import threading
import uuid
from collections import Counter
from pathlib import Path

import httpx
import pytest
import redis

from service import cli
from tests.servers import HOST, other_server

from .stack import OTHERS, ROOT, Stack, eventually, installed

KEY = "a-key-of-this-test"
ARMS = [{"id": "a", "features": [0.1, None]}, {"id": "b", "features": [0.7, 0.2]}]
COUNTS = ("rounds", "rewards", "defaults", "late", "duplicates")

pytestmark = pytest.mark.skipif(installed("nginx") is None, reason="nginx is not installed here")


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    given = {
        "LACUNA_API_KEYS": f"{KEY},an-older-one",
        "LACUNA_API_KEY": KEY,
        "LACUNA_LOGS": str(tmp_path_factory.mktemp("logs")),
    }
    one = Stack(tmp_path_factory.mktemp("stack"), environment=given)
    try:
        one.up()
        yield one
    finally:
        for running in reversed(one.running.values()):
            running.stop(signal.SIGTERM)


@pytest.fixture
def caller(stack):
    with httpx.Client(base_url=stack.url("lb"), headers={"X-API-Key": KEY}, timeout=30.0) as client:
        yield client


def learner(client, name):
    answer = client.get(f"/learners/{name}")
    return answer.json() if answer.status_code == 200 else dict.fromkeys((*COUNTS, "pending"), 0)


def served(stack, replica, endpoint):
    """Answers of one replica, by status."""
    text = httpx.get(f"{stack.url(replica)}/metrics", headers={"X-API-Key": KEY}).text
    lines = re.findall(r'lacuna_requests_total\{endpoint="([^"]+)",status="(\d+)"\} (\S+)', text)
    return Counter({status: float(n) for path, status, n in lines if path == endpoint})


def test_the_demo_goes_on_through_a_killed_replica_and_a_restart_of_everything(stack, caller):
    # Fewer pages than the file says, for the sake of busy machines: later flags win.
    demo = stack.start("demo", "--pages", "10")
    eventually(lambda: learner(caller, "demo-lacuna")["rounds"] >= 40, "pages are served")
    for replica in ("lacuna-1", "lacuna-2"):
        assert served(stack, replica, "/select")["200"] > 0, replica

    stack.running["lacuna-1"].kill()
    before = learner(caller, "demo-lacuna")["rounds"]
    eventually(lambda: learner(caller, "demo-lacuna")["rounds"] >= before + 40, "they go on")
    stack.start("lacuna-1")  # as its restart rule says
    stack.wait_until_healthy("lacuna-1")
    eventually(lambda: served(stack, "lacuna-1", "/select")["200"] > 0, "it is used again")

    assert stack.stop("demo") == 0
    summary = demo.said()
    assert "pages in" in summary
    assert "failed" not in summary, summary
    names = [f"demo-{policy}" for policy in ("lacuna", "zero-fill", "random")]
    eventually(lambda: all(learner(caller, one)["pending"] == 0 for one in names), "all is booked")
    told = {one: learner(caller, one) for one in names}
    for one in told.values():
        # A page that was cut short by the end of the demo may lack the learners asked last.
        assert one["rounds"] == one["rewards"] > 80
        assert 0 < one["defaults"] < one["rewards"]

    statuses = stack.down()
    assert set(statuses.values()) == {0}, statuses
    stack.up()
    for name, before in told.items():
        after = learner(caller, name)
        assert {key: after[key] for key in COUNTS} == {key: before[key] for key in COUNTS}
    stack.start("demo")
    eventually(
        lambda: learner(caller, "demo-lacuna")["rounds"] > told["demo-lacuna"]["rounds"],
        "the same learner goes on",
    )
    assert stack.stop("demo") == 0


def test_a_rolling_restart_is_seen_by_nobody_and_counts_nothing_twice(stack, caller):
    name = f"rolling-{uuid.uuid4().hex[:8]}"
    answers = Counter()
    enough = threading.Event()

    def call():
        # No event_id: whatever were sent twice would count twice.
        with httpx.Client(base_url=stack.url("lb"), headers={"X-API-Key": KEY}) as client:
            while not enough.is_set():
                answer = client.post("/select", json={"learner": name, "arms": ARMS})
                answers[answer.status_code] += 1

    callers = [threading.Thread(target=call) for _ in range(4)]
    for one in callers:
        one.start()
    try:
        for replica in ("lacuna-1", "lacuna-2"):
            eventually(lambda: learner(caller, name)["rounds"] > 0, "selects are answered")
            assert stack.stop(replica) == 0
            seen = sum(answers.values())
            eventually(lambda seen=seen: sum(answers.values()) > seen + 50, "the other serves")
            stack.start(replica)
            stack.wait_until_healthy(replica)
            eventually(
                lambda replica=replica: served(stack, replica, "/select")["200"] > 0,
                "it serves again",
            )
    finally:
        enough.set()
        for one in callers:
            one.join()
    assert set(answers) == {200}
    assert learner(caller, name)["rounds"] == answers[200]


def test_a_request_keeps_its_id_or_gets_one(caller):
    mine = caller.get("/learners", headers={"X-Request-ID": "mine-1"})
    assert mine.headers["X-Request-ID"] == "mine-1"
    assert re.fullmatch("[0-9a-f]{32}", caller.get("/learners").headers["X-Request-ID"])


def test_a_call_without_a_key_is_refused_but_probes_are_not(stack):
    assert httpx.get(f"{stack.url('lb')}/learners").status_code == 401
    assert httpx.get(f"{stack.url('lb')}/health/ready").status_code == 200


def test_a_body_that_is_too_large_is_a_problem_but_an_import_may_be_larger(caller):
    large = b"x" * (5 << 20)
    refused = caller.post("/select", content=large)
    assert refused.status_code == 413
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert refused.json()["type"] == "urn:lacuna:problem:too-large"
    read = caller.put("/learners/imported/import", content=large)
    assert read.status_code == 422


def test_no_replica_is_a_problem_with_an_id_and_it_is_logged(stack, caller):
    for replica in ("lacuna-1", "lacuna-2"):
        stack.stop(replica)
    try:
        answer = caller.post("/select", json={"arms": ARMS}, headers={"X-Request-ID": "lost-1"})
    finally:
        for replica in ("lacuna-1", "lacuna-2"):
            stack.start(replica)
        for replica in ("lacuna-1", "lacuna-2"):
            stack.wait_until_healthy(replica)
    assert answer.status_code == 502
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.headers["X-Request-ID"] == "lost-1"
    assert answer.headers["Retry-After"] == "1"
    assert answer.json()["type"] == "urn:lacuna:problem:unavailable"
    logged = [line for line in stack.running["lb"].said().splitlines() if "lost-1" in line]
    assert [json.loads(line)["status"] for line in logged if line.startswith("{")] == [502]
    eventually(lambda: caller.get("/learners").status_code == 200, "the balancer has noticed")


def test_a_load_test_runs_as_the_profile_says(stack):
    ended = stack.start("loadtest", "--duration", "3", "--quiet")
    assert ended.process.wait(60) == 0, ended.said()
    stack.running.pop("loadtest")
    report = json.loads((stack.folder / "volumes/reports/loadtest.json").read_text())
    assert report


def test_a_replay_runs_as_the_profile_says(stack):
    log = Path(stack.environment["LACUNA_LOGS"]) / "train.gz"
    assert cli.main(["sample", "avazu", "--rows", "4000", "--out", str(log)]) == 0
    small = ["--rounds", "100", "--pool", "100", "--arms", "5", "--seeds", "1", "--dimension", "4"]
    ended = stack.start("replay", *small, "--policies", "clbbf,oful", "--jobs", "1", "--quiet")
    assert ended.process.wait(60) == 0, ended.said()
    stack.running.pop("replay")
    assert (stack.folder / "volumes/reports/replay/replay.html").exists()


def test_prometheus_sees_all_of_it(stack):
    for program in OTHERS.values():
        if installed(program) is None:
            pytest.skip(f"{program} is not installed here")
    stack.start("redis-exporter")
    stack.here("prometheus", "/etc/prometheus")  # lays its files out
    config = stack.folder / "prometheus/prometheus/prometheus.yml"
    key = stack.folder / "lacuna-api-key"
    key.write_text(KEY)
    text = config.read_text()
    # What docs/docker.md asks for where there are keys; and every second, so as not to wait.
    line = re.search(r"# +(authorization: .*)", text)[1]
    line = line.replace("/run/secrets/lacuna-api-key", str(key))
    text = text.replace("job_name: lacuna\n", f"job_name: lacuna\n    {line}\n")
    config.write_text(re.sub(r"(?m)^(  scrape_\w+): \d+s", r"\1: 1s", text))
    one = stack.start("prometheus")

    def targets():
        assert one.process.poll() is None, one.said()[-2000:]
        try:
            told = httpx.get(f"{stack.url('prometheus')}/api/v1/targets").json()
        except (httpx.HTTPError, ValueError):
            return Counter()
        found = told["data"]["activeTargets"]
        return Counter((target["labels"]["job"], target["health"]) for target in found)

    wanted = {("lacuna", "up"): 2, ("redis", "up"): 1, ("prometheus", "up"): 1}
    try:
        eventually(lambda: targets() == wanted, "everything is scraped")
    finally:
        stack.stop("prometheus")
        stack.stop("redis-exporter")


def store_server(which: str) -> Path:
    found = other_server() if which == "other" else None
    if which == "other" and found is None:
        pytest.skip("no redis-server or valkey-server is installed here")
    return found


@pytest.mark.parametrize("which", ["wheel", "other"])
def test_the_store_keeps_what_it_was_given(tmp_path, which):
    executable = store_server(which)
    one = Stack(tmp_path, **({"store": executable} if executable else {}))
    client = redis.Redis(host=HOST, port=one.ports["redis"], driver_info=None)

    def answers():
        assert one.running["redis"].process.poll() is None, one.running["redis"].said()
        try:
            return client.ping()
        except redis.ConnectionError:
            return False

    try:
        with client:
            one.start("redis")
            eventually(answers, "it answers")
            wanted = {"appendonly": "yes", "maxmemory-policy": "noeviction", "save": ""}
            for name, value in wanted.items():
                assert client.config_get(name)[name] == value
            # As the container's limit leaves room for a rewrite.
            limit = int(one.services["redis"]["mem_limit"])
            assert 2 * int(client.config_get("maxmemory")["maxmemory"]) < 1.5 * limit
            client.set("lacuna:kept", "1")
            one.running["redis"].kill()
            one.start("redis")
            eventually(answers, "it answers again")
            assert client.get("lacuna:kept") == b"1"
            assert one.stop("redis") == 0
    finally:
        for running in one.running.values():
            running.stop(signal.SIGTERM)


def test_no_configuration_file_was_changed_on_the_way(stack):
    """But for addresses and places."""
    for name, source in (("lb", "deploy/nginx/nginx.conf"), ("redis", "deploy/redis.conf")):
        was = (ROOT / source).read_text().splitlines()
        copy = next((stack.folder / name).glob("*.conf")).read_text().splitlines()
        changed = [
            before
            for before, after in zip(was, copy, strict=True)
            if before.strip() != after.strip()
        ]
        touched = r"listen|server lacuna-|/tmp|^port |^bind |^dir "
        assert all(re.search(touched, line) for line in changed), changed
