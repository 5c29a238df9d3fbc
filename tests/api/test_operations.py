import json
import re
import time

import pytest

from tests.api.running import service
from tests.servers import server, wait_for

ARMS = [{"features": [0.5, None]}, {"features": [0.1, 0.3]}]


def metric(http, name: str, **labels: str) -> float:
    """The value of one series; 0 where there is none."""
    for line in http.get("/metrics").text.splitlines():
        found = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line)
        if found and found[1] == name:
            given = dict(re.findall(r'(\w+)="([^"]*)"', found[2] or ""))
            if given == labels:
                return float(found[3])
    return 0.0


def test_health_is_live_and_ready(http):
    assert http.get("/health/live").json() == {"status": "ok"}
    assert http.get("/health/ready").json() == {"status": "ready"}


def test_the_page_keeps_to_itself(http):
    page = http.get("/")
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy
    assert "http" not in policy
    known = {"if-none-match": page.headers["etag"]}
    assert http.get("/", headers=known).status_code == 304


def test_every_file_of_the_page_is_served_as_what_it_is(http):
    names = re.findall(r'(?:src|href)="page/([^"]+)"', http.get("/").text)
    assert names
    for name in names:
        file = http.get(f"/page/{name}")
        assert file.status_code == 200, name
        assert file.headers["content-type"].split(";")[0] in {
            *("text/css", "text/javascript", "image/svg+xml"),
        }
        assert file.headers["x-content-type-options"] == "nosniff"
    for path in ("/page/nothing.js", "/page/index.html", "/page/..%2fapp.py", "/page/"):
        assert http.get(path).status_code == 404, path


def test_docs_and_document_describe_every_call(http):
    assert http.get("/docs").status_code == 200
    document = http.get("/openapi.json").json()
    calls = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
    assert calls == {
        ("POST", "/select"),
        ("POST", "/reward"),
        ("POST", "/select/batch"),
        ("POST", "/reward/batch"),
        ("GET", "/learners"),
        ("PUT", "/learners/{name}"),
        ("GET", "/learners/{name}"),
        ("DELETE", "/learners/{name}"),
        ("GET", "/learners/{name}/model"),
        ("GET", "/learners/{name}/decisions"),
        ("GET", "/learners/{name}/decisions/{event_id}"),
        ("GET", "/learners/{name}/timeline"),
        ("GET", "/learners/{name}/export"),
        ("PUT", "/learners/{name}/import"),
        ("POST", "/learners/{name}/reset"),
        ("GET", "/health/live"),
        ("GET", "/health/ready"),
        ("GET", "/metrics"),
        ("GET", "/"),
    }
    for _, path in calls - {("GET", "/health/live"), ("GET", "/health/ready")}:
        for call in document["paths"][path].values():
            assert "401" in call["responses"] or path.startswith("/health")
            assert "500" in call["responses"]
    select = document["paths"]["/select"]["post"]
    assert set(select["requestBody"]["content"]) == {
        "application/json",
        "application/vnd.lacuna.f32",
    }
    told = {"200", "401", "403", "404", "413", "415", "422", "500", "503"}
    assert told == set(select["responses"])
    assert document["components"]["schemas"]["SelectRequest"]["examples"]


def test_a_sane_request_id_is_kept_and_another_is_made(http):
    for path in ("/health/live", "/learners", "/nothing"):
        assert http.get(path, headers={"x-request-id": "abc-1"}).headers["x-request-id"] == "abc-1"
    made = {http.post("/select", json={"arms": []}).headers["x-request-id"] for _ in range(4)}
    assert len(made) == 4
    for odd in ("", "x" * 200, "a b", 'a"b'):
        given = http.get("/health/live", headers={"x-request-id": odd}).headers["x-request-id"]
        assert given != odd
        assert re.fullmatch(r"[0-9a-f]{20}", given)


def test_metrics_add_up_over_all_workers(http, learner):
    before = metric(http, "lacuna_requests_total", endpoint="/select", status="200")
    for number in range(10):
        body = {"learner": learner, "event_id": f"e{number}", "arms": ARMS}
        assert http.post("/select", json=body).status_code == 200
        reward = {"learner": learner, "event_id": f"e{number % 5}", "reward": 1.0}
        assert http.post("/reward", json=reward).status_code == 200
    after = metric(http, "lacuna_requests_total", endpoint="/select", status="200")
    assert after - before == 10
    assert metric(http, "lacuna_selects_total", learner=learner, degraded="false") == 10
    assert metric(http, "lacuna_rewards_total", learner=learner, status="recorded") == 5
    assert metric(http, "lacuna_rewards_total", learner=learner, status="duplicate") == 5
    assert metric(http, "lacuna_pending", learner=learner) == 5
    assert metric(http, "lacuna_workers") == 2


def test_metrics_of_the_engines_follow_soon(http, learner):
    for _ in range(4):
        http.post("/select", json={"learner": learner, "arms": ARMS})
    wait_for(lambda: metric(http, "lacuna_entries_total", learner=learner) == 16, "all came")
    assert metric(http, "lacuna_missing_entries_total", learner=learner) == 4
    assert metric(http, "lacuna_missing_rate", learner=learner) == pytest.approx(0.25)
    assert metric(http, "lacuna_batch_size_sum", learner=learner) == 4
    assert metric(http, "lacuna_round_trips_total", learner=learner) >= 4


def test_every_worker_tells_of_itself(http):
    for number in ("0", "1"):
        assert metric(http, "lacuna_worker_cpu_seconds_total", worker=number) > 0
        assert metric(http, "lacuna_worker_resident_memory_bytes", worker=number) > 1e7
        started = metric(http, "lacuna_worker_start_time_seconds", worker=number)
        assert 0 < started <= time.time()
    assert metric(http, "lacuna_store_up") == 1


