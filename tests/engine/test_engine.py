"""One engine: its queue, its memory, its history, its sleep."""

from __future__ import annotations

import asyncio
import threading
import time

import numpy as np
import pytest

from service.engine import replica as replicas
from service.engine.engine import Engine
from service.engine.registry import Engines
from service.engine.views import statistics
from service.errors import Overloaded
from service.learner import Arms
from service.learner.history import History
from tests.engine.conftest import until, worker
from tests.engine.traffic import features, names, play, reward, select

X = features(np.random.default_rng(1), 4, 6)
ARMS = Arms.of(X)


async def test_what_waits_goes_in_one_batch_and_one_round_trip(engines: Engines):
    await engines.put("one", {"dimension": 4})
    await play(engines, "one", 3, seed=1, rewarded=0.0)
    engine = await engines.get("one")
    engine.house.keep = nothing  # type: ignore[method-assign]
    await asyncio.sleep(0.05)
    batches, trips = engine.stats.batches, engine.store.calls
    told = await asyncio.gather(
        *(engine.select(ARMS, names(6), f"batch-{n}") for n in range(50)),
        *(engine.reward(f"event-{n}", 1.0) for n in range(3)),
    )
    assert (engine.stats.batches - batches, engine.store.calls - trips) == (1, 1)
    assert sorted(one.answer.round for one in told[:50]) == list(range(4, 54))
    await engine.select(ARMS, names(6), None)  # a refresh is due: its mark is one trip more
    assert engine.store.calls - trips == 3
    await engine.select(ARMS, names(6), None)
    assert engine.store.calls - trips == 4
    assert engine.stats.refreshes == 1


async def nothing() -> None:
    return None


async def test_no_more_may_wait_than_was_agreed(client):
    async with worker(url_of(client), queue_limit=10) as engines:
        await engines.put("one", {"dimension": 4})
        engine = await engines.get("one")
        selects = [engine.select(ARMS, names(6), f"event-{n}") for n in range(15)]
        told = await asyncio.gather(*selects, return_exceptions=True)
        assert [isinstance(one, Overloaded) for one in told] == [False] * 10 + [True] * 5
        assert engine.replica.learner.moments.rounds == 10


def url_of(client) -> str:
    given = client.connection_pool.connection_kwargs
    return f"redis://{given['host']}:{given['port']}/0"


async def test_a_caller_that_gives_up_disturbs_nobody(engines: Engines):
    await engines.put("one", {"dimension": 4})
    engine = await engines.get("one")
    tasks = [asyncio.create_task(engine.select(ARMS, names(6), f"event-{n}")) for n in range(6)]
    again = asyncio.create_task(engine.select(ARMS, names(6), "event-0"))
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    told = await asyncio.gather(*tasks, again, return_exceptions=True)
    assert [isinstance(one, asyncio.CancelledError) for one in told[:6]] == [True, False] * 3
    assert told[6].event_id == "event-0"  # though the first to ask for it had given up
    assert await reward(engines, "one", "event-1", 1.0) == ("recorded", 1.0)


async def test_an_idle_learner_is_put_away_and_comes_alive_again(client, monkeypatch):
    monkeypatch.setattr("service.engine.registry.IDLE_CHECK_S", 0.02)
    async with worker(url_of(client), idle_s=0.1) as engines:
        await engines.put("one", {"dimension": 4, "seed": 1})
        await play(engines, "one", 30, seed=1)
        engine = await engines.get("one")
        await until(lambda: not engines.alive, "it is put away")
        assert engine.gone
        fields = await engine.store.moments()
        assert list(fields) == [b"base"]
        await play(engines, "one", 30, seed=2, first=30)
        after = await engines.get("one")
        assert after is not engine
        assert after.replica.learner.moments.rounds == 60
        assert after.stats.selects == 60  # its figures go on


async def test_the_history_is_bounded_and_restarts_agree(engines: Engines, client, settings):
    await engines.put("one", {"dimension": 4, "history_limit": 100, "seed": 2})
    await play(engines, "one", 1_500, seed=1, rewarded=1.0)
    engine = await engines.get("one")
    await until(lambda: engine.stats.snapshots >= 1, "a snapshot")
    await engine.run(engine.house.snapshot)
    length = await client.xlen(engine.store.keys.rewards)
    assert length < 100 + 1_024 + 64 + 200  # the stream is cut by whole nodes
    async with worker(url_of(client)) as other:
        peer = await other.get("one")
        await peer.replica.settled()
        for part in ("frozen_s", "frozen_b"):
            mine, theirs = (getattr(e.replica.learner.history, part) for e in (engine, peer))
            np.testing.assert_array_equal(mine, theirs)
        mine, theirs = engine.replica.learner.history.rows(), peer.replica.learner.history.rows()
        np.testing.assert_array_equal(mine.z, theirs.z)
        np.testing.assert_array_equal(mine.observed, theirs.observed)
        # over the next refresh, at 2,048 rewards
        await play(engines, "one", 600, seed=2, first=1_500, rewarded=1.0)
        await peer.run(peer.flush)
        model, theirs = engine.replica.learner.model, peer.replica.learner.model
        assert model.count == 2_100
        np.testing.assert_array_equal(model.s, theirs.s)
        np.testing.assert_array_equal(model.b, theirs.b)
        assert engine.replica.learner.next_refresh == 4_096


