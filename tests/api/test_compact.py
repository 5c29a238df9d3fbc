import struct

import numpy as np
import pytest

TYPE = "application/vnd.lacuna.f32"


def compact(rows) -> bytes:
    values = np.array(rows, dtype="<f4")
    return struct.pack("<HH", *values.shape) + values.tobytes()


def post(http, body, **query):
    return http.post("/select", content=body, params=query, headers={"content-type": TYPE})


def test_a_compact_body_gets_the_answer_of_the_same_json(http, learner):
    rows = [[0.5, float("nan"), -1.25], [2.0, 0.0, 1.5]]
    answer = post(http, compact(rows), learner=learner, event_id="ä b/1")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    told = answer.json()
    assert told["event_id"] == "ä b/1"
    assert told["learner"] == learner
    assert told["arm"] == str(told["index"])
    arms = [{"features": [None if np.isnan(v) else v for v in row]} for row in rows]
    body = {"learner": learner, "event_id": "ä b/1", "arms": arms}
    assert http.post("/select", json=body).json() == told


def test_learner_and_event_may_be_left_out(http, learner):
    http.put("/learners/default", json={"dimension": 2})
    answer = post(http, compact([[1.0, 2.0]])).json()
    assert answer["learner"] == "default"
    assert answer["event_id"]
    assert post(http, compact([[1.0, 2.0]]), learner=learner).json()["round"] == 1


@pytest.mark.parametrize(
    ("body", "query", "field"),
    [
        (b"", {}, "body"),
        (b"\x01\x00", {}, "body"),
        (compact([[1.0, 2.0]])[:-1], {}, "body"),
        (compact([[1.0, 2.0]]) + b"\0", {}, "body"),
        (struct.pack("<HH", 0, 3), {}, "arms"),
        (struct.pack("<HH", 3, 0), {}, "arms[0].features"),
        (compact(np.zeros((1_001, 1))), {}, "arms"),
        (compact(np.zeros((1, 1_025))), {}, "arms[0].features"),
        (compact([[1.0, float("inf")]]), {}, "arms[0].features[1]"),
        (compact([[0.0], [-float("inf")]]), {}, "arms[1].features[0]"),
        (compact([[1.0]]), {"event_id": ""}, "event_id"),
        (compact([[1.0]]), {"event_id": "e" * 129}, "event_id"),
        (compact([[1.0]]), {"learner": "No Name"}, "learner"),
    ],
)
def test_a_bad_compact_body_is_refused_with_its_field(http, learner, body, query, field):
    answer = post(http, body, **{"learner": learner, **query})
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["loc"] == field
    assert http.get(f"/learners/{learner}").status_code == 404


def test_a_query_that_is_not_utf8_is_refused(http):
    answer = http.post(
        "/select?event_id=%ff", content=compact([[1.0]]), headers={"content-type": TYPE}
    )
    assert answer.status_code == 422
