import json
import socket

import httpx
import pytest

JSON = {"content-type": "application/json"}
LIMIT = 4 << 20


def arms(*rows, **more):
    return {"arms": [{"features": list(row)} for row in rows], **more}


BAD_SELECTS = [
    ({}, "arms"),
    ({"arms": []}, "arms"),
    ({"arms": {}}, "arms"),
    ({"arms": None}, "arms"),
    ({"arms": [[1.0]]}, "arms[0]"),
    ({"arms": [{}]}, "arms[0].features"),
    ({"arms": [{"features": None}]}, "arms[0].features"),
    ({"arms": [{"features": []}]}, "arms[0].features"),
    ({"arms": [{"features": 1.0}]}, "arms[0].features"),
    (arms([1.0, "2"]), "arms[0].features[1]"),
    (arms([1.0, True]), "arms[0].features[1]"),
    (arms([1.0, [2.0]]), "arms[0].features[1]"),
    (arms([1.0], [1.0, 2.0]), "arms[1].features"),
    (arms([1.0, 2.0], [1.0]), "arms[1].features"),
    (arms([0.0], [1e308]), "arms[1].features[0]"),
    (arms([0.0], [-1e308]), "arms[1].features[0]"),
    (arms([10**400]), "arms[0].features[0]"),
    (arms(*[[1.0]] * 1_001), "arms"),
    (arms([0.0] * 1_025), "arms[0].features"),
    ({"arms": [{"features": [1.0, 2.0], "mask": [1]}]}, "arms[0].mask"),
    ({"arms": [{"features": [1.0, 2.0], "mask": [1, 0, 1]}]}, "arms[0].mask"),
    ({"arms": [{"features": [1.0, 2.0], "mask": [1, 2]}]}, "arms[0].mask[1]"),
    ({"arms": [{"features": [1.0, 2.0], "mask": [1, True]}]}, "arms[0].mask[1]"),
    ({"arms": [{"features": [1.0, 2.0], "mask": [1, None]}]}, "arms[0].mask[1]"),
    ({"arms": [{"id": "", "features": [1.0]}]}, "arms[0].id"),
    ({"arms": [{"id": "x" * 129, "features": [1.0]}]}, "arms[0].id"),
    ({"arms": [{"id": 7, "features": [1.0]}]}, "arms[0].id"),
    (
        {"arms": [{"id": "x", "features": [1.0]}, {"id": "x", "features": [2.0]}]},
        "arms[1].id",
    ),
    ({"arms": [{"features": [1.0]}, {"id": "0", "features": [2.0]}]}, "arms[1].id"),
    ({"arms": [{"features": [1.0], "feature": 1}]}, "arms[0].feature"),
    (arms([1.0], event_id=""), "event_id"),
    (arms([1.0], event_id="e" * 129), "event_id"),
    (arms([1.0], event_id=5), "event_id"),
    (arms([1.0], explain=1), "explain"),
    (arms([1.0], dry_run="yes"), "dry_run"),
    (arms([1.0], surprise=1), "surprise"),
    (arms([1.0], learner="Upper"), "learner"),
    (arms([1.0], learner=""), "learner"),
    (arms([1.0], learner="a" * 64), "learner"),
    (arms([1.0], learner=None), "learner"),
]


def problem(answer: httpx.Response, status: int) -> dict:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["x-request-id"]
    body = answer.json()
    assert body["status"] == status
    assert {"type", "title", "detail"} <= set(body)
    return body


@pytest.mark.parametrize(("body", "field"), BAD_SELECTS, ids=[str(n) for n in range(40)])
def test_a_bad_select_is_refused_with_its_field_and_changes_nothing(http, learner, body, field):
    answer = http.post("/select", content=json.dumps({"learner": learner, **body}), headers=JSON)
    refused = problem(answer, 422)
    assert refused["errors"][0]["loc"] == field
    assert refused["errors"][0]["msg"]
    assert http.get(f"/learners/{learner}").status_code == 404


def test_a_select_that_does_not_fit_the_learner_is_refused(http, learner):
    http.put(f"/learners/{learner}", json={"dimension": 2})
    refused = problem(http.post("/select", json=arms([1.0], learner=learner)), 422)
    assert refused["errors"][0]["loc"] == "arms[0].features"
    by_name = {"learner": learner, "arms": [{"features": {"age": 1.0}}]}
    refused = problem(http.post("/select", json=by_name), 422)
    assert refused["errors"][0]["loc"] == "arms[0].features"
    assert http.get(f"/learners/{learner}").json()["rounds"] == 0


