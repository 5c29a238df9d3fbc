"""What a learner looks like from outside: statistics, latest decisions, the model."""

from __future__ import annotations

from typing import Any

import numpy as np

from service.learner.estimate import observed_rate
from service.store import packing

from .edge import store_errors
from .engine import Engine

STATUS = {packing.PENDING: "pending", packing.REWARDED: "rewarded", packing.DEFAULTED: "defaulted"}


async def statistics(engine: Engine) -> dict[str, Any]:
    """As all workers together have counted; bytes as the server holds them."""
    store, learner = engine.store, engine.replica.learner
    async with store_errors():
        meta = await store.meta()
        pending = await store.pending()
        workers = await store.workers()
        bytes_held = await store.bytes_held(pending)
    counted = {
        name: int(meta.get(name.encode(), b"0"))
        for name in ("rounds", "recorded", "defaults", "duplicates", "late")
    }
    moments, model = learner.moments, learner.model
    rates = np.diagonal(moments.p) / max(1, moments.arms)
    return {
        "rounds": counted["rounds"],
        "rewards": counted["recorded"] + counted["defaults"],
        "pending": pending,
        "mean_reward": model.sum_y / model.count if model.count else None,
        "arms": moments.arms,
        "observed_rate": rates.tolist(),
        "p_hat": observed_rate(moments) if moments.arms else None,
        "defaults": counted["defaults"],
        "duplicates": counted["duplicates"],
        "late": counted["late"],
        "bytes_held": bytes_held,
        "workers": workers,
        "staleness_s": engine.staleness_s,
        "degraded": engine.degraded,
    }


async def recent_decisions(engine: Engine, limit: int) -> list[dict[str, Any]]:
    """The latest, newest first; those that have expired are left out."""
    async with store_errors():
        event_ids = await engine.store.recent(limit) if limit > 0 else []
        records = await engine.store.decisions(event_ids)
    listed = []
    for event_id, record in zip(event_ids, records, strict=True):
        if record is not None:
            answer = packing.answer(record)
            listed.append(
                {
                    "event_id": event_id,
                    "arm": answer.arm,
                    "index": answer.index,
                    "arms": answer.arms,
                    "round": answer.round,
                    "probability": answer.probability,
                    "model_version": answer.model_version,
                    "degraded": answer.degraded,
                    "reward": answer.reward,
                    "status": STATUS[answer.state],
                }
            )
    return listed


async def model_view(engine: Engine) -> dict[str, Any]:
    """The estimate and the model as this worker holds them; no estimate yet: nu and sigma None."""
    learner = engine.replica.learner
    estimate, model = learner.estimate, learner.model
    return {
        "nu": None if estimate is None else estimate.nu.tolist(),
        "sigma": None if estimate is None else estimate.sigma.tolist(),
        "p_hat": None if estimate is None else estimate.p_hat,
        "theta": model.theta.tolist(),  # the intercept first
        "gram": model.gram().tolist(),
        "ridge": model.ridge,
        "counts": {
            "rounds": learner.moments.rounds,
            "arms": learner.moments.arms,
            "rewards": model.count,
            "history_rows": len(learner.history),
            "next_refresh": learner.next_refresh if learner.policy.refreshes else None,
        },
    }
