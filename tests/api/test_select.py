import pytest

ARMS = [
    {"id": "ad-17", "features": [0.2, None, 1.3]},
    {"id": "ad-4", "features": [0.1, 0.7, 0.0], "mask": [1, 0, 1]},
]


def select(http, learner, **body):
    answer = http.post("/select", json={"learner": learner, "arms": ARMS, **body})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_an_arm_is_chosen_and_the_answer_has_every_field(http, learner):
    answer = select(http, learner, event_id="imp-8f2c", explain=False)
    assert list(answer) == [
        *("event_id", "learner", "arm", "index", "round", "probability", "model_version"),
        "degraded",
    ]
    assert answer["event_id"] == "imp-8f2c"
    assert answer["learner"] == learner
    assert answer["arm"] == ARMS[answer["index"]]["id"]
    assert answer["round"] == 1
    assert answer["probability"] == 0.5  # the first round is uniform
    assert answer["model_version"] == 0
    assert answer["degraded"] is False


def test_without_a_name_the_learner_is_the_default_one(http):
    http.delete("/learners/default")  # others may have given it another dimension
    answer = http.post("/select", json={"arms": [{"features": [1.0, 2.0]}]})
    assert answer.json()["learner"] == "default"


def test_a_learner_is_made_on_first_use_with_the_dimension_of_the_request(http, learner):
    assert http.get(f"/learners/{learner}").status_code == 404
    select(http, learner)
    assert http.get(f"/learners/{learner}").json()["dimension"] == 3


def test_the_server_makes_an_event_id_where_none_is_given(http, learner):
    first, second = select(http, learner), select(http, learner)
    assert first["event_id"] != second["event_id"]
    assert 1 <= len(first["event_id"]) <= 128


def test_the_same_event_gets_the_same_answer_and_counts_once(http, learner):
    answers = [select(http, learner, event_id="same") for _ in range(6)]
    assert all(answer == answers[0] for answer in answers)
    seen = http.get(f"/learners/{learner}").json()
    assert (seen["rounds"], seen["arms"]) == (1, 2)


def test_rounds_count_selects_across_workers(http, learner):
    rounds = [select(http, learner)["round"] for _ in range(12)]
    assert sorted(rounds) == list(range(1, 13))


def test_null_and_mask_both_mean_missing_and_the_masked_value_is_ignored(http, learner):
    arms = [
        {"id": "null", "features": [0.2, None, 1.3]},
        {"id": "masked", "features": [0.2, 1e308, 1.3], "mask": [1, 0, 1]},
        {"id": "both", "features": [0.2, None, 1.3], "mask": [1, 1, 1]},
    ]
    explained = select(http, learner, arms=arms, explain=True)["arms"]
    assert [arm["observed"] for arm in explained] == [[1, 0, 1]] * 3
    assert len({tuple(arm["features"]) for arm in explained}) == 1


def test_all_features_may_be_missing(http, learner):
    answer = select(http, learner, arms=[{"features": [None, None]}, {"features": [None, None]}])
    assert answer["index"] in (0, 1)


def test_an_arm_without_an_id_goes_by_its_position(http, learner):
    arms = [{"features": [1.0]}, {"id": "named", "features": [1.0]}, {"features": [1.0]}]
    explained = select(http, learner, arms=arms, explain=True)
    assert [arm["id"] for arm in explained["arms"]] == ["0", "named", "2"]


def test_explain_says_what_each_arm_was_worth(http, learner):
    for _ in range(3):
        event = select(http, learner)["event_id"]
        http.post("/reward", json={"learner": learner, "event_id": event, "reward": 1.0})
    answer = select(http, learner, explain=True)
    assert [list(arm) for arm in answer["arms"]] == [
        ["id", "score", "mean", "bonus", "observed", "features"]
    ] * 2
    for sent, arm in zip(ARMS, answer["arms"], strict=True):
        assert arm["id"] == sent["id"]
        assert arm["score"] == pytest.approx(arm["mean"] + arm["bonus"])
        kept = zip(sent["features"], arm["observed"], arm["features"], strict=True)
        assert all(value == given for given, seen, value in kept if seen)
    best = max(range(2), key=lambda index: answer["arms"][index]["score"])
    assert answer["index"] == best


def test_a_repeated_event_can_be_explained_too(http, learner):
    first = select(http, learner, event_id="e", explain=True)
    again = select(http, learner, event_id="e", explain=True)
    assert {**first, "arms": None} == {**again, "arms": None}
    assert [arm["id"] for arm in again["arms"]] == ["ad-17", "ad-4"]


def test_a_dry_run_chooses_and_explains_but_counts_and_stores_nothing(http, learner):
    select(http, learner)
    before = http.get(f"/learners/{learner}").json()
    answer = select(http, learner, dry_run=True, event_id="dry")
    assert answer["event_id"] is None
    assert answer["round"] == 2
    assert len(answer["arms"]) == 2
    after = http.get(f"/learners/{learner}").json()
    for name in ("rounds", "arms", "pending"):
        assert after[name] == before[name]
    assert len(http.get(f"/learners/{learner}/decisions").json()["decisions"]) == 1
    unknown = http.post("/reward", json={"learner": learner, "event_id": "dry", "reward": 1})
    assert unknown.status_code == 404


def test_a_dry_run_makes_no_learner(http, learner):
    assert select(http, learner, dry_run=True)["round"] == 1
    assert http.get(f"/learners/{learner}").status_code == 404


def test_features_may_go_by_name_where_the_learner_has_names(http, learner):
    http.put(f"/learners/{learner}", json={"features": ["age", "price", "hour"]})
    arms = [
        {"features": {"age": 0.3}},
        {"features": {"hour": None, "price": 2.0, "age": 1.0}},
        {"features": [0.1, None, 0.2]},
        {"features": {}},
    ]
    explained = select(http, learner, arms=arms, explain=True)["arms"]
    assert [arm["observed"] for arm in explained] == [
        [1, 0, 0],
        [1, 1, 0],
        [1, 0, 1],
        [0, 0, 0],
    ]
    assert explained[1]["features"][:2] == [1.0, 2.0]


def test_a_mask_fits_named_features_in_their_order(http, learner):
    http.put(f"/learners/{learner}", json={"features": ["a", "b"]})
    arms = [{"features": {"a": 1.0, "b": 2.0}, "mask": [0, 1]}]
    [arm] = select(http, learner, arms=arms, explain=True)["arms"]
    assert arm["observed"] == [0, 1]


def test_probability_says_what_epsilon_did(http, learner):
    http.put(f"/learners/{learner}", json={"dimension": 3, "epsilon": 0.5})
    probabilities = {select(http, learner)["probability"] for _ in range(30)}
    assert probabilities <= {0.5, 0.25, 0.75}  # two arms: ε/2, or 1 − ε/2
    assert 0.75 in probabilities