@pytest.mark.parametrize(("before", "after"), [(50, 400), (400, 50), (400, 0), (0, 400)])
async def test_another_history_limit_neither_loses_nor_doubles_rows(
    engines: Engines, before, after
):
    """At a limit of 0 all rows stay as they were chosen; S counts each once all the same."""
    await engines.put("one", {"dimension": 4, "history_limit": before, "seed": 1})
    await play(engines, "one", 300, seed=1, rewarded=1.0)
    await engines.put("one", {"dimension": 4, "history_limit": after, "seed": 1})
    await play(engines, "one", 300, seed=2, first=300, rewarded=1.0)  # over the refresh at 512
    model = (await engines.get("one")).replica.learner.model
    assert model.count == 600
    assert model.s[0, 0] == 600.0  # the sum of 1 · 1


@pytest.mark.parametrize("way", [("oful", "clbbf"), ("clbbf", "oful"), ("thompson", "clbbf")])
async def test_another_policy_goes_on_with_what_was_learnt(engines: Engines, way):
    first, then = way
    await engines.put("one", {"dimension": 4, "policy": first, "seed": 1})
    await play(engines, "one", 100, seed=1, rewarded=1.0)
    await engines.put("one", {"dimension": 4, "policy": then, "seed": 1})
    await play(engines, "one", 100, seed=2, first=100, rewarded=1.0)
    await engines.put("one", {"dimension": 4, "policy": first, "seed": 1})
    await play(engines, "one", 100, seed=3, first=200, rewarded=1.0)
    model = (await engines.get("one")).replica.learner.model
    assert (model.count, model.s[0, 0]) == (300, 300.0)


async def test_a_refresh_aside_ends_in_the_same_bits(engines: Engines, client, monkeypatch):
    await engines.put("one", {"dimension": 4, "seed": 1})
    await play(engines, "one", 100, seed=1, rewarded=1.0)
    inline = await engines.get("one")
    await inline.run(inline.flush)
    async with worker(url_of(client)) as other:
        peer = await other.get("one")
        await peer.replica.settled()
        rewarded, before = slowed(peer, monkeypatch), peer.stats.refreshes
        for t in range(100, 300):
            await play(engines, "one", 1, seed=t, first=t, rewarded=1.0)
            if t % 7 == 0:
                assert (await select(other, "one", X, f"peer-{t}")).answer.arm
        await peer.run(peer.flush)
        await peer.replica.settled()
        await inline.run(inline.flush)
        assert len(rewarded) == 2  # at 128 and 256 rewards
        assert any(rewarded)
        assert peer.stats.refreshes == before + 2
        for one in ("s", "b"):
            mine, theirs = (getattr(e.replica.learner.model, one) for e in (inline, peer))
            np.testing.assert_array_equal(mine, theirs)
        mine, theirs = (e.replica.learner.history.rows() for e in (inline, peer))
        np.testing.assert_array_equal(mine.z, theirs.z)
        assert inline.replica.learner.next_refresh == peer.replica.learner.next_refresh


def slowed(engine: Engine, monkeypatch) -> list[bool]:
    """This engine refreshes in a thread, slowly; whether rewards came meanwhile."""
    seen: list[bool] = []
    history, anew = engine.replica.learner.history, History.completed_anew

    def slow(self, estimate):
        refreshed = anew(self, estimate)
        if self is history:
            time.sleep(0.1)
            seen.append(bool(engine.replica._late))
        return refreshed

    aside(engine, monkeypatch)
    monkeypatch.setattr(History, "completed_anew", slow)
    return seen


def aside(engine: Engine, monkeypatch) -> None:
    """This engine refreshes in a thread, however short its history."""
    fold_mark = engine.replica._fold_mark

    async def fold(mark):
        with monkeypatch.context() as patch:
            patch.setattr(replicas, "INLINE_ROWS", 0)
            await fold_mark(mark)

    engine.replica._fold_mark = fold  # type: ignore[method-assign]


