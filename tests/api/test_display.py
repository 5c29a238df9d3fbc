"""What the page shows, as the calls behind it tell it."""

from urllib.parse import quote

import numpy as np
import pytest

ARMS = [
    {"id": "a", "features": [0.2, None, 1.3]},
    {"id": "b", "features": [0.1, 0.7, None]},
    {"id": "c", "features": [None, None, None]},
]


def play(http, learner, rounds, **options):
    for n in range(rounds):
        body = {"learner": learner, "arms": ARMS, "event_id": f"e{n}", **options}
        assert http.post("/select", json=body).status_code == 200
        reward = {"learner": learner, "event_id": f"e{n}", "reward": n % 2}
        assert http.post("/reward", json=reward).status_code == 200


@pytest.mark.parametrize("event_id", ["imp-1", "a/b", "a?b#c%2F d", "é\u2603", "..", "x" * 128])
def test_an_explained_decision_is_what_the_select_was_told(http, learner, event_id):
    play(http, learner, 4)
    body = {"learner": learner, "arms": ARMS, "event_id": event_id, "explain": True}
    told = http.post("/select", json=body).json()
    # Whichever worker made it has written it down by the time it is idle again.
    address = f"/learners/{learner}/decisions/{quote(event_id, safe='')}".replace("..", "%2E%2E")
    for _ in range(50):
        found = http.get(address).json()
        if found["arms"] is not None:
            break
    assert found["arms"] == told["arms"]
    same = ("event_id", "arm", "index", "round", "probability", "model_version", "degraded")
    assert {name: found["decision"][name] for name in same} == {name: told[name] for name in same}
    assert (found["decision"]["status"], found["decision"]["reward"]) == ("pending", None)
    assert found["decision"]["explained"] is True


def test_decisions_can_be_asked_for_that_are_explained(steady, learner):
    play(steady, learner, 3)
    listed = steady.get(f"/learners/{learner}/decisions?explained=true").json()["decisions"]
    assert [row["event_id"] for row in listed] == ["e2", "e1", "e0"]
    assert all(row["explained"] and row["status"] == "rewarded" for row in listed)
    one = steady.get(f"/learners/{learner}/decisions?explained=true&limit=1").json()
    assert len(one["decisions"]) == 1


def test_an_event_without_a_decision_is_unknown(steady, learner):
    play(steady, learner, 1)
    unknown = steady.get(f"/learners/{learner}/decisions/nobody")
    assert unknown.status_code == 404
    assert unknown.json()["type"] == "urn:lacuna:problem:unknown-event"
    assert steady.get("/learners/no-such/decisions/e0").status_code == 404
    assert steady.get(f"/learners/{learner}/decisions/{'x' * 129}").status_code == 422


def test_the_timeline_tells_what_just_happened(steady, learner):
    play(steady, learner, 10)
    timeline = steady.get(f"/learners/{learner}/timeline").json()
    assert timeline["interval_s"] == 5.0
    points = timeline["points"]
    assert sum(point["selects"] for point in points) == 10
    assert sum(point["rewards"] for point in points) == 10
    for point in points:
        assert point["sum"] == point["sum_squares"]  # of rewards that are 0 or 1


def test_the_model_says_how_sure_it_is_and_can_leave_the_matrices_out(steady, learner):
    play(steady, learner, 20)
    model = steady.get(f"/learners/{learner}/model").json()
    widths = np.sqrt(np.diagonal(np.linalg.inv(np.array(model["gram"]))))
    np.testing.assert_allclose(model["uncertainty"], widths, rtol=1e-9)
    short = steady.get(f"/learners/{learner}/model?matrices=false").json()
    assert short["sigma"] is None
    assert short["gram"] is None
    assert short["theta"] == model["theta"]
    assert short["uncertainty"] == model["uncertainty"]
