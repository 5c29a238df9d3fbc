"""What the client does when the network or the service fails, without either."""

import asyncio
import json

import httpx
import numpy as np
import pytest

from clients.client import (
    COMPACT_ENTRIES,
    AsyncClient,
    BadAnswer,
    BadArms,
    Client,
    Refused,
    Retries,
    ServiceAway,
    Unavailable,
)
from clients.client import shells as shells_module
from clients.client.arms import COMPACT

CHOSEN = {
    "event_id": "e",
    "learner": "default",
    "arm": "0",
    "index": 0,
    "round": 1,
    "probability": 1.0,
    "model_version": 0,
    "degraded": False,
    "added_later": True,
}
QUICK = Retries(count=3, first_s=1e-4, longest_s=1e-3)


class Script:
    """A transport that plays answers and errors in order, and keeps what was asked."""

    def __init__(self, *steps):
        self.steps = list(steps)
        self.asked: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        step = self.steps.pop(0)
        if isinstance(step, Exception):
            raise step
        return step


def answer(status=200, body=CHOSEN, **headers):
    return httpx.Response(status, json=body, headers=headers)


def scripted(*steps, **options):
    script = Script(*steps)
    options = {"retries": QUICK, **options}
    return Client(transport=httpx.MockTransport(script), **options), script


@pytest.mark.parametrize(
    "failure",
    [
        httpx.ConnectError("refused"),
        httpx.ReadTimeout("slow"),
        httpx.RemoteProtocolError("cut"),
        answer(502),
        answer(503),
        answer(504),
    ],
)
def test_a_failed_select_is_repeated_with_the_id_of_the_first_try(failure):
    client, script = scripted(failure, answer())
    with client:
        assert client.select([[1.0]]).arm == "0"
    first, second = (json.loads(one.content) for one in script.asked)
    assert first == second
    assert len(first["event_id"]) == 32


async def test_the_async_client_repeats_too():
    script = Script(httpx.ConnectError("refused"), answer(503), answer())
    async with AsyncClient(transport=httpx.MockTransport(script), retries=QUICK) as client:
        assert (await client.select([[1.0]])).index == 0
    assert len(script.asked) == 3


@pytest.mark.parametrize("status", [400, 404, 409, 422, 500])
def test_what_would_fail_again_is_not_repeated(status):
    client, script = scripted(answer(status, {"status": status, "title": "No", "detail": "why"}))
    with client, pytest.raises(Refused, match="why") as refused:
        client.select([[1.0]])
    assert refused.value.status == status
    assert len(script.asked) == 1


def test_after_all_tries_the_last_failure_is_told():
    client, script = scripted(*[httpx.ConnectError("refused")] * 4)
    with client, pytest.raises(ServiceAway, match="after 4 tries: refused"):
        client.reward("e", 1.0)
    assert len(script.asked) == 4
    client, _ = scripted(*[answer(503, {"status": 503, "detail": "busy"})] * 4)
    with client, pytest.raises(Unavailable, match="busy"):
        client.reward("e", 1.0)


def test_a_wait_that_the_service_asks_for_is_kept_up_to_a_limit(monkeypatch):
    slept = []
    monkeypatch.setattr(shells_module.time, "sleep", slept.append)
    retries = Retries(count=3, first_s=0.01, longest_s=5.0)
    script = Script(
        answer(503, **{"retry-after": "2"}), answer(503, **{"retry-after": "600"}), answer()
    )
    with Client(transport=httpx.MockTransport(script), retries=retries) as client:
        client.select([[1.0]])
    assert slept == [2.0, 5.0]


def test_waits_grow_but_differ_between_callers():
    retries = Retries(count=9, first_s=0.1, longest_s=3.0)
    waits = [retries.wait_s(tried, None) for tried in range(1, 10)]
    assert all(low <= wait <= high for wait, low, high in zip(waits, [0.05], [0.1], strict=False))
    assert waits[-1] == 3.0
    assert len({retries.wait_s(1, None) for _ in range(20)}) > 1
    assert retries.wait_s(10, None) is None