def test_counters_of_a_learner_begin_at_0(http, learner):
    """Prometheus sees no increase in a series whose first value is not 0."""
    http.post("/select", json={"learner": learner, "event_id": "e", "arms": ARMS})
    http.post("/reward", json={"learner": learner, "event_id": "e", "reward": 1.0})
    for status in ("duplicate", "late", "unknown"):
        assert f'lacuna_rewards_total{{learner="{learner}",status="{status}"}} 0.0' in (
            http.get("/metrics").text
        )
    wanted = f'lacuna_dropped_decisions_total{{learner="{learner}"}} 0.0'
    wait_for(lambda: wanted in http.get("/metrics").text, wanted)


def test_rewards_of_unknown_events_are_counted(http, learner):
    http.post("/select", json={"learner": learner, "event_id": "e", "arms": ARMS})
    lost = {"learner": learner, "event_id": "never", "reward": 1.0}
    assert http.post("/reward", json=lost).status_code == 404
    labels = {"learner": learner, "status": "unknown"}
    wait_for(lambda: metric(http, "lacuna_rewards_total", **labels) == 1, "it is counted")


def test_a_latency_histogram_has_every_request_in_it(http):
    http.get("/health/live")
    labels = {"endpoint": "/health/live", "status": "200"}
    count = metric(http, "lacuna_request_seconds_count", **labels)
    assert count == metric(http, "lacuna_requests_total", **labels) > 0
    assert metric(http, "lacuna_request_seconds_bucket", **labels, le="+Inf") == count
    assert metric(http, "lacuna_request_seconds_sum", **labels) > 0


def test_unknown_paths_share_one_series(http):
    before = metric(http, "lacuna_requests_total", endpoint="other", status="404")
    for number in range(3):
        http.get(f"/nothing/{number}")
    assert metric(http, "lacuna_requests_total", endpoint="other", status="404") - before == 3


def test_keys_settings_and_logs_of_a_guarded_service():
    """One start for all that needs settings of its own."""
    with (
        server() as store,
        service(
            *("--redis-url", store.url, "--log-format", "json", "--access-log"),
            *("--no-auto-create", "--max-arms", "2", "--max-dimension", "3"),
            LACUNA_API_KEYS="first-secret, second-secret",
            LACUNA_MAX_BODY_BYTES="2000",
        ) as guarded,
        guarded.client() as http,
    ):
        for path in ("/", "/learners", "/metrics", "/docs", "/openapi.json", "/nothing"):
            refused = http.get(path)
            assert refused.status_code == 401
            assert refused.headers["content-type"] == "application/problem+json"
            assert refused.headers["www-authenticate"].startswith("Bearer")
        shown = http.get("/", headers={"accept": "text/html"})  # where the key is entered
        assert shown.status_code == 401
        assert shown.headers["content-type"].startswith("text/html")
        assert shown.headers["www-authenticate"].startswith("Bearer")
        file = re.findall(r'"(page/[^"]+)"', shown.text)[0]
        assert http.get(file).status_code == 200
        assert http.get("/", headers={"x-api-key": "second-secret"}).status_code == 200
        assert http.post("/select", json={"arms": ARMS}).status_code == 401
        assert http.get("/health/live").status_code == 200
        assert http.get("/health/ready").status_code == 200
        for headers in (
            {"authorization": "Bearer first-secret"},
            {"authorization": "bearer second-secret"},
            {"x-api-key": "second-secret"},
        ):
            assert http.get("/learners", headers=headers).status_code == 200
        for headers in (
            {"authorization": "Bearer first"},
            {"authorization": "Basic first-secret"},
            {"authorization": "first-secret"},
            {"x-api-key": "first-secret, second-secret"},
            {"x-api-key": ""},
        ):
            assert http.get("/learners", headers=headers).status_code == 401
        http.headers["x-api-key"] = "first-secret"
        assert http.post("/select", json={"arms": ARMS}).status_code == 404  # no auto_create
        assert http.put("/learners/default", json={"dimension": 2}).status_code == 201
        asked = {"arms": ARMS, "event_id": "e"}
        assert http.post("/select", json=asked).status_code == 200
        assert http.post("/select", json={"arms": [*ARMS, ARMS[0]]}).status_code == 422
        assert http.post("/select", json={"arms": [{"features": [0] * 4}]}).status_code == 422
        assert http.put("/learners/four", json={"dimension": 4}).status_code == 422
        assert http.post("/select", content=b" " * 2_001).status_code == 413
        store.kill()
        kept = http.post("/select", json={"arms": ARMS, "event_id": "alone"})
        assert kept.status_code == 200
        assert kept.json()["degraded"] is True
        late = http.post("/reward", json={"event_id": "e", "reward": 1.0})
        assert late.status_code == 503
        assert int(late.headers["retry-after"]) >= 1
        assert late.json()["title"] == "The store is not available"
        sent = {"x-request-id": "find-me"}
        assert http.get("/health/ready", headers=sent).status_code == 503
        assert metric(http, "lacuna_store_up") == 0
        assert metric(http, "lacuna_degraded", learner="default") == 1
        assert metric(http, "lacuna_buffered_decisions", learner="default") == 1
        assert metric(http, "lacuna_store_errors_total", learner="default") >= 1
        assert http.get("/health/live").status_code == 200
    lines = [json.loads(line) for line in guarded.logged]
    assert {"time", "level", "logger", "message"} <= set(lines[0])
    assert any(line.get("request_id") == "find-me" for line in lines)
    text = "".join(guarded.logged + guarded.said)
    assert "first-secret" not in text
    assert "second-secret" not in text
    assert any("POST /select 200" in line["message"] for line in lines)
