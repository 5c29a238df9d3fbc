"""The HTTP player against a service of a few lines that speaks the contract."""

import json

import httpx
import numpy as np
import pytest

from clients.errors import ServiceFailed
from clients.simulate.http_player import OverHttp
from service.learner import Learner, LearnerConfig


class TinyService:
    """PUT and DELETE /learners/{name}, POST /select and /reward; learners as in the service."""

    def __init__(self):
        self.learners, self.events, self.selects = {}, {}, []

    def __call__(self, request):
        body = json.loads(request.content) if request.content else None
        match request.method, request.url.path.split("/")[1:]:
            case "PUT", ["learners", name]:
                self.learners[name] = Learner(LearnerConfig.from_dict(body))
                return httpx.Response(201, json={"name": name})
            case "DELETE", ["learners", name]:
                del self.learners[name]
                return httpx.Response(204)
            case "POST", ["select"]:
                self.selects.append(body)
                rows = [arm["features"] for arm in body["arms"]]
                choices = self.learners[body["learner"]].select(np.array(rows, dtype=float))
                self.events[body["event_id"]] = choices
                return httpx.Response(200, json={"index": int(choices.index[0])})
            case "POST", ["reward"]:
                choices = self.events.pop(body["event_id"])
                self.learners[body["learner"]].reward(choices, body["reward"])
                return httpx.Response(200, json={"status": "recorded"})
        problem = {"title": "Not found", "status": 404, "detail": "there is nothing here"}
        return httpx.Response(404, json=problem)


@pytest.fixture
def service():
    return TinyService()


def player(service, config):
    return OverHttp(
        "http://lacuna.test", "simulate-clbbf-7", config, transport=httpx.MockTransport(service)
    )


def test_it_chooses_as_the_learner_in_process_does(service):
    config = LearnerConfig(dimension=3, horizon=50, seed=7)
    remote, local = player(service, config), Learner(config)
    rng = np.random.default_rng(0)
    for _ in range(50):
        x = np.where(rng.random((6, 3)) < 0.7, rng.normal(size=(6, 3)), np.nan)
        choices = local.select(x)
        arm = remote.choose(x)
        assert arm == choices.index[0]
        local.reward(choices, float(arm))
        remote.learn(float(arm))
    assert service.events == {}
    remote.close()
    assert service.learners == {}


def test_a_hole_is_null_and_every_event_has_its_own_id(service):
    remote = player(service, LearnerConfig(dimension=2))
    for _ in range(2):
        remote.choose(np.array([[1.5, np.nan]]))
    assert service.selects[0]["arms"] == [{"features": [1.5, None]}]
    assert len({select["event_id"] for select in service.selects}) == 2


def test_players_of_one_policy_and_seed_have_learners_of_their_own(service):
    one, other = (player(service, LearnerConfig(dimension=2)) for _ in range(2))
    assert one.name != other.name
    assert len(service.learners) == 2


def test_the_key_is_sent_where_there_is_one(monkeypatch):
    monkeypatch.setenv("LACUNA_API_KEY", "k1")
    seen = []

    def answer(request):
        seen.append(request.headers.get("authorization"))
        return httpx.Response(201, json={})

    player(answer, LearnerConfig(dimension=2))
    assert seen == ["Bearer k1"]


def test_a_refusal_is_passed_on_in_its_own_words():
    def refuse(request):
        return httpx.Response(401, json={"detail": "a key is needed"})

    with pytest.raises(ServiceFailed, match="401: a key is needed"):
        player(refuse, LearnerConfig(dimension=2))


def test_a_service_that_is_not_there_is_one_sentence():
    def gone(request):
        raise httpx.ConnectError("connection refused")

    with pytest.raises(ServiceFailed, match=r"--url: http://lacuna\.test did not answer"):
        player(gone, LearnerConfig(dimension=2))
