"""The client against a real service."""

import asyncio

import numpy as np
import pytest

from clients.client import (
    AsyncClient,
    BadRequest,
    Client,
    Conflict,
    NotAllowed,
    NotFound,
    Refused,
    Selected,
)
from tests.client.conftest import KEY

NAN = float("nan")


def test_a_choice_and_its_reward_become_a_decision(client):
    selected = client.select([[0.2, None, 1.3], [0.1, 0.7, 0.0]])
    assert selected.arm == str(selected.index)
    assert (selected.round, selected.learner, selected.degraded) == (1, client.learner, False)
    answer = client.reward(selected.event_id, 1.0)
    assert (answer.status, answer.reward) == ("recorded", 1.0)
    (decision,) = client.decisions()
    assert (decision.event_id, decision.reward) == (selected.event_id, 1.0)
    assert decision.status == "rewarded"


def test_a_second_reward_is_a_duplicate_and_the_first_stands(client):
    selected = client.select([[1.0], [2.0]])
    client.reward(selected.event_id, 0.25)
    again = client.reward(selected.event_id, 9.0)
    assert (again.status, again.reward) == ("duplicate", 0.25)


@pytest.mark.parametrize(
    "arms",
    [
        np.array([[0.2, NAN], [0.1, 0.7]]),
        np.array([[0.2, NAN], [0.1, 0.7]], dtype=np.float32),
        [[0.2, None], [0.1, 0.7]],
        [[0.2, NAN], (0.1, 0.7)],
        [np.array([0.2, NAN]), np.array([0.1, 0.7])],
        {"first": [0.2, None], "second": [0.1, 0.7]},
    ],
)
def test_arms_may_be_arrays_lists_or_a_mapping_of_ids(client, arms):
    shown = client.select(arms, explain=True)
    assert [arm.observed for arm in shown.arms] == [[1, 0], [1, 1]]
    assert shown.arms[1].features == pytest.approx([0.1, 0.7], abs=1e-6)
    if isinstance(arms, dict):
        assert shown.arm in arms


def test_named_features_may_be_left_out(client):
    client.put_learner(client.learner, features=["age", "price"])
    shown = client.select([{"age": 0.3}, {"age": None, "price": 2.0}], explain=True)
    assert [arm.observed for arm in shown.arms] == [[1, 0], [0, 1]]
    with pytest.raises(BadRequest, match="colour"):
        client.select([{"colour": 1.0}])


def test_ids_and_a_mask_are_sent(client):
    shown = client.select(
        np.ones((2, 2)), ids=["ad-1", "ad-2"], mask=[[1, 0], [True, True]], explain=True
    )
    assert [arm.id for arm in shown.arms] == ["ad-1", "ad-2"]
    assert shown.arms[0].observed == [1, 0]


def test_a_large_request_in_the_compact_body_chooses_as_the_same_in_json(url):
    rng = np.random.default_rng(0)
    chosen = {}
    for compact in (True, False):
        name = f"compact-{compact}".lower()
        with Client(url, learner=name, api_key=KEY, compact=compact) as client:
            client.put_learner(name, dimension=32, seed=1)
            chosen[compact] = []
            for _ in range(5):
                x = rng.standard_normal((20, 32)).astype(np.float32)
                x[rng.random(x.shape) < 0.2] = NAN
                selected = client.select(x)
                client.reward(selected.event_id, float(selected.index % 2))
                chosen[compact].append(selected.index)
        rng = np.random.default_rng(0)
    assert chosen[True] == chosen[False]


def test_a_dry_run_counts_nothing(client):
    shown = client.select([[1.0], [2.0]], dry_run=True)
    assert shown.event_id is None
    assert len(shown.arms) == 2
    assert client.learner not in client.list_learners()


def test_a_batch_answers_in_order_and_a_bad_item_fails_alone(client):
    client.put_learner(client.learner, dimension=2)
    first, bad, third = client.select_batch([np.ones((3, 2)), [[1.0]], [[None, 1.0]]])
    assert isinstance(first, Selected)
    assert isinstance(third, Selected)
    assert isinstance(bad, Refused)
    assert bad.status == 422
    recorded, unknown = client.reward_batch({first.event_id: 1.0, "nobody": 0.0})
    assert (recorded.status, recorded.reward) == ("recorded", 1.0)
    assert isinstance(unknown, NotFound)


def test_a_batch_longer_than_the_service_takes_is_split(client):
    client.put_learner(client.learner, dimension=1)
    chosen = client.select_batch([[[1.0], [2.0]]] * 1_001)
    assert sorted(one.round for one in chosen) == list(range(1, 1_002))
    answers = client.reward_batch([(one.event_id, 0.0) for one in chosen])
    assert {one.status for one in answers} == {"recorded"}


def test_a_block_reports_its_reward_or_the_default(client):
    with client.choose([[1.0], [2.0]]) as choice:
        choice.reward(0.75)
    with client.choose([[1.0], [2.0]]):
        pass
    with client.choose([[1.0], [2.0]], default=None):
        pass
    rewards = [one.reward for one in reversed(client.decisions())]
    assert rewards == [0.75, 0.0, None]


def test_a_block_that_fails_reports_only_what_it_knew(client):
    def fail(known):
        with client.choose([[1.0], [2.0]]) as choice:
            if known:
                choice.reward(1.0)
            raise ZeroDivisionError

    for known in (False, True):
        with pytest.raises(ZeroDivisionError):
            fail(known)
    assert [one.reward for one in reversed(client.decisions())] == [None, 1.0]


def test_a_learner_is_made_read_moved_reset_and_removed(client):
    made = client.put_learner(client.learner, dimension=2, policy="thompson", seed=5)
    assert (made.dimension, made.policy, made.seed) == (2, "thompson", 5)
    assert client.learner in client.list_learners()
    with client.choose(np.ones((3, 2))) as choice:
        choice.reward(1.0)
    statistics = client.get_learner(client.learner)
    assert (statistics.rounds, statistics.rewards, statistics.arms) == (1, 1, 3)
    model = client.model()
    assert len(model.theta) == 3
    copy = f"{client.learner}-copy"
    client.import_learner(copy, client.export_learner(client.learner))
    assert client.model(copy).theta == model.theta
    with pytest.raises(Conflict):
        client.put_learner(client.learner, dimension=3)
    client.reset_learner(client.learner)
    assert client.get_learner(client.learner).rounds == 0
    client.delete_learner(copy)
    with pytest.raises(NotFound) as refused:
        client.get_learner(copy)
    assert refused.value.problem.type.startswith("urn:lacuna:problem:")


def test_a_refusal_names_the_field(client):
    with pytest.raises(BadRequest) as refused:
        client.select([[1.0, 2.0], [1.0]])
    assert refused.value.errors[0].loc == "arms[1].features"


def test_without_the_key_nothing_is_allowed(url):
    with Client(url) as stranger, pytest.raises(NotAllowed):
        stranger.list_learners()


async def test_the_async_client_does_the_same(url, learner):
    async with AsyncClient(url, learner=learner, api_key=KEY) as client:
        chosen = await asyncio.gather(*(client.select([[1.0, None]] * 3) for _ in range(20)))
        assert sorted(one.round for one in chosen) == list(range(1, 21))
        await client.reward_batch({one.event_id: 0.0 for one in chosen})
        async with client.choose([[1.0, 2.0]]) as choice:
            choice.reward(1.0)
        statistics = await client.get_learner(learner)
    assert (statistics.rounds, statistics.rewards) == (21, 21)
