"""A restart, and an export imported elsewhere, decide exactly as the original would have."""

from __future__ import annotations

import numpy as np
import pytest

from service.engine.registry import Engines
from service.engine.transfer import export_learner, import_learner
from service.engine.views import model_view, recent_decisions, statistics
from service.errors import BadRequest, UnknownLearner
from tests.engine.traffic import POLICIES, features, play, reward, select

PLAYED, NEXT = 300, 200


def configuration(policy: str, preset: str) -> dict[str, object]:
    return {
        "dimension": 4, "policy": policy, "preset": preset, "seed": 5, "epsilon": 0.05,
        "horizon": 40, "reward_wait_s": 3_600, "default_reward": 0,
    }  # fmt: skip


@pytest.mark.parametrize("preset", ["practical", "paper"])
@pytest.mark.parametrize("policy", POLICIES)
async def test_an_import_decides_as_the_original(engines: Engines, policy, preset):
    await engines.put("original", configuration(policy, preset))
    await play(engines, "original", PLAYED, seed=1)
    blob = b"".join(await export_learner(engines, "original"))
    await import_learner(engines, "copy", blob)
    expected = await play(engines, "original", NEXT, seed=2, first=PLAYED)
    assert await play(engines, "copy", NEXT, seed=2, first=PLAYED) == expected
    one, other = await engines.get("original"), await engines.get("copy")
    np.testing.assert_array_equal(one.replica.learner.model.s, other.replica.learner.model.s)
    np.testing.assert_array_equal(one.replica.learner.model.b, other.replica.learner.model.b)


@pytest.mark.parametrize("preset", ["practical", "paper"])
@pytest.mark.parametrize("policy", POLICIES)
async def test_a_restart_decides_as_before(engines: Engines, client, settings, policy, preset):
    """Two learners with one history; one of them is restarted in the middle."""
    for name in ("restarted", "kept"):
        await engines.put(name, configuration(policy, preset))
        await play(engines, name, PLAYED, seed=1)
    expected = await play(engines, "kept", NEXT, seed=2, first=PLAYED)
    await engines.stop()
    again = Engines(client, settings)
    await again.start()
    assert await play(again, "restarted", NEXT, seed=2, first=PLAYED) == expected
    await again.stop()


async def test_pending_and_rewarded_decisions_go_with_an_export(engines: Engines):
    await engines.put("original", configuration("clbbf", "practical"))
    rng = np.random.default_rng(0)
    first = await select(engines, "original", features(rng, 4, 5), "waits")
    await select(engines, "original", features(rng, 4, 5), "rewarded")
    await reward(engines, "original", "rewarded", 2.5)
    await import_learner(engines, "copy", b"".join(await export_learner(engines, "original")))
    again = await select(engines, "copy", features(rng, 4, 5), "waits")
    assert again.answer == first.answer
    assert await reward(engines, "copy", "waits", 1.0) == ("recorded", 1.0)
    assert await reward(engines, "copy", "rewarded", 1.0) == ("duplicate", 2.5)
    assert await reward(engines, "original", "waits", 3.0) == ("recorded", 3.0)
    told = await statistics(await engines.get("copy"))
    assert (told["rounds"], told["rewards"], told["pending"]) == (2, 2, 0)


async def test_an_import_takes_the_place_of_what_was_there(engines: Engines):
    await engines.put("original", configuration("clbbf", "practical"))
    await play(engines, "original", 40, seed=1)
    blob = b"".join(await export_learner(engines, "original"))
    await engines.put("copy", {"dimension": 7})
    await play(engines, "copy", 20, seed=3, d=7)
    await import_learner(engines, "copy", blob)
    expected = await play(engines, "original", 20, seed=2, first=40)
    assert await play(engines, "copy", 20, seed=2, first=40) == expected


async def test_an_import_that_cannot_be_used_changes_nothing(engines: Engines):
    await engines.put("one", configuration("clbbf", "practical"))
    await play(engines, "one", 20, seed=1)
    blob = b"".join(await export_learner(engines, "one"))
    before = await statistics(await engines.get("one"))
    damaged = bytearray(blob)
    damaged[len(blob) // 2] ^= 1
    for bad in (b"", b"nonsense", blob[:-1], bytes(damaged), blob + b"x"):
        with pytest.raises(BadRequest, match="body"):
            await import_learner(engines, "one", bad)
    after = await statistics(await engines.get("one"))
    assert (before["rounds"], before["rewards"]) == (after["rounds"], after["rewards"])


async def test_only_a_learner_that_exists_can_be_exported(engines: Engines):
    with pytest.raises(UnknownLearner):
        await export_learner(engines, "nobody")


async def test_views_tell_what_happened(engines: Engines):
    await engines.put("one", {"dimension": 4, "seed": 1})
    await play(engines, "one", 10, seed=1, rewarded=0.0)
    await reward(engines, "one", "event-9", 0.5)
    await reward(engines, "one", "event-9", 0.7)
    engine = await engines.get("one")
    told = await statistics(engine)
    assert (told["rounds"], told["rewards"], told["pending"]) == (10, 1, 9)
    assert (told["duplicates"], told["mean_reward"], told["workers"]) == (1, 0.5, 1)
    assert len(told["observed_rate"]) == 4
    assert 0.5 < told["p_hat"] < 0.9
    assert told["bytes_held"] > 1_000
    latest = await recent_decisions(engine, 3)
    assert [one["event_id"] for one in latest] == ["event-9", "event-8", "event-7"]
    assert [one["round"] for one in latest] == [10, 9, 8]
    assert (latest[0]["reward"], latest[0]["status"]) == (0.5, "rewarded")
    assert (latest[1]["reward"], latest[1]["status"]) == (None, "pending")
    view = await model_view(engine)
    assert np.shape(view["sigma"]) == (4, 4)
    assert np.shape(view["gram"]) == (5, 5)
    assert view["counts"]["rewards"] == 1
