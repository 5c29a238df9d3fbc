"""Small promises that are easily broken."""

from __future__ import annotations

import struct

import httpx

from tests.api.running import Service, service

COMPACT = "application/vnd.lacuna.f32"


def compact_body(*rows: tuple[float, ...]) -> bytes:
    flat = [value for row in rows for value in row]
    return struct.pack(f"<HH{len(flat)}f", len(rows), len(rows[0]), *flat)


def test_the_paper_preset_says_that_its_missingness_is_uniform(http: httpx.Client):
    made = http.put("/learners/audit-paper", json={"dimension": 3, "preset": "paper"})
    assert made.json()["missingness"] == "uniform"


def test_a_learner_without_data_has_no_rate_of_observation(http: httpx.Client):
    http.put("/learners/audit-empty", json={"dimension": 2})
    assert http.get("/learners/audit-empty").json()["p_hat"] is None


def test_more_decisions_than_are_kept_may_be_asked_for(http: httpx.Client):
    http.put("/learners/audit-few", json={"dimension": 2})
    answer = http.get("/learners/audit-few/decisions", params={"limit": 1_000_000})
    assert answer.status_code == 200


def test_head_is_get_without_its_body(running: Service, http: httpx.Client):
    for path in ("/health/live", "/health/ready", "/metrics", "/", "/learners"):
        answer = http.head(path)
        assert answer.status_code == 200, path
        assert answer.content == b""
    assert "Traceback" not in "".join(running.logged)


def test_a_compact_select_takes_the_flags_of_a_long_one_and_no_others(http: httpx.Client):
    body = compact_body((1.0, 2.0), (float("nan"), 0.5))

    def select(query: str, content_type: str = COMPACT) -> httpx.Response:
        headers = {"Content-Type": content_type}
        return http.post(f"/select?learner=audit-compact{query}", content=body, headers=headers)

    assert len(select("&explain=true").json()["arms"]) == 2
    dry = select("&dry_run=true").json()
    assert dry["event_id"] is None
    assert http.get("/learners/audit-compact").json()["rounds"] == 1
    for query, field in (("&bogus=1", "bogus"), ("&dry_run=perhaps", "dry_run")):
        refused = select(query)
        assert refused.status_code == 422
        assert refused.json()["errors"][0]["loc"] == field
    assert select("", "Application/VND.lacuna.F32; version=1").status_code == 200


def test_either_key_header_opens_and_none_opens_nothing(tmp_path):
    with (
        service("--data-dir", str(tmp_path), LACUNA_API_KEYS="one,two") as run,
        httpx.Client(base_url=run.url) as http,
    ):
        body = {"arms": [{"features": [1.0]}]}
        wrong = {"Authorization": "Bearer nope"}
        right = {"X-API-Key": "two"}
        assert http.post("/select", json=body, headers=wrong).status_code == 401
        assert http.post("/select", json=body, headers={**wrong, **right}).status_code == 200
        assert http.get("/select").status_code == 401
        assert http.get("/select", headers=right).status_code == 405
