"""What an engine keeps for people to look at."""

from __future__ import annotations

import numpy as np
import pytest

from service.engine import display, views
from service.errors import UnknownEvent
from service.learner import Arms
from tests.engine.conftest import until, worker
from tests.engine.traffic import features, names, play, reward, select
from tests.servers import server

D = 4


@pytest.fixture
async def engine(engines):
    await engines.put("one", {"dimension": D})
    return await engines.get("one")


async def test_an_explanation_is_what_the_select_was_told(engine, engines):
    x = features(np.random.default_rng(1), D, 5)
    chosen = await select(engines, "one", x, "an/event")
    await engine.run(engine.flush)
    found = await views.one_decision(engine, "an/event")
    assert found["decision"]["arm"] == chosen.answer.arm
    assert found["decision"]["explained"] is True
    assert [arm["id"] for arm in found["arms"]] == names(5)
    for row, arm in enumerate(found["arms"]):
        assert arm["mean"] == chosen.choices.mean[row]
        assert arm["bonus"] == chosen.choices.bonus[row]
        assert arm["score"] == arm["mean"] + arm["bonus"]
        assert arm["observed"] == (~np.isnan(x[row])).astype(int).tolist()
        assert arm["features"] == chosen.choices.z[row, 1:].tolist()


async def test_the_reward_of_an_explained_decision_is_shown_when_it_came(engine, engines):
    await select(engines, "one", np.ones((2, D)), "e")
    await engine.run(engine.flush)
    assert (await views.one_decision(engine, "e"))["decision"]["status"] == "pending"
    await reward(engines, "one", "e", 0.5)
    decision = (await views.one_decision(engine, "e"))["decision"]
    assert (decision["status"], decision["reward"]) == ("rewarded", 0.5)


async def test_an_event_that_nobody_decided_is_unknown(engine):
    with pytest.raises(UnknownEvent):
        await views.one_decision(engine, "nobody")


async def test_a_busy_learner_explains_a_sample_and_whatever_was_asked_for(engine):
    arms = Arms.of(np.ones((2, D)))
    many = 4 * int(display.ALLOWANCE)
    for n in range(many):
        await engine.select(arms, names(2), f"e{n}")
    asked = await engine.select(arms, names(2), "asked", explain=True)
    await engine.run(engine.flush)
    rows = await views.recent_decisions(engine, 200, explained_only=True)
    explained = [row["event_id"] for row in rows]
    assert display.ALLOWANCE <= len(explained) < many
    assert explained[0] == asked.event_id
    listed = await views.recent_decisions(engine, 200)
    assert len(listed) == many + 1
    assert {row["event_id"] for row in listed if row["explained"]} == set(explained)


async def test_even_explanations_that_are_asked_for_have_a_limit(engine):
    arms = Arms.of(np.ones((2, D)))
    for n in range(8 * int(display.ALLOWANCE)):
        await engine.select(arms, names(2), f"e{n}", explain=True)
    assert engine.display._allowance >= -display.ALLOWANCE


async def test_a_decision_too_large_to_keep_is_listed_without_an_explanation(engines):
    rows = display.MAX_BYTES // (8 * 65) + 1
    await engines.put("wide", {"dimension": 64})
    engine = await engines.get("wide")
    await select(engines, "wide", np.ones((rows, 64)), "large")
    await engine.run(engine.flush)
    found = await views.one_decision(engine, "large")
    assert found["arms"] is None
    assert found["decision"]["explained"] is False


async def test_the_timeline_adds_up_to_what_happened(engine, engines):
    await until(lambda: engine.display._sampled is not None, "the first sample, the base")
    before = len(await engine.store.samples())
    told = []
    for step in range(3):
        told += await play(engines, "one", 20, seed=step, d=D, first=100 * step)
        await until(lambda step=step: _sampled(engine) == 20 * (step + 1), "the step is sampled")
    assert len(await engine.store.samples()) >= before + 3
    told += await play(engines, "one", 5, seed=9, d=D, first=900)
    await engine.run(engine.flush)
    points = (await views.timeline(engine))["points"]
    model = engine.replica.learner.model
    assert sum(point["selects"] for point in points) == len(told)
    assert sum(point["rewards"] for point in points) == model.count
    assert sum(point["sum"] for point in points) == pytest.approx(model.sum_y)
    assert sum(point["sum_squares"] for point in points) == pytest.approx(model.sum_yy)
    times = [point["at"] for point in points]
    assert times == sorted(set(times))


def _sampled(engine) -> int:
    return engine.display._sampled[0]


async def test_a_learner_in_which_nothing_happens_is_not_sampled_again(engine):
    await until(lambda: engine.display._sampled is not None, "the first sample")
    looked = engine.display._interval
    await until(lambda: engine.display._interval > looked + 2, "two intervals went by")
    assert len(await engine.store.samples()) == 1
    assert (await views.timeline(engine))["points"] == []


async def test_what_was_decided_alone_is_explained_when_the_store_is_back():
    with server(appendonly="yes", appendfsync="always") as store:
        async with worker(store.url) as engines:
            await engines.put("one", {"dimension": D})
            await select(engines, "one", np.ones((2, D)), "before")
            store.kill()
            assert (await select(engines, "one", np.ones((2, D)), "alone")).answer.degraded
            store.start()
            engine = await engines.get("one")
            await until(lambda: not engine.degraded, "the store is back")
            await engine.run(engine.flush)
            found = await views.one_decision(engine, "alone")
            assert found["decision"]["degraded"] is True
            assert len(found["arms"]) == 2


async def test_another_worker_finds_the_explanation():
    with server() as store:
        async with worker(store.url) as first, worker(store.url) as second:
            await first.put("one", {"dimension": D})
            await select(first, "one", np.ones((2, D)), "e")
            mine = await first.get("one")
            await mine.run(mine.flush)
            theirs = await second.get("one")
            assert (await views.one_decision(theirs, "e"))["arms"]


async def test_the_model_is_shown_alike_by_a_worker_that_gets_no_selects():
    rng = np.random.default_rng(3)
    with server() as store:
        async with worker(store.url) as first, worker(store.url) as second:
            await first.put("one", {"dimension": D})
            await select(first, "one", features(rng, D, 5), "first")
            theirs = await second.get("one")
            before = theirs.replica.learner.estimate
            for k in range(20):
                await select(first, "one", features(rng, D, 50), f"e{k}")
            mine = await first.get("one")
            await mine.run(mine.flush)
            arms = mine.replica.learner.moments.arms
            await until(lambda: theirs.replica.learner.moments.arms == arms, "moments are shared")
            shown = await theirs.run(lambda: views.model_view(theirs))
            expected = mine.replica.learner.new_estimate()
            assert shown["nu"] == pytest.approx(expected.nu.tolist())
            np.testing.assert_allclose(shown["sigma"], expected.sigma)
            assert theirs.replica.learner.estimate is before
