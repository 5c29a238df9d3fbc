"""One learner's state: what each script does, and what it refuses to do."""

from __future__ import annotations

import pytest

from service.store.learner_store import learner_names, sha1
from service.store.messages import (
    READY_S,
    Commit,
    LearnerGone,
    Snapshot,
    StoreBehind,
    StoredDecision,
)
from service.store.packing import DEFAULTED, REWARDED, Answer, answer, decision, pack_reward

ROW = bytes(1 + 8 * 2)  # d = 2


def a_decision(nonce: bytes = b"mine0000") -> bytes:
    return decision(Answer("arm", 0, 1, 0, 1.0, False, nonce), True, ROW)


def commit(worker: str = "worker", **given) -> Commit:
    return Commit(worker, given.pop("has_field", False), given.pop("position", 0), b"0-0", **given)


async def test_a_learner_is_made_once_and_changed_only_by_who_knows_it(store):
    assert await store.configure(None, b"{1}", "other") is None
    assert await store.configure(b"{2}", b"{1}", "") is None
    assert await store.configure(b"{}", b"{1}", "") is False
    loaded = await store.load()
    assert (loaded.config, loaded.born, loaded.counter("configured")) == (b"{1}", "birth", 1)
    assert await learner_names(store.client) == ["one"]


async def test_another_shape_is_another_birth_and_takes_a_learner_without_rounds(store):
    assert await store.configure(b"{}", b"{1}", "second", reborn=True) is False
    assert (await store.load()).born == "second"
    await store.commit(commit(decisions=[(b"event", a_decision())]))
    assert await store.configure(b"{1}", b"{2}", "third", reborn=True) is None


async def test_rounds_are_numbered_in_the_order_of_the_store(store):
    events = [(f"event-{n}".encode(), a_decision()) for n in range(3)]
    done = await store.commit(commit(decisions=events))
    assert done.decisions == [1, 2, 3]
    done = await store.commit(commit(decisions=[*events[:1], (b"new", a_decision())]))
    assert answer(done.decisions[0]).round == 1
    assert done.decisions[1] == 4
    assert await store.recent(2) == ["new", "event-2"]
    assert await store.pending() == 4


async def test_moments_are_not_written_with_a_repetition_among_the_decisions(store):
    done = await store.commit(commit(moments=b"1", decisions=[(b"event", a_decision())]))
    assert done.moments_written
    mine_again = commit(has_field=True, moments=b"2", decisions=[(b"event", a_decision())])
    assert (await store.commit(mine_again)).moments_written
    theirs = commit("other", moments=b"3", decisions=[(b"event", a_decision(b"theirs00"))])
    assert not (await store.commit(theirs)).moments_written
    assert await store.moments() == {b"worker": b"2"}


async def test_a_reward_is_claimed_once(store):
    await store.commit(commit(decisions=[(b"event", a_decision())]))
    one, two = pack_reward(1.0), pack_reward(2.0)
    claims = [(b"event", one, REWARDED), (b"event", two, REWARDED), (b"event", two, DEFAULTED)]
    done = await store.commit(commit(rewards=[*claims, (b"nobody", one, REWARDED)]))
    assert [status for status, _ in done.rewards] == [
        "recorded", "duplicate", "duplicate", "unknown",
    ]  # fmt: skip
    assert {stands for _, stands in done.rewards[:3]} == {one}
    assert done.appended == len(done.log) == 1
    meta = await store.meta()
    assert (meta[b"recorded"], meta[b"duplicates"], b"defaults" in meta) == (b"1", b"1", False)
    assert await store.pending() == 0


async def test_a_commit_to_another_birth_or_ahead_of_the_log_does_nothing(store):
    with pytest.raises(StoreBehind):
        await store.commit(commit(position=1, decisions=[(b"event", a_decision())]))
    await store.forget("second")
    with pytest.raises(LearnerGone):
        await store.commit(commit(moments=b"1", decisions=[(b"event", a_decision())]))
    assert await store.moments() == {}
    assert await store.pending() == 0


async def test_a_refresh_is_marked_once_per_power(store):
    for power, entries in ((2, 1), (2, 1), (4, 2), (2, 2)):
        appended, log = await store.mark(0, b"0-0", power, b"mark")
        assert (appended, len(log)) == (entries, entries)


async def test_a_snapshot_goes_only_forward_and_only_by_the_rules_that_hold(store):
    for power in (2, 4, 8):
        _, log = await store.mark(0, b"0-0", power, b"mark")
    ids = [b"0-0", *(id_ for id_, _, _ in log)]

    def at(position: int, configured: int = 0, upto: bytes = b"") -> Snapshot:
        return Snapshot(configured, position, upto or ids[position], b"model", 0, 10)

    assert await store.snapshot(at(1))
    assert not await store.snapshot(at(1))
    assert not await store.snapshot(at(0))
    assert not await store.snapshot(at(2, configured=1))
    assert not await store.snapshot(at(2, upto=ids[2] + b"9"))  # of another log
    assert not await store.snapshot(at(4, upto=ids[3]))  # ahead of this one
    assert await store.snapshot(at(2))
    await store.configure(b"{}", b"{1}", "")
    assert not await store.snapshot(at(3))
    assert (await store.load()).model[b"position"] == b"2"


async def test_a_merge_of_sums_that_no_longer_stand_is_refused(store):
    await store.commit(commit(moments=b"1"))
    assert not await store.merge("worker", b"old", None, b"base")
    assert not await store.merge("worker", b"1", b"a base", b"base")
    assert await store.merge("worker", b"1", None, b"base")
    assert not await store.merge("worker", b"1", b"base", b"twice")
    assert await store.moments() == {b"base": b"base"}
    assert await store.workers() == 0
    done = await store.commit(commit(has_field=True, moments=b"2"))
    assert (done.field_lost, done.moments_written, done.merged_sha1) == (True, False, sha1(b"1"))


async def test_what_an_import_leaves_behind_expires(store):
    await store.put_log("birth2", [b"row"], 1)
    await store.put_decisions("birth2", [StoredDecision("event", a_decision(), 5_000, 1)])
    for part in ("rewards", "due"):
        assert 0 < await store.client.ttl(store.keys.ready("birth2", part)) <= READY_S
    assert (await store.load()).born == "birth"
    await store.restore(b"{9}", b"sums", {"born": "birth2"}, {}, ["event"])
    loaded = await store.load()
    assert (loaded.config, loaded.born, loaded.moments) == (b"{9}", "birth2", {b"base": b"sums"})
    assert await store.client.ttl(store.keys.rewards) == -1
    assert await store.client.ttl(store.keys.due) == -1
    assert [one.event_id for one in await store.pending_decisions()] == ["event"]


async def test_event_ids_cannot_leave_their_key(store):
    strange = ["{two}", "a:b", "\n", "é", "", "x" * 300]
    events = [(event_id.encode(), a_decision()) for event_id in strange]
    await store.commit(commit(decisions=events))
    keys = [key async for key in store.client.scan_iter("*")]
    assert all(key.startswith(b"lacuna:{one}:") or key == b"lacuna:learners" for key in keys)
    assert all(found is not None for found in await store.decisions(strange))
