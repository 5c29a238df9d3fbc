"""What an engine promises, on every kind of store: one server, a cluster, behind sentinels."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import numpy as np
import pytest

from service.engine.registry import Engines
from service.engine.transfer import export_learner, import_learner
from service.engine.views import recent_decisions, statistics
from service.errors import BadRequest, Conflict, UnknownEvent, UnknownLearner
from service.learner import Arms
from tests.engine.conftest import until, worker
from tests.engine.traffic import features, names, play, reward, select
from tests.servers import cluster, other_server, replica_of, sentinel, server


@pytest.fixture(scope="module", params=["standalone", "cluster", "sentinel", "redis-server"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "cluster":
        with cluster(nodes=3) as three:
            yield three.url
    elif request.param == "sentinel":
        with server() as primary, replica_of(primary), sentinel(primary) as watchers:
            yield watchers.url
    elif request.param == "redis-server":
        found = other_server()
        if found is None:
            pytest.skip("there is no valkey-server or redis-server on PATH")
        with server(found) as one:
            yield one.url
    else:
        with server() as one:
            yield one.url


@pytest.fixture
async def two(url: str) -> AsyncIterator[tuple[Engines, Engines]]:
    """Two workers of one service, and no learner yet."""
    async with worker(url) as first, worker(url) as second:
        for name in await first.names():
            await first.delete(name)
        yield first, second


X = features(np.random.default_rng(1), 4, 6)


async def test_a_reward_is_recorded_once_and_its_first_value_stands(two):
    first, second = two
    await first.put("one", {"dimension": 4})
    await select(first, "one", X, "event")
    assert await reward(second, "one", "event", 1.5) == ("recorded", 1.5)
    assert await reward(first, "one", "event", 2.5) == ("duplicate", 1.5)
    assert await reward(second, "one", "event", 2.5) == ("duplicate", 1.5)
    with pytest.raises(UnknownEvent):
        await reward(first, "one", "another", 1.0)
    for engines in two:
        engine = await engines.get("one")
        await until(lambda e=engine: e.replica.learner.model.count == 1, "the reward is folded")
        assert engine.replica.learner.model.sum_y == 1.5
    told = await statistics(await first.get("one"))
    assert (told["rounds"], told["rewards"], told["duplicates"], told["pending"]) == (1, 1, 2, 0)
    [latest] = await recent_decisions(await second.get("one"), 10)
    assert (latest["event_id"], latest["reward"]) == ("event", 1.5)


async def test_a_reward_after_its_default_is_late(two):
    first, second = two
    await first.put("one", {"dimension": 4, "reward_wait_s": 0.05, "default_reward": -1})
    await select(first, "one", X, "event")
    engine = await second.get("one")
    await until(lambda: engine.replica.learner.model.count == 1, "the default is booked")
    assert engine.replica.learner.model.sum_y == -1.0
    assert await reward(second, "one", "event", 1.0) == ("late", -1.0)
    told = await statistics(engine)
    assert (told["late"], told["defaults"], told["rewards"]) == (1, 1, 1)
    assert engine.replica.learner.model.count == 1


async def test_a_decision_expires(two):
    first, _ = two
    await first.put("one", {"dimension": 4, "decision_ttl_s": 0.1})
    await select(first, "one", X, "event")
    await asyncio.sleep(0.15)
    with pytest.raises(UnknownEvent):
        await reward(first, "one", "event", 1.0)
    engine = await first.get("one")
    for _ in range(400):
        if await engine.store.pending() == 0:
            break
        await asyncio.sleep(0.01)
    assert await engine.store.pending() == 0
    assert engine.replica.learner.model.count == 0
    assert (await select(first, "one", X, "event")).answer.round == 2


@pytest.mark.parametrize("rewarded", [False, True])
async def test_a_select_that_comes_again_is_told_the_same_and_counted_once(two, rewarded):
    first, second = two
    await first.put("one", {"dimension": 4})
    told = await select(first, "one", X, "event")
    if rewarded:
        await reward(second, "one", "event", 1.0)
    for engines in (second, first, second):
        again = await select(engines, "one", X[::-1], "event")
        assert (again.answer.arm, again.answer.index) == (told.answer.arm, told.answer.index)
        assert again.answer.round == 1
    both = await asyncio.gather(*(select(engines, "one", X, "other") for engines in two * 4))
    assert len({one.answer.arm for one in both}) == 1
    for engines in two:
        engine = await engines.get("one")
        await engine.run(engine.flush)
    for engines in two:
        engine = await engines.get("one")
        await engine.run(engine.flush)
        moments = engine.replica.learner.moments
        assert (moments.rounds, moments.arms) == (2, 12)
        np.testing.assert_allclose(moments.xi, 2 * np.nansum(X, axis=0), rtol=1e-12)
        np.testing.assert_array_equal(np.diagonal(moments.p), 2 * (~np.isnan(X)).sum(axis=0))


async def test_a_reset_learner_is_forgotten_while_another_worker_serves_it(two):
    first, second = two
    await first.put("one", {"dimension": 4})
    await play(second, "one", 10, seed=1, rewarded=0.5)
    await select(second, "one", X, "before")
    await first.reset("one")
    with pytest.raises(UnknownEvent):
        await reward(second, "one", "before", 1.0)
    assert (await select(second, "one", X, "before")).answer.round == 1
    assert (await statistics(await second.get("one")))["rounds"] == 1


async def test_a_deleted_learner_is_gone_while_another_worker_serves_it(two):
    first, second = two
    await first.put("one", {"dimension": 4})
    await play(second, "one", 5, seed=1)
    await first.delete("one")
    with pytest.raises(UnknownLearner):
        await reward(second, "one", "event-1", 1.0)
    with pytest.raises(UnknownLearner):
        await first.get("one")
    with pytest.raises(UnknownLearner):
        await first.delete("one")
    assert await first.names() == []
    await first.put("one", {"dimension": 2})
    assert (await select(second, "one", X[:, :2])).answer.round == 1


async def test_a_new_configuration_reaches_a_worker_that_serves(two):
    first, second = two
    await first.put("one", {"dimension": 4, "seed": 3})
    await play(second, "one", 20, seed=1)
    before = await second.get("one")
    assert await first.put("one", {"dimension": 4, "seed": 3}) is False
    assert (await second.get("one")) is before  # nothing has changed
    assert await first.put("one", {"dimension": 4, "policy": "thompson"}) is False
    await until(lambda: before.gone, "the old engine has ended")
    after = await second.get("one")
    assert after.replica.configuration.learner.policy == "thompson"
    assert after.replica.configuration.learner.seed == 3
    model, was = after.replica.learner.model, before.replica.learner.model
    np.testing.assert_array_equal(model.s, was.s)
    told = await play(second, "one", 20, seed=2, first=20)
    assert told[-1][1] == 40
    with pytest.raises(Conflict):
        await first.put("one", {"dimension": 5})


async def test_a_learner_without_rounds_may_change_its_shape(two):
    first, second = two
    await first.put("one", {"dimension": 4})
    await second.get("one")
    await first.put("one", {"dimension": 6})
    chosen = await select(second, "one", features(np.random.default_rng(0), 6, 3))
    assert chosen.answer.round == 1


async def test_what_does_not_fit_the_learner_is_refused_and_spoils_nothing(two):
    first, _ = two
    await first.put("one", {"dimension": 4})
    engine = await first.get("one")
    good = [engine.select(Arms.of(X), names(6), f"good-{n}") for n in range(3)]
    bad = [
        engine.select(Arms.of(X[:, :3]), names(6), "bad"),
        engine.select(Arms.of(X), names(6), "\ud800"),
        engine.reward("good-0", float("nan")),
        engine.reward("good-0", 1e200),
    ]
    told = await asyncio.gather(*good, *bad, return_exceptions=True)
    assert [type(one).__name__ for one in told] == ["Selected"] * 3 + [BadRequest.__name__] * 4
    assert engine.replica.learner.moments.rounds == 3


async def test_learners_are_made_on_first_use_unless_told_not_to(two):
    first, second = two
    x = features(np.random.default_rng(0), 3, 4)
    arms = Arms.of(x)
    told = await first.use("new", lambda e: e.select(arms, names(4), None), dimension=3)
    assert told.answer.round == 1
    assert await second.names() == ["new"]
    second.auto_create = False
    with pytest.raises(UnknownLearner):
        await second.use("newer", lambda e: e.select(arms, names(4), None), dimension=3)
    with pytest.raises(BadRequest):
        await first.get("Not-A-Name")


async def test_an_export_is_imported_under_another_name(two):
    first, second = two
    await first.put("one", {"dimension": 4, "seed": 2})
    await play(first, "one", 30, seed=1)
    await import_learner(second, "copy", b"".join(await export_learner(first, "one")))
    expected = await play(first, "one", 30, seed=2, first=30)
    await (await second.get("copy")).replica.settled()  # a refresh waits for the history
    assert await play(second, "copy", 30, seed=2, first=30) == expected
    assert await first.names() == ["copy", "one"]


async def test_scripts_that_the_server_forgot_are_sent_again(two):
    first, _ = two
    await first.put("one", {"dimension": 4})
    for n in range(4):
        await first.client.script_flush()
        await select(first, "one", X, f"event-{n}")
        assert await reward(first, "one", f"event-{n}", 1.0) == ("recorded", 1.0)
    assert not (await first.get("one")).degraded


async def test_a_preview_changes_nothing(two):
    first, _ = two
    await first.put("one", {"dimension": 4, "preset": "paper"})
    await play(first, "one", 20, seed=1)
    engine = await first.get("one")
    factor, rounds = engine.replica.learner.model.factor, engine.replica.learner.moments.rounds
    choices = engine.preview(Arms.of(X[:3]))
    assert len(choices.index) == 1
    assert engine.replica.learner.model.factor is factor
    assert engine.replica.learner.moments.rounds == rounds


async def test_a_preview_by_a_worker_without_selects_is_that_of_the_worker_with_all(two):
    first, second = two
    await first.put("one", {"dimension": 4, "preset": "paper"})
    await second.get("one")
    await play(first, "one", 20, seed=1)
    busy, idle, asked = await first.get("one"), await second.get("one"), Arms.of(X[:3])
    for engine in (busy, idle):
        await engine.run(engine.flush)
    here, there = busy.preview(asked), idle.preview(asked)
    np.testing.assert_allclose(here.mean + here.bonus, there.mean + there.bonus, rtol=1e-9)
    assert here.index == there.index
