import math

import pytest

DEFAULTS = {
    "features": None,
    "policy": "clbbf",
    "preset": "practical",
    "missingness": "per_feature",
    "horizon": None,
    "constants": {"c2": 1, "c4": 1, "c5": 1, "c6": 1},
    "ridge": None,
    "width": None,
    "alpha": 0.5,
    "active_set": None,
    "epsilon": 0.0,
    "reward_wait_s": None,
    "default_reward": None,
    "decision_ttl_s": 86400,
    "history_limit": 131072,
}


def play(http, learner, rounds, first=0, d=3):
    """Some rounds that no chance decides after the first."""
    told = []
    for number in range(first, first + rounds):
        row = [math.sin(number + j) if (number + j) % 4 else None for j in range(d)]
        other = [math.cos(number * j) for j in range(d)]
        body = {"learner": learner, "event_id": f"e{number}"}
        body["arms"] = [{"features": row}, {"features": other}]
        answer = http.post("/select", json=body)
        assert answer.status_code == 200, answer.text
        told.append(answer.json())
        reward = {"learner": learner, "event_id": f"e{number}", "reward": number % 3}
        assert http.post("/reward", json=reward).status_code == 200
    return told


def test_a_put_creates_with_201_and_reconfigures_with_200(http, learner):
    made = http.put(f"/learners/{learner}", json={"dimension": 5})
    assert made.status_code == 201
    seed = made.json()["seed"]
    assert made.json() == {"name": learner, "dimension": 5, **DEFAULTS, "seed": seed}
    changed = http.put(f"/learners/{learner}", json={"dimension": 5, "epsilon": 0.25})
    assert changed.status_code == 200
    assert changed.json() == {**made.json(), "epsilon": 0.25}


def test_every_setting_is_taken_as_given(http, learner):
    given = {
        "dimension": 2,
        "features": ["a", "b"],
        "policy": "thompson",
        "preset": "paper",
        "missingness": "uniform",
        "horizon": 1000,
        "ridge": 2.0,
        "width": 0.5,
        "alpha": 0.25,
        "constants": {"c2": 0.5, "c4": 1, "c5": 0, "c6": 2.0},
        "active_set": 3.0,
        "epsilon": 0.1,
        "seed": 7,
        "reward_wait_s": 60,
        "default_reward": 0.0,
        "decision_ttl_s": 3600,
        "history_limit": 100,
    }
    assert http.put(f"/learners/{learner}", json=given).status_code == 201
    seen = http.get(f"/learners/{learner}").json()
    assert {name: seen[name] for name in given} == given


@pytest.mark.parametrize("policy", ["clbbf", "e-clbbf", "oful", "thompson", "random"])
@pytest.mark.parametrize("preset", ["practical", "paper"])
def test_every_policy_and_preset_serves(http, learner, policy, preset):
    given = {"dimension": 3, "policy": policy, "preset": preset, "horizon": 100}
    assert http.put(f"/learners/{learner}", json=given).status_code == 201
    assert [one["round"] for one in play(http, learner, 4)] == [1, 2, 3, 4]


def test_names_alone_give_the_dimension(http, learner):
    made = http.put(f"/learners/{learner}", json={"features": ["age", "price"]})
    assert made.json()["dimension"] == 2


def test_dimension_and_features_are_fixed_once_there_is_data(http, learner):
    http.put(f"/learners/{learner}", json={"dimension": 2})
    assert http.put(f"/learners/{learner}", json={"dimension": 3}).status_code == 200
    play(http, learner, 1)
    for other in ({"dimension": 4}, {"features": ["a", "b", "c"]}):
        refused = http.put(f"/learners/{learner}", json=other)
        assert refused.status_code == 409
        assert refused.headers["content-type"] == "application/problem+json"
    assert http.put(f"/learners/{learner}", json={"dimension": 3, "width": 1}).status_code == 200
    assert http.get(f"/learners/{learner}").json()["rounds"] == 1