async def test_no_request_waits_for_a_long_refresh(engines: Engines, monkeypatch):
    await engines.put("one", {"dimension": 4, "seed": 1})
    await play(engines, "one", 120, seed=1, rewarded=1.0)
    engine = await engines.get("one")
    aside(engine, monkeypatch)
    go_on = threading.Event()
    anew = History.completed_anew

    def held_up(self, estimate):
        assert go_on.wait(60)
        return anew(self, estimate)

    monkeypatch.setattr(History, "completed_anew", held_up)
    try:
        await play(engines, "one", 40, seed=2, first=120, rewarded=1.0)
        assert engine.replica.busy
        assert engine.stats.refreshes == 6
    finally:
        go_on.set()
    await engine.replica.settled()
    assert engine.stats.refreshes == 7
    assert engine.replica.learner.model.s[0, 0] == 160.0


async def test_rounds_and_rewards_of_a_learner_are_told_by_any_worker(engines: Engines, client):
    await engines.put("one", {"dimension": 4})
    await play(engines, "one", 20, seed=1, rewarded=1.0)
    async with worker(url_of(client)) as other:
        told = await statistics(await other.get("one"))
    assert (told["rounds"], told["rewards"], told["pending"]) == (20, 20, 0)


async def test_a_worker_that_does_nothing_follows_within_its_interval(engines: Engines, client):
    async with worker(url_of(client)) as other:
        await engines.put("one", {"dimension": 4})
        peer = await other.get("one")
        await play(engines, "one", 20, seed=1, rewarded=1.0)
        await until(lambda: peer.replica.learner.model.count == 20, "it has followed")
        await until(lambda: peer.replica.learner.moments.rounds == 20, "the moments too")


async def test_a_long_history_is_read_beside_requests_and_to_the_bit(engines: Engines, client):
    await engines.put("one", {"dimension": 4, "seed": 1})
    engine = await engines.get("one")
    rng = np.random.default_rng(3)
    for start in range(0, 3_000, 100):
        arms = [Arms.of(features(rng, 4, 3)) for _ in range(100)]
        events = [f"event-{start + n}" for n in range(100)]
        await asyncio.gather(
            *(engine.select(a, names(3), e) for a, e in zip(arms, events, strict=True))
        )
        await asyncio.gather(*(engine.reward(e, float(rng.normal())) for e in events))
    await engine.run(engine.house.snapshot)
    engine.house.snapshot = nothing  # type: ignore[method-assign]
    await play(engines, "one", 10, seed=4, first=3_000, rewarded=1.0)  # after the snapshot
    async with worker(url_of(client)) as other:
        peer = await other.get("one")
        assert peer.replica.busy
        assert (await select(other, "one", X, "meanwhile")).answer.round == 3_011
        await reward(other, "one", "meanwhile", 1.0)
        await peer.replica.settled()
        await engine.run(engine.flush)
        await engine.replica.settled()
        mine, theirs = (e.replica.learner.history.rows() for e in (engine, peer))
        assert len(mine) == 3_011
        np.testing.assert_array_equal(mine.z, theirs.z)
        np.testing.assert_array_equal(mine.observed, theirs.observed)
        np.testing.assert_array_equal(mine.y, theirs.y)


async def test_a_probe_that_comes_too_late_does_no_harm(engines: Engines):
    await engines.put("one", {"dimension": 4})
    engine = await engines.get("one")
    engine.alone.store_answers = True
    engine.wake()
    async with asyncio.timeout(5):
        await until(lambda: not engine.alone.store_answers, "it is set aside")
    assert not engine.degraded


@pytest.mark.parametrize(("rewards", "reloads"), [(600, 0), (2_400, 1)])
async def test_a_worker_that_is_behind_misses_nothing_when_another_cuts_the_log(
    client, rewards: int, reloads: int
):
    """A policy without a refresh needs no rows, but those who have not read them yet do."""
    url = url_of(client)
    async with (
        worker(url, follow_interval_s=60.0) as behind,
        worker(url, snapshot_every=200) as ahead,
    ):
        await ahead.put("one", {"dimension": 4, "policy": "oful"})
        slow, fast = await behind.get("one"), await ahead.get("one")
        for first in range(0, rewards, 200):
            events = [f"event-{n}" for n in range(first, first + 200)]
            await asyncio.gather(*(fast.select(ARMS, names(6), event) for event in events))
            await asyncio.gather(*(fast.reward(event, 1.0) for event in events))
            await fast.run(fast.house.snapshot)
        assert slow.replica.position == 0
        for n in range(3):  # each reads a page of the log
            await select(behind, "one", X, f"page-{n}")
        await until(lambda: slow.replica.learner.model.count == rewards, "all is in the model")
        assert slow.replica.position == fast.replica.position
        assert slow.stats.reloads == reloads
        assert not slow.degraded