def test_an_unknown_feature_name_is_refused(http, learner):
    http.put(f"/learners/{learner}", json={"features": ["age"]})
    body = {"learner": learner, "arms": [{"features": {"age": 1}}, {"features": {"size": 1}}]}
    refused = problem(http.post("/select", json=body), 422)
    assert refused["errors"][0]["loc"] == "arms[1].features.size"


def test_names_do_not_make_a_learner(http, learner):
    body = {"learner": learner, "arms": [{"features": {"age": 1.0}}]}
    problem(http.post("/select", json=body), 404)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "event_id"),
        ({"event_id": "e"}, "reward"),
        ({"event_id": "e", "reward": None}, "reward"),
        ({"event_id": "e", "reward": "1"}, "reward"),
        ({"event_id": "e", "reward": True}, "reward"),
        ({"event_id": "e", "reward": [1]}, "reward"),
        ({"event_id": "e", "reward": 1e308}, "reward"),
        ({"event_id": "", "reward": 1}, "event_id"),
        ({"event_id": "e" * 129, "reward": 1}, "event_id"),
        ({"event_id": "e", "reward": 1, "learner": "no name"}, "learner"),
        ({"event_id": "e", "reward": 1, "value": 2}, "value"),
        ([], "body"),
    ],
)
def test_a_bad_reward_is_refused_with_its_field(http, body, field):
    refused = problem(http.post("/reward", json=body), 422)
    assert refused["errors"][0]["loc"] == field


@pytest.mark.parametrize(
    ("text", "field"),
    [
        (b"", "body"),
        (b"{", "body"),
        (b'{"arms": [{"features": [1.0', "body"),
        (b'{"arms": [{"features": [1.0]}]} more', "body"),
        (b'{"arms": [{"features": [01]}]}', "body"),
        (b'{"arms": [{"features": [1.0, NaN]}]}', "arms[0].features[1]"),
        (b'{"arms": [{"features": [Infinity]}]}', "arms[0].features[0]"),
        (b'{"arms": [{"features": [0]}, {"features": [-Infinity]}]}', "arms[1].features[0]"),
        (b'{"arms": [{"features": [1e999]}]}', "arms[0].features[0]"),
        (b'{"arms": ' + b"[" * 100_000, "arms[0]"),
        (b'{"arms": [{"features": ' + b"[" * 100_000, "arms[0].features[0]"),
        (b"[" * 100_000, "body"),
        (b'{"x":' * 50_000, "x"),
        (b"\xff\xfe", "body"),
        (b'{"event_id": "\xff", "arms": [{"features": [1]}]}', "body"),
        (b'{"event_id": "\\ud800", "arms": [{"features": [1]}]}', "body"),
    ],
    ids=str,
)
def test_text_that_is_no_json_is_refused(http, text, field):
    refused = problem(http.post("/select", content=text, headers=JSON), 422)
    assert refused["errors"][0]["loc"] == field


def test_a_nan_reward_is_refused(http):
    text = b'{"event_id": "e", "reward": NaN}'
    refused = problem(http.post("/reward", content=text, headers=JSON), 422)
    assert refused["errors"][0]["loc"] == "reward"


@pytest.mark.parametrize("path", ["/select", "/reward", "/select/batch", "/reward/batch"])
def test_another_media_type_is_a_415(http, path):
    for media_type in ("text/plain", "application/x-www-form-urlencoded", "application/xml"):
        refused = problem(http.post(path, content=b"{}", headers={"content-type": media_type}), 415)
        assert refused["errors"][0]["loc"] == "content-type"


def test_a_configuration_of_another_media_type_is_a_415(http, learner):
    headers = {"content-type": "text/plain"}
    problem(http.put(f"/learners/{learner}", content=b"{}", headers=headers), 415)


@pytest.mark.parametrize(
    "media_type", ["application/json; charset=utf-8", "Application/JSON", "application/ld+json", ""]
)
def test_json_may_be_called_so_in_several_ways(http, learner, media_type):
    body = json.dumps(arms([1.0], learner=learner))
    headers = {"content-type": media_type} if media_type else {}
    assert http.post("/select", content=body, headers=headers).status_code == 200


def test_learner_and_event_in_the_query_of_a_json_body_are_refused(http):
    for name in ("learner", "event_id"):
        refused = problem(http.post(f"/select?{name}=x", json=arms([1.0])), 422)
        assert refused["errors"][0]["loc"] == name


@pytest.mark.parametrize("path", ["/select", "/select/batch", "/learners/large"])
def test_too_large_a_body_is_a_413(http, path):
    method = "PUT" if path.startswith("/learners") else "POST"
    body = b" " * (LIMIT + 1)
    refused = problem(http.request(method, path, content=body, headers=JSON), 413)
    assert refused["errors"][0]["loc"] == "body"

    def chunks():
        for _ in range(5):
            yield b" " * (1 << 20)

    problem(http.request(method, path, content=chunks(), headers=JSON), 413)