def test_a_select_right_after_a_change_of_shape_is_served_by_every_worker(http, learner):
    http.put(f"/learners/{learner}", json={"dimension": 2})
    for _ in range(6):
        http.get(f"/learners/{learner}")  # every worker holds it now
    http.put(f"/learners/{learner}", json={"dimension": 3})
    play(http, learner, 6)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "dimension"),
        ({"dimension": 0}, "dimension"),
        ({"dimension": 1_025}, "dimension"),
        ({"dimension": "3"}, "dimension"),
        ({"dimension": True}, "dimension"),
        ({"dimension": 2, "features": ["a"]}, "dimension"),
        ({"features": []}, "features"),
        ({"features": ["a", "a"]}, "features"),
        ({"features": ["a", 1]}, "features[1]"),
        ({"dimension": 3, "policy": "best"}, "policy"),
        ({"dimension": 3, "preset": None}, "preset"),
        ({"dimension": 3, "epsilon": 1.5}, "epsilon"),
        ({"dimension": 3, "epsilon": True}, "epsilon"),
        ({"dimension": 3, "ridge": -1}, "ridge"),
        ({"dimension": 3, "seed": -1}, "seed"),
        ({"dimension": 3, "horizon": 0.5}, "horizon"),
        ({"dimension": 3, "constants": {"c9": 1}}, "constants.c9"),
        ({"dimension": 3, "constants": {"c2": -1}}, "constants.c2"),
        ({"dimension": 3, "reward_wait_s": 5}, "default_reward"),
        ({"dimension": 3, "default_reward": 5}, "reward_wait_s"),
        (
            {"dimension": 3, "reward_wait_s": 60, "default_reward": 0, "decision_ttl_s": 30},
            "decision_ttl_s",
        ),
        ({"dimension": 3, "colour": "red"}, "colour"),
        ([], "body"),
    ],
)
def test_a_bad_configuration_is_refused_with_its_field(http, learner, body, field):
    answer = http.put(f"/learners/{learner}", json=body)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert field in [one["loc"] for one in answer.json()["errors"]]
    assert http.get(f"/learners/{learner}").status_code == 404


@pytest.mark.parametrize(
    "text", [b"", b"{", b'{"dimension": NaN}', b'{"dimension": 3, "ridge": Infinity}', b"\xff"]
)
def test_a_configuration_that_is_no_json_is_refused(http, learner, text):
    headers = {"content-type": "application/json"}
    answer = http.put(f"/learners/{learner}", content=text, headers=headers)
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"]


@pytest.mark.parametrize("name", ["Upper", "-dash", "a" * 64, "a.b", "ä", "_x", "a%20b"])
def test_a_bad_name_is_refused(http, name):
    for answer in (
        http.put(f"/learners/{name}", json={"dimension": 2}),
        http.get(f"/learners/{name}"),
        http.post(f"/learners/{name}/reset"),
        http.delete(f"/learners/{name}"),
    ):
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["loc"] == "name"


def test_all_learners_are_listed(http, learner):
    http.put(f"/learners/{learner}", json={"dimension": 2})
    listed = http.get("/learners").json()["learners"]
    assert {"name": learner} in listed
    assert listed == sorted(listed, key=lambda one: one["name"])


def test_statistics_count_what_happened(http, learner):
    play(http, learner, 6)
    http.post("/select", json={"learner": learner, "arms": [{"features": [1, None, None]}]})
    seen = http.get(f"/learners/{learner}").json()
    assert (seen["rounds"], seen["rewards"], seen["pending"]) == (7, 6, 1)
    assert seen["arms"] == 13
    assert seen["mean_reward"] == pytest.approx(sum(n % 3 for n in range(6)) / 6)
    assert len(seen["observed_rate"]) == 3
    assert seen["p_hat"] == pytest.approx(sum(seen["observed_rate"]) / 3)
    assert seen["bytes_held"] > 0