def test_removing_again_after_a_lost_answer_is_no_error():
    gone = answer(404, {"status": 404, "title": "Unknown learner"})
    client, _ = scripted(httpx.ReadTimeout("slow"), gone)
    with client:
        client.delete_learner("a")
    client, _ = scripted(answer(404, {"status": 404, "title": "Unknown learner"}))
    with client, pytest.raises(Refused):
        client.delete_learner("a")


@pytest.mark.parametrize("body", [b"<html>hello</html>", b'{"arm": 3}', b"\xff\xfe"])
def test_an_answer_of_something_else_is_told_as_such(body):
    client, _ = scripted(httpx.Response(200, content=body))
    with client, pytest.raises(BadAnswer, match="not one of Lacuna's"):
        client.select([[1.0]])


def test_a_proxys_error_page_still_has_its_status():
    client, _ = scripted(httpx.Response(413, content=b"<html>too large</html>"))
    with client, pytest.raises(Refused, match=r"413.*too large"):
        client.select([[1.0]])


def sent(arms, **options):
    client, script = scripted(answer())
    with client:
        client.select(arms, **options)
    return script.asked[0]


def test_only_large_plain_requests_are_compact():
    large = np.full((2, COMPACT_ENTRIES // 2), np.nan)
    assert sent(large).headers["content-type"] == COMPACT
    assert len(sent(large).content) == 4 + 4 * COMPACT_ENTRIES
    assert sent(large.tolist()).headers["content-type"] == COMPACT
    for arms, options in [
        (large[:, :-1], {}),
        (large, {"ids": ["a", "b"]}),
        (large, {"explain": True}),
        (large, {"mask": np.ones_like(large, dtype=int)}),
        ({"a": large[0], "b": large[1]}, {}),
        (np.full((2, COMPACT_ENTRIES), 1e40), {}),  # beyond float32
    ]:
        assert sent(arms, **options).headers["content-type"] == "application/json"


def test_nan_and_none_travel_as_null():
    body = json.loads(sent([[float("nan"), None, 1.5], np.array([1.0, np.nan, 2.0])]).content)
    assert [arm["features"] for arm in body["arms"]] == [[None, None, 1.5], [1.0, None, 2.0]]


@pytest.mark.parametrize(
    ("arms", "says"),
    [
        ([[1.0, float("inf")]], r"arms\[0\].features\[1\]: must be finite"),
        (np.array([[1.0], [-np.inf]]), r"arms\[1\].features\[0\]: must be finite"),
        (np.ones(3), "shape"),
        ([["red"]], "must be a number or None, not 'red'"),
        (np.array([["red"]]), "must be numbers"),
        ([{"age": float("inf")}], "features.age: must be finite"),
    ],
)
def test_arms_that_cannot_be_sent_are_refused_here(arms, says):
    client, script = scripted(answer())
    with client, pytest.raises(BadArms, match=says):
        client.select(arms)
    assert not script.asked


def test_as_many_ids_as_arms_are_needed():
    client, _ = scripted(answer())
    with client, pytest.raises(BadArms, match="2 arms, but 1"):
        client.select([[1.0], [2.0]], ids=["a"])


def test_connections_are_kept():
    ports = set()
    ended = asyncio.Event()

    async def handle(reader, writer):
        ports.add(writer.get_extra_info("peername")[1])
        body = json.dumps(CHOSEN).encode()
        while await reader.readline():
            length = 0
            while (line := await reader.readline()) != b"\r\n":
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            await reader.readexactly(length)
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
        writer.close()
        await writer.wait_closed()
        ended.set()

    async def main():
        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with AsyncClient(f"http://127.0.0.1:{port}") as client:
            for _ in range(5):
                await client.select([[1.0]])
        await ended.wait()
        server.close()

    asyncio.run(main())
    assert len(ports) == 1
