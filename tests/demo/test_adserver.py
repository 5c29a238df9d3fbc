import json
from collections.abc import Callable

import httpx
import numpy as np
import pytest

from clients.adserver import AdServer


class Supply:
    names = ("a", "b")

    def candidates(self, user):
        return np.array([7, 9])

    def scores(self, user, ads):
        return np.array([[0.5, np.nan], [np.nan, np.nan]])


def ad_server(answer: Callable[[httpx.Request], httpx.Response]) -> httpx.AsyncClient:
    lacuna = httpx.AsyncClient(base_url="http://lacuna", transport=httpx.MockTransport(answer))
    app = AdServer(lacuna, Supply(), {"ours": "demo-ours", "theirs": "demo-theirs"}, first="ours")
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://ads")


async def test_a_page_asks_every_learner_and_leaves_out_what_is_not_known():
    asked = []

    def answer(request):
        body = json.loads(request.content)
        asked.extend(body.get("requests", [body]))
        chosen = {"index": len(asked) - 1, "degraded": False}
        return httpx.Response(200, json={"results": [chosen]} if "requests" in body else chosen)

    async with ad_server(answer) as browser:
        page = (await browser.get("/page", params={"user": 3})).json()
    assert page["slots"] == {"ours": 7, "theirs": 9}
    assert page["considered"] == [7, 9]
    assert [one["learner"] for one in asked] == ["demo-ours", "demo-theirs"]
    assert asked[0]["arms"] == asked[1]["arms"]
    assert asked[0]["arms"] == [
        {"id": "ad-7", "features": {"a": 0.5}},
        {"id": "ad-9", "features": {}},
    ]


async def test_an_item_that_failed_is_a_bad_gateway():
    def answer(request):
        error = {
            "results": [{"error": {"detail": "no such feature"}}],
            "index": 0,
            "degraded": False,
        }
        return httpx.Response(200, json=error)

    async with ad_server(answer) as browser:
        said = await browser.get("/page?user=1")
    assert said.status_code == 502
    assert "no such feature" in said.json()["detail"]


async def test_a_click_is_a_reward_of_its_impression():
    asked = []

    def answer(request):
        asked.append((request.url.path, json.loads(request.content)))
        return httpx.Response(200, json={"event_id": "i1", "status": "late"})

    async with ad_server(answer) as browser:
        said = await browser.get("/click", params={"slot": "theirs", "impression": "i1"})
    assert said.json() == {"status": "late"}
    reward = {"learner": "demo-theirs", "event_id": "i1", "reward": 1.0}
    assert asked == [("/reward", reward)]


@pytest.mark.parametrize(
    ("path", "status"),
    [("/", 404), ("/page", 400), ("/page?user=x", 400), ("/click?slot=nobody&impression=i", 400)],
)
async def test_what_makes_no_sense_is_refused(path, status):
    async with ad_server(lambda request: httpx.Response(500)) as browser:
        assert (await browser.get(path)).status_code == status


async def test_a_service_that_refuses_is_a_bad_gateway():
    async with ad_server(lambda request: httpx.Response(503)) as browser:
        answer = await browser.get("/page?user=1")
    assert answer.status_code == 502
    assert "503" in answer.json()["detail"]


@pytest.mark.parametrize("failure", [502, 503, httpx.RemoteProtocolError("it hung up")])
async def test_what_a_dying_worker_left_unanswered_is_asked_again_under_the_same_event(failure):
    asked = []

    def answer(request):
        body = json.loads(request.content)
        asked.append(body.get("event_id"))
        if len(asked) == 1:
            if isinstance(failure, Exception):
                raise failure
            return httpx.Response(failure)
        chosen = {"index": 0, "degraded": False}
        return httpx.Response(200, json={"results": [chosen]} if "requests" in body else chosen)

    async with ad_server(answer) as browser:
        page = await browser.get("/page?user=1")
    assert page.status_code == 200
    assert asked == [page.json()["impression"]] * 2 + [None]
