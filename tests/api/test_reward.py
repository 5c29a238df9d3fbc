import time

ARMS = [{"id": "a", "features": [0.5, None]}, {"id": "b", "features": [0.1, 0.3]}]


def choose(http, learner, event_id):
    body = {"learner": learner, "event_id": event_id, "arms": ARMS}
    assert http.post("/select", json=body).status_code == 200


def reward(http, learner, event_id, value):
    body = {"learner": learner, "event_id": event_id, "reward": value}
    return http.post("/reward", json=body)


def test_a_reward_is_recorded_and_learnt_from(http, learner):
    choose(http, learner, "e1")
    answer = reward(http, learner, "e1", 1.0)
    assert answer.status_code == 200
    assert answer.json() == {"event_id": "e1", "status": "recorded"}
    seen = http.get(f"/learners/{learner}").json()
    assert (seen["rewards"], seen["pending"], seen["mean_reward"]) == (1, 0, 1.0)


def test_a_second_reward_is_a_duplicate_and_the_first_stands(http, learner):
    choose(http, learner, "e1")
    reward(http, learner, "e1", 1)
    for value in (0.0, 1.0, 7):
        answer = reward(http, learner, "e1", value).json()
        assert answer == {"event_id": "e1", "status": "duplicate", "reward": 1.0}
    assert http.get(f"/learners/{learner}").json()["rewards"] == 1


def test_a_reward_after_its_default_is_late_and_not_counted(http, learner):
    http.put(
        f"/learners/{learner}",
        json={"dimension": 2, "reward_wait_s": 0.05, "default_reward": 0.0},
    )
    choose(http, learner, "e1")
    deadline = time.monotonic() + 10.0
    while http.get(f"/learners/{learner}").json()["defaults"] == 0:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    answer = reward(http, learner, "e1", 1.0)
    assert answer.status_code == 200
    assert answer.json()["status"] == "late"
    seen = http.get(f"/learners/{learner}").json()
    assert (seen["rewards"], seen["mean_reward"], seen["late"]) == (1, 0.0, 1)


def test_an_unknown_event_is_a_404(http, learner):
    choose(http, learner, "known")
    answer = reward(http, learner, "unknown", 1.0)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["title"] == "Unknown event"


def test_a_reward_for_an_unknown_learner_is_a_404_and_makes_none(http, learner):
    assert reward(http, learner, "e", 1.0).status_code == 404
    assert http.get(f"/learners/{learner}").status_code == 404


def test_events_of_different_learners_do_not_meet(http, learner):
    other = f"{learner}-other"
    choose(http, learner, "e")
    choose(http, other, "e")
    assert reward(http, learner, "e", 1.0).json()["status"] == "recorded"
    assert reward(http, other, "e", 1.0).json()["status"] == "recorded"


def test_every_worker_learns_from_every_reward(http, learner):
    for number in range(8):
        choose(http, learner, f"e{number}")
        reward(http, learner, f"e{number}", 1.0)
    body = {"learner": learner, "arms": ARMS, "dry_run": True}
    deadline = time.monotonic() + 10.0
    while True:
        versions = {http.post("/select", json=body).json()["model_version"] for _ in range(16)}
        if versions == {8}:
            return
        assert time.monotonic() < deadline, versions