def test_the_model_shows_estimate_regression_and_counts(http, learner):
    play(http, learner, 5)
    model = http.get(f"/learners/{learner}/model").json()
    assert len(model["nu"]) == 3
    assert [len(row) for row in model["sigma"]] == [3] * 3
    assert len(model["theta"]) == 4
    assert [len(row) for row in model["gram"]] == [4] * 4
    assert model["counts"]["rounds"] == 5
    assert model["counts"]["rewards"] == 5


def test_decisions_are_listed_newest_first_with_their_reward(http, learner):
    play(http, learner, 5)
    http.post(
        "/select", json={"learner": learner, "event_id": "open", "arms": [{"features": [1, 2, 3]}]}
    )
    listed = http.get(f"/learners/{learner}/decisions").json()["decisions"]
    assert [one["event_id"] for one in listed] == ["open", "e4", "e3", "e2", "e1", "e0"]
    assert [one["reward"] for one in listed] == [None, 1.0, 0.0, 2.0, 1.0, 0.0]
    assert [one["round"] for one in listed] == [6, 5, 4, 3, 2, 1]
    assert {"arm", "probability"} <= set(listed[0])
    short = http.get(f"/learners/{learner}/decisions", params={"limit": 2}).json()["decisions"]
    assert [one["event_id"] for one in short] == ["open", "e4"]
    for limit in ("0", "x"):
        refused = http.get(f"/learners/{learner}/decisions", params={"limit": limit})
        assert refused.status_code == 422
        assert refused.json()["errors"][0]["loc"] == "limit"


def test_an_import_decides_exactly_as_the_original_did(steady, learner):
    copy = f"{learner}-copy"
    play(steady, learner, 9)
    exported = steady.get(f"/learners/{learner}/export")
    assert exported.status_code == 200
    assert exported.headers["content-type"] == "application/octet-stream"
    imported = steady.put(f"/learners/{copy}/import", content=exported.content)
    assert imported.status_code == 200, imported.text
    assert imported.json()["name"] == copy
    assert steady.get(f"/learners/{copy}").json()["rounds"] == 9
    went_on, copied = play(steady, learner, 12, 9), play(steady, copy, 12, 9)
    assert [{**one, "learner": copy} for one in went_on] == copied
    models = [steady.get(f"/learners/{name}/model").json() for name in (learner, copy)]
    assert models[0] == models[1]


@pytest.mark.parametrize("blob", [b"", b"nonsense", b"\0" * 100])
def test_a_bad_import_is_refused_and_changes_nothing(http, learner, blob):
    play(http, learner, 2)
    answer = http.put(f"/learners/{learner}/import", content=blob)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["loc"] == "body"
    assert http.get(f"/learners/{learner}").json()["rounds"] == 2


def test_a_reset_forgets_what_was_learnt_and_keeps_the_configuration(http, learner):
    http.put(f"/learners/{learner}", json={"dimension": 3, "seed": 11})
    play(http, learner, 3)
    assert http.post(f"/learners/{learner}/reset").status_code == 204
    seen = http.get(f"/learners/{learner}").json()
    assert (seen["rounds"], seen["rewards"], seen["pending"], seen["seed"]) == (0, 0, 0, 11)
    gone = http.post("/reward", json={"learner": learner, "event_id": "e1", "reward": 1})
    assert gone.status_code == 404
    assert play(http, learner, 1)[0]["round"] == 1


def test_a_deleted_learner_is_gone_for_every_worker(http, learner):
    play(http, learner, 4)
    assert http.delete(f"/learners/{learner}").status_code == 204
    for _ in range(6):
        for path in ("", "/model", "/decisions", "/export"):
            assert http.get(f"/learners/{learner}{path}").status_code == 404
    assert http.delete(f"/learners/{learner}").status_code == 404
    assert http.post(f"/learners/{learner}/reset").status_code == 404
    assert {"name": learner} not in http.get("/learners").json()["learners"]
