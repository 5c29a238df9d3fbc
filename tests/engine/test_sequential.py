"""Sequential traffic through engine and server chooses as the learner in process does."""

from __future__ import annotations

import numpy as np
import pytest

from service.engine.configuration import Configuration
from service.engine.registry import Engines
from service.learner import Arms, Learner

ROUNDS = 300


def arms_of(rng, d, k):
    x = rng.normal(size=(k, d)) @ np.linspace(0.2, 1.0, d * d).reshape(d, d)
    x[rng.random((k, d)) < 0.3] = np.nan
    return x


@pytest.mark.parametrize("preset", ["practical", "paper"])
@pytest.mark.parametrize("policy", ["clbbf", "e-clbbf", "oful", "thompson", "random"])
async def test_arms_are_those_of_the_learner_in_process(engines: Engines, policy, preset):
    config = {
        "dimension": 4, "policy": policy, "preset": preset, "seed": 5, "epsilon": 0.05,
        "horizon": 40,
    }  # fmt: skip
    await engines.put("one", config)
    alone = Learner(Configuration.from_dict(config).learner)
    rng = np.random.default_rng(3)
    refreshes = 0
    for t in range(ROUNDS):
        k = int(rng.integers(1, 9))
        x = arms_of(rng, 4, k)
        due = alone.next_refresh
        choices = alone.select(x)
        refreshes += alone.next_refresh != due
        event = f"event-{t}"
        ids = [f"arm-{a}" for a in range(k)]
        told = await engines.use(
            "one", lambda engine, x=x, ids=ids, event=event: engine.select(Arms.of(x), ids, event)
        )
        assert told.answer.index == choices.index[0], t
        assert told.answer.probability == pytest.approx(choices.probability[0])
        assert told.answer.round == t + 1
        assert told.answer.model_version == choices.model_version
        assert not told.answer.degraded
        if t % 5 != 4:  # some events are never rewarded
            y = float(rng.normal() + np.nansum(x[choices.index[0]]))
            alone.reward(choices, y)
            status, stands = await engines.use(
                "one", lambda engine, event=event, y=y: engine.reward(event, y)
            )
            assert (status, stands) == ("recorded", y)
    engine = await engines.get("one")
    learner = engine.replica.learner
    np.testing.assert_allclose(learner.moments.z, alone.moments.z, rtol=1e-12)
    np.testing.assert_array_equal(learner.moments.p, alone.moments.p)
    np.testing.assert_allclose(learner.model.s, alone.model.s, rtol=1e-10, atol=1e-10)
    assert engine.stats.refreshes == refreshes
    if policy in ("clbbf", "thompson"):
        assert refreshes >= 7
