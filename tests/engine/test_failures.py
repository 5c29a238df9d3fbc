"""Real servers put into every state in which they fail; what was acknowledged stays."""

from __future__ import annotations

import asyncio
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import redis

from service.engine.engine import Engine
from service.engine.registry import Engines
from service.errors import StoreDown, UnknownEvent, UnknownLearner
from service.store.errors import StoreUnavailable
from tests.engine.conftest import until, worker
from tests.engine.traffic import features, play, reward, select
from tests.servers import (
    Directives,
    Server,
    bytes_of,
    cluster,
    replica_of,
    sentinel,
    server,
    wait_for,
)

X = features(np.random.default_rng(1), 4, 6)
ON_DISK: Directives = {"appendonly": "yes", "appendfsync": "always"}


async def started(engines: Engines, events: int = 10) -> Engine:
    await engines.put("one", {"dimension": 4, "seed": 1})
    await play(engines, "one", events, seed=1)
    return await engines.get("one")


async def answers_alone(engines: Engines, event_id: str) -> None:
    told = await select(engines, "one", X, event_id)
    assert told.answer.degraded
    with pytest.raises(StoreDown):
        await reward(engines, "one", event_id, 1.0)
    assert (await engines.get("one")).degraded


async def comes_back(engines: Engines, event_id: str) -> None:
    """And what was decided alone can be rewarded."""
    engine = await engines.get("one")
    await until(lambda: not engine.degraded, "the store is used again")
    assert await reward(engines, "one", event_id, 1.0) == ("recorded", 1.0)
    assert engine.stats.degraded_s > 0.0


async def test_a_server_that_is_gone_is_done_without():
    with server(**ON_DISK) as one:
        async with worker(one.url) as engines:
            engine = await started(engines)
            one.kill()
            await answers_alone(engines, "alone")
            again = await select(engines, "one", X[::-1], "alone")
            assert again.answer.degraded
            before = await select(engines, "one", X[::-1], "event-3")
            assert before.answer.round == 4  # what was told before the server went away
            one.start()
            await comes_back(engines, "alone")
            assert engine.replica.learner.moments.rounds == 11
            told = await select(engines, "one", X, "alone")
            assert told.answer.arm == again.answer.arm
            assert engine.replica.learner.moments.rounds == 11
            assert engine.stats.degraded_selects == 1


async def test_a_server_that_hangs_is_waited_for_once_and_then_done_without():
    with server() as one:
        async with worker(one.url) as engines:
            await started(engines)
            one.signal(signal.SIGSTOP)
            assert (await select(engines, "one", X, "first")).answer.degraded
            async with asyncio.timeout(30):  # were each to wait for the timeout: 100 s
                for n in range(50):
                    assert (await select(engines, "one", X, f"alone-{n}")).answer.degraded
            one.signal(signal.SIGCONT)
            await comes_back(engines, "alone-7")


async def test_a_replica_that_takes_no_writes_is_done_without():
    with server() as primary, server() as one:
        async with worker(one.url) as engines:
            await started(engines)
            # Its own data would be gone with a real primary's: none listens there.
            primary.kill()
            one.do("REPLICAOF", "127.0.0.1", primary.port)
            await answers_alone(engines, "alone")
            one.do("REPLICAOF", "NO", "ONE")
            await comes_back(engines, "alone")


async def test_a_server_without_memory_is_done_without():
    with server() as one:
        async with worker(one.url) as engines:
            await started(engines)
            one.do("CONFIG", "SET", "maxmemory", "1mb")
            await answers_alone(engines, "alone")
            await asyncio.sleep(0.1)
            assert (await engines.get("one")).degraded
            one.do("CONFIG", "SET", "maxmemory", "0")
            await comes_back(engines, "alone")


async def test_a_server_that_loads_its_data_is_done_without():
    slow: Directives = {"key_load_delay": "3000", "loading_process_events_interval_bytes": "1024"}
    with server(**ON_DISK, **slow) as one:
        async with worker(one.url) as engines:
            await started(engines)
            one.do("MSET", *(word for n in range(300) for word in (f"key-{n}", "x" * 100)))
            one.do("BGREWRITEAOF")
            wait_for(lambda: not one.info("persistence")["aof_rewrite_in_progress"], "rewritten")
            one.restart(wait=False)
            wait_for(lambda: is_loading(one), "the server loads")
            await answers_alone(engines, "alone")
            await comes_back(engines, "alone")


