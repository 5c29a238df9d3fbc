"""What is kept for people to look at: samples of the counters, explanations of decisions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.store.explanation import Explanation
from service.store.messages import EXPLAINED, TIMELINE_KEPT
from service.store.packing import UnreadableValue

INTERVAL_MS = 5_000


@given(k=st.integers(1, 6), d=st.integers(1, 20), seed=st.integers(0, 2**32 - 1))
def test_an_explanation_survives_packing_to_the_bit(k, d, seed):
    rng = np.random.default_rng(seed)
    ids = [f'{a}"\u2028<é>' for a in range(k)]
    mean, bonus, *features = rng.normal(size=(2 + d, k))
    observed = rng.random((k, d)) < 0.5
    given = Explanation(ids, mean, bonus, observed, np.stack(features, axis=1))
    read = Explanation.unpack(given.pack())
    assert read.arm_ids == ids
    for name in ("mean", "bonus", "observed", "features"):
        np.testing.assert_array_equal(getattr(read, name), getattr(given, name))


def test_an_explanation_of_another_version_is_refused():
    with pytest.raises(UnreadableValue):
        Explanation.unpack(b"\x02" + bytes(20))


async def test_an_interval_has_one_sample_and_the_first_stands(store):
    while True:  # both within one interval
        await store.client.delete(store.keys.timeline)
        before = await store.now_ms() // INTERVAL_MS
        first = await store.sample(INTERVAL_MS, 1, 2.0, 3.0)
        second = await store.sample(INTERVAL_MS, 4, 5.0, 6.0)
        if await store.now_ms() // INTERVAL_MS == before:
            break
    assert (first, second) == (True, False)
    (sample,) = await store.samples()
    assert (sample.rounds, sample.rewards, sample.sum_y, sample.sum_yy) == (0, 1, 2.0, 3.0)
    assert sample.at_ms == before * INTERVAL_MS


async def test_only_so_many_samples_are_kept(store):
    await store.sample(INTERVAL_MS, 0, 0.0, 0.0)
    ((_, fields),) = await store.client.xrange(store.keys.timeline)
    await store.client.delete(store.keys.timeline)
    for number in range(1, TIMELINE_KEPT + 1):
        await store.client.xadd(store.keys.timeline, fields, id=f"{number}-0")
    assert await store.sample(INTERVAL_MS, 7, 1.0, 1.0)
    samples = await store.samples()
    assert len(samples) == TIMELINE_KEPT
    assert samples[0].at_ms == 2
    assert samples[-1].rewards == 7


async def test_the_latest_explanations_are_kept_and_each_once(store):
    await store.keep_explained([(b"%d" % n, b"value %d" % n) for n in range(EXPLAINED + 5)])
    await store.keep_explained([(b"20", b"again")])
    kept = await store.explained()
    assert kept == [str(n) for n in range(EXPLAINED + 4, 4, -1)]
    assert await store.explanation("20") == b"again"
    assert await store.explanation("4") is None
    assert await store.client.hlen(store.keys.explained) == EXPLAINED


async def test_a_learner_that_was_reset_takes_nothing_of_its_former_life(store):
    await store.sample(INTERVAL_MS, 1, 1.0, 1.0)
    await store.keep_explained([(b"e", b"value")])
    await store.forget("second")
    assert await store.samples() == []
    assert await store.explained() == []
    assert await store.sample(INTERVAL_MS, 2, 2.0, 2.0) is False
    await store.keep_explained([(b"e", b"value")])
    assert await store.explained() == []
