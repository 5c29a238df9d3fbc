"""A start: the snapshot, the rows a refresh may need, and the log after it."""

from __future__ import annotations

from service.learner import Estimate, Rows, complete, load_model
from service.store import packing
from service.store.learner_store import LearnerStore, Loaded

from .configuration import Configuration
from .replica import Replica, estimate_of, rows_of
from .stats import Stats

MARKS = 64  # refresh marks there can be in a log: one per power of two


async def load(store: LearnerStore, loaded: Loaded, stats: Stats) -> Replica:
    replica = Replica(Configuration.from_json(loaded.config), stats)
    replica.take_moments(loaded.moments)
    snapshot = loaded.model.get(b"snapshot")
    if snapshot is not None:
        load_model(replica.learner, snapshot)
        replica.position = int(loaded.model[b"position"])
        replica.last_id = loaded.model[b"upto"]
        if replica.learner.policy.refreshes:
            await _load_history(store, replica, int(loaded.model[b"kept"]))
    while entries := await store.log(replica.last_id):
        await replica.fold(entries)
    estimate = loaded.model.get(b"estimate")
    if estimate is not None and replica.learner.policy.completes:
        # The one that was in use: a restart goes on with it as the worker before would have.
        replica.learner.estimate = estimate_of(estimate)
    return replica


async def _load_history(store: LearnerStore, replica: Replica, wanted: int) -> None:
    """The rows up to the snapshot that were not frozen, as they stood then.

    They are in the log as they were chosen; those before the last refresh mark are completed with
    it once more. x̄ agrees with x where x was observed, so this gives the same bits as then.
    """
    learner = replica.learner
    if wanted == 0:
        # No row can be completed anew, be it that another policy kept none: all of S is frozen.
        learner.history.frozen_s = learner.model.s.copy()
        learner.history.frozen_b = learner.model.b.copy()
        return
    newest_first: list[bytes] = []
    mark: packing.Mark | None = None
    since_mark = 0
    async for batch in store.log_back(replica.last_id, wanted + MARKS):
        for _, kind, value in batch:
            if kind == b"m":
                if mark is None:
                    mark = packing.read_mark(value)
                    since_mark = len(newest_first)
            elif len(newest_first) < wanted:
                newest_first.append(value)
    rows = rows_of(newest_first[::-1], learner.config.dimension)
    if mark is not None and since_mark < len(rows):
        _complete_before(rows, len(rows) - since_mark, mark)
    learner.history.append(rows)


def _complete_before(rows: Rows, count: int, mark: packing.Mark) -> None:
    estimate = Estimate.of(mark.p_hat, mark.nu, mark.sigma, mark.arms)
    complete(rows.z[:count], rows.observed[:count], estimate)