def is_loading(one: Server) -> bool:
    try:
        return bool(one.info("persistence")["loading"])
    except redis.ConnectionError:
        return False


async def test_a_server_that_came_back_empty_is_started_from_anew(caplog):
    with server() as one:
        async with worker(one.url) as engines:
            engine = await started(engines)
            one.kill()
            await answers_alone(engines, "alone")
            one.start()
            await until(lambda: engine.gone, "the loss is noticed")
            assert "starting again from the store, 1 decisions made alone are lost" in caplog.text
            with pytest.raises(UnknownLearner):
                await reward(engines, "one", "alone", 1.0)
            assert engines.stats["one"].reloads == 1
            assert engines.stats["one"].dropped_decisions == 1
            await engines.put("one", {"dimension": 4})
            assert (await select(engines, "one", X, "new")).answer.round == 1
            assert engines.stats["one"].reloads == 1  # counted on, with the new engine


@pytest.mark.parametrize("seen_at", ["once", "when others have gone on"])
async def test_a_server_that_came_back_older_is_noticed_and_reloaded(tmp_path, caplog, seen_at):
    with server(**ON_DISK) as one:
        async with worker(one.url) as engines, worker(one.url) as other:
            engine = await started(engines)
            await copied(one, engine, tmp_path / "older")
            kept = engine.replica.learner.model.count
            await play(engines, "one", 20, seed=2, first=10, rewarded=1.0)
            assert engine.replica.learner.model.count == kept + 20
            if seen_at != "once":
                engine.house.keep = asleep  # type: ignore[method-assign]
            one.kill()
            restore(tmp_path / "older", one)
            one.start()
            if seen_at != "once":
                # More entries than before: their number alone tells nothing.
                await play(other, "one", 40, seed=3, first=100, rewarded=1.0)
                del engine.house.keep
            await until(lambda: engine.stats.reloads == 1, "the loss is noticed")
            assert "not the one we followed" in caplog.text
            await until(lambda: not engine.degraded, "it goes on")
            with pytest.raises(UnknownEvent):
                await reward(engines, "one", "event-29", 1.0)
            await select(engines, "one", X, "new")
            # This worker's own arms are cumulative: writing them again makes good the loss.
            rounds = 31 if seen_at == "once" else 71
            await until(lambda: engine.replica.learner.moments.rounds == rounds, "all rounds")
            await engine.run(engine.flush)
            peer = await other.get("one")
            await peer.run(peer.flush)
            assert peer.replica.learner.moments.rounds == rounds
            model, theirs = engine.replica.learner.model, peer.replica.learner.model
            assert model.count == theirs.count == kept + (0 if seen_at == "once" else 40)
            np.testing.assert_array_equal(model.s, theirs.s)


async def test_a_server_that_forgot_only_selects_is_noticed_too(tmp_path, caplog):
    with server(**ON_DISK) as one:
        async with worker(one.url) as engines:
            engine = await started(engines)
            await select(engines, "one", X, "a refresh, if one is due")
            await copied(one, engine, tmp_path / "older")
            before = engine.replica.learner.moments.rounds
            await play(engines, "one", 20, seed=2, first=10, rewarded=0.0)
            one.kill()
            restore(tmp_path / "older", one)
            one.start()
            await until(lambda: engine.stats.reloads == 1, "the loss is noticed")
            assert "reloaded" in caplog.text
            await until(lambda: not engine.degraded, "it goes on")
            await select(engines, "one", X, "new")
            await engine.run(engine.flush)
            assert engine.replica.learner.moments.rounds == before + 21
            assert engine.stats.reloads == 1


async def asleep() -> None:
    return None


async def copied(one: Server, engine: Engine, folder: Path) -> None:
    """The server's data as they are now."""
    await engine.run(engine.flush)
    one.do("BGREWRITEAOF")
    wait_for(lambda: not one.info("persistence")["aof_rewrite_in_progress"], "rewritten")
    shutil.copytree(one.folder / "appendonlydir", folder)


