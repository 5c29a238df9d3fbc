"""What a learner looks like from outside: statistics, latest decisions, the model."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from service.errors import UnknownEvent
from service.learner.estimate import observed_rate
from service.store import packing
from service.store.explanation import Explanation
from service.store.messages import Sample

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


async def recent_decisions(
    engine: Engine, limit: int, *, explained_only: bool = False
) -> list[dict[str, Any]]:
    """The latest, newest first; those that have expired are left out."""
    async with store_errors():
        explained = await engine.store.explained()
        event_ids = (explained if explained_only else await engine.store.recent(limit))[:limit]
        records = await engine.store.decisions(event_ids)
    return [
        _decision(event_id, record, event_id in explained)
        for event_id, record in zip(event_ids, records, strict=True)
        if record is not None
    ]


async def one_decision(engine: Engine, event_id: str) -> dict[str, Any]:
    """With what its arms were worth when it was made, where that is still known."""
    async with store_errors():
        (record,) = await engine.store.decisions([event_id])
        found = await engine.store.explanation(event_id)
    if record is None:
        raise UnknownEvent(event_id)
    return {
        "decision": _decision(event_id, record, found is not None),
        "arms": None if found is None else _worth(Explanation.unpack(found)),
    }


def _decision(event_id: str, record: bytes, explained: bool) -> dict[str, Any]:
    answer = packing.answer(record)
    return {
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
        "explained": explained,
    }


def _worth(found: Explanation) -> list[dict[str, Any]]:
    return [
        {
            "id": arm_id,
            "score": float(found.mean[row] + found.bonus[row]),
            "mean": float(found.mean[row]),
            "bonus": float(found.bonus[row]),
            "observed": found.observed[row].astype(int).tolist(),
            "features": found.features[row].tolist(),
        }
        for row, arm_id in enumerate(found.arm_ids)
    ]


async def timeline(engine: Engine) -> dict[str, Any]:
    """What happened in each interval, oldest first; those in which nothing did are left out."""
    model, interval_ms = engine.replica.learner.model, engine.settings.timeline_interval_ms
    async with store_errors():
        samples = await engine.store.samples()
        rounds = int((await engine.store.meta()).get(b"rounds", b"0"))
        now_ms = await engine.store.now_ms()
    # The interval that is not over yet ends with what is known now.
    end_ms = now_ms - now_ms % interval_ms + interval_ms
    samples.append(Sample(end_ms, rounds, model.count, model.sum_y, model.sum_yy))
    points = [
        {
            "at": (now.at_ms - interval_ms) / 1_000,
            "selects": max(0, now.rounds - before.rounds),
            "rewards": now.rewards - before.rewards,
            "sum": now.sum_y - before.sum_y,
            "sum_squares": now.sum_yy - before.sum_yy,
        }
        for before, now in pairwise(samples)
        # fewer than before: the store came back older in between
        if now.rewards >= before.rewards and now != replace(before, at_ms=now.at_ms)
    ]
    return {"interval_s": interval_ms / 1_000, "points": points}


async def model_view(engine: Engine, *, matrices: bool = True) -> dict[str, Any]:
    """The estimate and the model as this worker holds them; no estimate yet: nu and sigma None."""
    learner = engine.replica.learner
    estimate, model = learner.estimate, learner.model
    quick = learner.config.dimension <= engine.settings.inline_dimension
    if quick and learner.moments.arms and learner.estimate_due():
        # A worker that gets no selects has the moments of those that do, but has estimated nothing
        # from them. Only shown: what it chooses by changes with its own selects.
        estimate = learner.new_estimate()
    _, widths = model.score(np.eye(len(model.b)))
    return {
        "nu": None if estimate is None else estimate.nu.tolist(),
        "sigma": estimate.sigma.tolist() if matrices and estimate is not None else None,
        "p_hat": None if estimate is None else estimate.p_hat,
        "theta": model.theta.tolist(),  # the intercept first
        "uncertainty": widths.tolist(),  # ‖e_j‖_{V⁻¹}
        "gram": model.gram().tolist() if matrices else None,
        "ridge": model.ridge,
        "counts": {
            "rounds": learner.moments.rounds,
            "arms": learner.moments.arms,
            "rewards": model.count,
            "history_rows": len(learner.history),
            "next_refresh": learner.next_refresh if learner.policy.refreshes else None,
        },
    }