def test_a_body_at_the_limit_is_read(http, learner):
    body = json.dumps(arms([1.0], learner=learner)).encode()
    padded = body + b" " * (LIMIT - len(body))
    assert http.post("/select", content=padded, headers=JSON).status_code == 200


def test_whoever_asks_first_is_told_before_sending_too_much(running):
    host, port = running.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10.0) as raw:
        raw.sendall(
            b"POST /select HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Content-Length: 99999999\r\nExpect: 100-continue\r\n\r\n"
        )
        assert raw.recv(100).startswith(b"HTTP/1.1 413 ")


def test_an_unknown_path_is_a_404(http):
    for path in ("/nothing", "/select/", "/learners/x/y", "/health"):
        problem(http.get(path), 404)


def test_another_method_is_a_405_that_names_the_right_one(http):
    for method, path, allowed in [
        ("GET", "/select", "POST"),
        ("DELETE", "/reward", "POST"),
        ("PUT", "/select/batch", "POST"),
        ("POST", "/metrics", "GET"),
        ("PATCH", "/learners/x", "DELETE, GET, PUT"),
        ("POST", "/learners", "GET"),
    ]:
        answer = http.request(method, path)
        problem(answer, 405)
        assert answer.headers["allow"] == allowed


def test_what_is_not_http_gets_a_problem_too(running):
    host, port = running.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10.0) as raw:
        raw.sendall(b"NONSENSE\r\n\r\n")
        answer = raw.recv(10_000)
    assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"application/problem+json" in answer


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_of_another_site_can_change_nothing(http, learner, site):
    http.post("/select", json=arms([1.0, 2.0], learner=learner)).raise_for_status()
    header = {"sec-fetch-site": site}
    for method, path in (
        ("POST", "/select"),
        ("POST", "/reward"),
        ("POST", "/select/batch"),
        ("POST", f"/learners/{learner}/reset"),
        ("PUT", f"/learners/{learner}"),
        ("PUT", f"/learners/{learner}/import"),
        ("DELETE", f"/learners/{learner}"),
    ):
        answer = http.request(method, path, json=arms([1.0, 2.0], learner=learner), headers=header)
        assert answer.status_code == 403, (method, path)
        assert answer.json()["type"] == "urn:lacuna:problem:other-site"
    assert http.get(f"/learners/{learner}", headers=header).json()["rounds"] == 1
    own = {"sec-fetch-site": "same-origin"}
    assert http.post(f"/learners/{learner}/reset", headers=own).status_code == 204


@pytest.mark.parametrize(
    ("path", "name", "body"),
    [
        ("/select", "dry_run", {"arms": [{"features": [1, 2]}]}),
        ("/select", "learner", {"arms": [{"features": [1, 2]}]}),
        ("/reward", "learner", {"event_id": "e", "reward": 1}),
        ("/select/batch", "learner", {"requests": []}),
        ("/reward/batch", "learner", {"rewards": []}),
    ],
)
def test_what_belongs_into_the_body_is_refused_in_the_query(http, path, name, body):
    refused = http.post(path, params={name: "true"}, json=body)
    assert refused.status_code == 422
    assert refused.json()["errors"] == [
        {"loc": name, "msg": "belongs into the body; only a compact one has it in the query"}
    ]


@pytest.mark.parametrize(
    ("value", "said"), [("x", "expected"), (True, "expected"), (1e60, "1e+50")]
)
def test_a_named_feature_that_is_no_number_is_named(http, learner, value, said):
    http.put(f"/learners/{learner}", json={"features": ["age", "price"]})
    arms = [{"features": {"age": 1}}, {"features": {"price": value, "age": 2}}]
    refused = http.post("/select", json={"learner": learner, "arms": arms})
    assert refused.status_code == 422
    [error] = refused.json()["errors"]
    assert error["loc"] == "arms[1].features.price"
    assert said in error["msg"]


@pytest.mark.parametrize(
    "rest",
    [b"", b"}}]", b"}}], " + b'"x": ' + b"[" * 100_000, b'}}], "arms": 1}', b'}}], "arms": []}'],
)
def test_what_is_wrong_after_a_wrong_named_feature_is_no_bug(http, rest):
    text = b'{"arms": [{"features": {"age": "x"' + rest
    refused = http.post("/select", content=text, headers=JSON)
    assert refused.status_code == 422
    assert refused.json()["errors"]