def restore(saved: Path, one: Server) -> None:
    shutil.rmtree(one.folder / "appendonlydir")
    shutil.copytree(saved, one.folder / "appendonlydir")


async def test_a_failover_by_sentinels_is_followed():
    with server() as primary, replica_of(primary) as replica, sentinel(primary) as watchers:
        async with worker(watchers.url) as engines, worker(watchers.url) as other:
            await started(engines)
            peer = await other.get("one")
            assert primary.do("WAIT", 1, 5000) == 1
            primary.kill()
            await answers_alone(engines, "alone")
            await comes_back(engines, "alone")
            engine = await engines.get("one")
            await play(engines, "one", 10, seed=3, first=50)
            assert replica.do("HGET", "lacuna:{one}:meta", "rounds") == b"21"
            await peer.run(peer.flush)
            np.testing.assert_array_equal(
                peer.replica.learner.model.s, engine.replica.learner.model.s
            )


async def test_a_slot_that_moves_takes_its_learner_along():
    with cluster(nodes=3) as three:
        async with worker(three.url) as engines:
            engine = await started(engines)
            source = three.owner("lacuna:{one}:meta")
            target = next(node for node in three.nodes if node is not source)
            slot = source.do("CLUSTER", "KEYSLOT", "lacuna:{one}:meta")
            assert isinstance(slot, int)
            ids = {node.port: bytes_of(node.do("CLUSTER", "MYID")) for node in three.nodes}
            target.do("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[source.port])
            source.do("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[target.port])
            keys = source.do("CLUSTER", "GETKEYSINSLOT", slot, 1_000)
            assert isinstance(keys, list)
            # With its keys on two nodes no script can run: the learner is away for as long.
            half = len(keys) // 2
            move(source, target, keys[:half])
            await answers_alone(engines, "alone")
            left = source.do("CLUSTER", "GETKEYSINSLOT", slot, 1_000)
            assert isinstance(left, list)
            move(source, target, left)
            for node in (target, source):
                node.do("CLUSTER", "SETSLOT", slot, "NODE", ids[target.port])
            await comes_back(engines, "alone")
            await play(engines, "one", 10, seed=3, first=50)
            assert engine.stats.reloads == 0
            assert target.do("HGET", "lacuna:{one}:meta", "rounds") == b"21"


def move(source: Server, target: Server, keys: list[bytes]) -> None:
    source.do("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys)


async def test_a_cluster_node_that_comes_back_is_used_again():
    with cluster(nodes=3, **ON_DISK) as three:
        async with worker(three.url) as engines:
            await started(engines)
            owner = three.owner("lacuna:{one}:meta")
            owner.kill()
            await answers_alone(engines, "alone")
            owner.start()
            await comes_back(engines, "alone")


async def test_while_alone_no_more_is_kept_than_was_agreed():
    with server(**ON_DISK) as one:
        async with worker(one.url, buffer_limit=5, buffer_bytes=600) as engines:
            engine = await started(engines)
            one.kill()
            for n in range(8):
                await select(engines, "one", X, f"alone-{n}")
            assert len(engine.alone) == 5
            assert engine.stats.dropped_decisions == 3
            one.start()
            await comes_back(engines, "alone-7")
            with pytest.raises(UnknownEvent):
                await reward(engines, "one", "alone-0", 1.0)
            assert engine.replica.learner.moments.rounds == 18


async def test_an_event_decided_by_two_workers_alone_is_counted_once():
    with server(**ON_DISK) as one:
        async with worker(one.url) as engines, worker(one.url) as other:
            mine = await started(engines)
            theirs = await other.get("one")
            await until(lambda: theirs.replica.learner.moments.rounds == 10, "they see all rounds")
            one.kill()
            await answers_alone(engines, "both")
            await answers_alone(other, "both")
            await answers_alone(other, "theirs")
            one.start()
            for engine in (mine, theirs):
                await until(lambda e=engine: not e.degraded, "the store is used again")
            for engine in (mine, theirs, mine):
                await engine.run(engine.flush)
                assert engine.replica.learner.moments.rounds <= 12
            assert mine.replica.learner.moments.rounds == 12
            assert mine.replica.learner.moments.arms == theirs.replica.learner.moments.arms
            assert mine.stats.lost_decisions + theirs.stats.lost_decisions == 1
            both = [await select(engines, "one", X, "both") for engines in (engines, other)]
            assert both[0].answer == both[1].answer


async def test_a_reward_that_meets_the_first_worker_to_come_back_is_not_refused_for_good():
    with server(**ON_DISK) as one:
        async with worker(one.url, others_back_s=600.0) as engines, worker(one.url) as other:
            mine = await started(engines)
            theirs = await other.get("one")
            one.kill()
            await answers_alone(engines, "mine")
            await answers_alone(other, "theirs")
            turn, theirs.alone.turn = theirs.alone.turn, asleep  # type: ignore[method-assign]
            one.start()
            await until(lambda: not mine.degraded, "the store is used again")
            with pytest.raises(StoreDown):
                await reward(engines, "one", "theirs", 1.0)
            theirs.alone.turn = turn  # type: ignore[method-assign]
            await until(lambda: not theirs.degraded, "they use it again")
            assert await reward(engines, "one", "theirs", 1.0) == ("recorded", 1.0)


async def test_a_select_whose_answer_was_lost_is_stored_once():
    """The server did it all, but the connection broke before it could say so."""
    with server(**ON_DISK) as one:
        async with worker(one.url) as engines:
            engine = await started(engines)
            lose_answers(engine, 1)
            told = await select(engines, "one", X, "lost")
            assert told.answer.degraded
            await comes_back(engines, "lost")
            assert engine.stats.lost_decisions == 0
            await engine.run(engine.flush)
            assert engine.replica.learner.moments.rounds == 11
            async with worker(one.url) as other:
                assert (await other.get("one")).replica.learner.moments.rounds == 11


def lose_answers(engine: Engine, count: int) -> None:
    """Of the next commits that write moments."""
    commit = engine.store.commit

    async def losing(given):
        nonlocal count
        done = await commit(given)
        if count and given.moments:
            count -= 1
            raise StoreUnavailable("after the server had done it")
        return done

    engine.store.commit = losing  # type: ignore[method-assign]


@pytest.mark.parametrize("has_field", [True, False])
async def test_a_write_in_doubt_that_was_merged_away_meanwhile_is_counted_once(has_field):
    with server() as one:
        async with (
            worker(one.url) as engines,
            worker(one.url, worker_silent_s=0.05, merge_interval_s=0.02) as other,
        ):
            await engines.put("one", {"dimension": 4})
            engine, peer = await engines.get("one"), await other.get("one")
            if has_field:
                await select(engines, "one", X, "first")
            rounds = int(has_field)
            lose_answers(engine, 1)
            engine.settings = replace(engine.settings, retry_first_s=0.6, retry_most_s=0.6)
            await select(engines, "one", X, "in doubt")
            await select(engines, "one", X, "alone")
            await until(lambda: peer.stats.merged_workers == 1, "it was taken for dead")
            await until(lambda: not engine.degraded, "it is back")
            for one_of in (engine, peer):
                await one_of.run(one_of.flush)
                assert one_of.replica.learner.moments.rounds == rounds + 2


async def test_a_worker_that_was_merged_away_while_alive_starts_a_new_field():
    with server() as one:
        async with worker(one.url, follow_interval_s=30) as engines, worker(one.url) as other:
            engine = await started(engines)
            await engine.run(engine.flush)
            was = engine.replica.own.worker
            peer = await other.get("one")
            await peer.run(lambda: peer.house._merge(was))
            assert peer.stats.merged_workers == 1
            await play(engines, "one", 5, seed=2, first=10)
            await engine.run(engine.flush)
            assert engine.replica.own.worker != was
            await peer.run(peer.flush)
            for one_of in (engine, peer):
                assert one_of.replica.learner.moments.rounds == 15
                assert one_of.replica.learner.moments.arms == engine.replica.learner.moments.arms
            assert sorted(map(len, await engine.store.moments())) == [4, 16]
