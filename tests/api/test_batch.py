def arms(*rows):
    return [{"features": list(row)} for row in rows]


def test_selects_in_a_batch_are_answered_in_order(http, learner):
    requests = [
        {"learner": learner, "event_id": f"e{number}", "arms": arms([1.0, None], [0.5, 0.2])}
        for number in range(40)
    ]
    answer = http.post("/select/batch", json={"requests": requests})
    assert answer.status_code == 200
    results = answer.json()["results"]
    assert [one["event_id"] for one in results] == [f"e{number}" for number in range(40)]
    assert sorted(one["round"] for one in results) == list(range(1, 41))


def test_a_bad_select_gets_its_own_error_and_fails_no_other(http, learner):
    requests = [
        {"learner": learner, "arms": arms([1.0, 2.0])},
        {"learner": learner, "arms": []},
        {"learner": learner, "arms": arms([1.0])},
        "no object",
        {"learner": "NO NAME", "arms": arms([1.0, 2.0])},
        {"learner": learner, "arms": arms([1.0, 2.0]), "explain": True},
    ]
    results = http.post("/select/batch", json={"requests": requests}).json()["results"]
    assert [next(iter(one)) for one in results] == ["event_id", *["error"] * 4, "event_id"]
    fields = [one["error"]["errors"][0]["loc"] for one in results[1:5]]
    assert fields == ["arms", "arms[0].features", "body", "learner"]
    assert {one["error"]["status"] for one in results[1:5]} == {422}
    assert len(results[5]["arms"]) == 1


def test_rewards_in_a_batch_have_results_of_their_own(http, learner):
    requests = [{"learner": learner, "event_id": f"e{n}", "arms": arms([1.0])} for n in range(3)]
    http.post("/select/batch", json={"requests": requests})
    rewards = [
        {"learner": learner, "event_id": "e0", "reward": 1.0},
        {"learner": learner, "event_id": "e0", "reward": 0.0},
        {"learner": learner, "event_id": "nobody", "reward": 1.0},
        {"learner": learner, "event_id": "e1", "reward": "much"},
        {"learner": learner, "event_id": "e2", "reward": 0.5},
    ]
    answer = http.post("/reward/batch", json={"rewards": rewards})
    assert answer.status_code == 200
    results = answer.json()["results"]
    assert results[0] == {"event_id": "e0", "status": "recorded"}
    assert results[1] == {"event_id": "e0", "status": "duplicate", "reward": 1.0}
    assert results[2]["error"]["status"] == 404
    assert results[3]["error"]["errors"] == [
        {"loc": "reward", "msg": "expected `float`, got `str`"}
    ]
    assert results[4] == {"event_id": "e2", "status": "recorded"}


def test_an_empty_batch_has_empty_results(http):
    assert http.post("/select/batch", json={"requests": []}).json() == {"results": []}
    assert http.post("/reward/batch", json={"rewards": []}).json() == {"results": []}


def test_a_batch_that_is_none_is_refused_as_a_whole(http):
    for path, body, field in [
        ("/select/batch", {"rewards": []}, "rewards"),
        ("/select/batch", {}, "requests"),
        ("/select/batch", [], "body"),
        ("/reward/batch", {"rewards": {}}, "rewards"),
        ("/reward/batch", {"rewards": [{}] * 1_001}, "rewards"),
    ]:
        answer = http.post(path, json=body)
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["loc"] == field
