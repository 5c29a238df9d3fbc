"""A start: the snapshot and the log after it at once, the rows a refresh may need aside."""

from __future__ import annotations

import asyncio
import logging

from service.learner import Estimate, Rows, complete, load_model
from service.store import packing
from service.store.errors import StoreError
from service.store.learner_store import LearnerStore
from service.store.messages import Loaded

from .configuration import Configuration
from .replica import INLINE_ROWS, Replica, estimate_of, rows_of
from .stats import Stats

log = logging.getLogger("lacuna.engine")

MARKS = 64  # refresh marks there can be in a log: one per power of two
BEHIND = 1_024  # entries that a worker may be behind whoever takes a snapshot
READ_AGAIN_S = 0.5


async def load(store: LearnerStore, loaded: Loaded, stats: Stats) -> Replica:
    replica = Replica(Configuration.from_json(loaded.config), stats)
    learner = replica.learner
    replica.take_moments(loaded.moments)
    replica.marked = loaded.counter("mark")
    snapshot = loaded.model.get(b"snapshot")
    if snapshot is not None:
        load_model(learner, snapshot)
        replica.position = int(loaded.model[b"position"])
        replica.last_id = loaded.model[b"upto"]
    # Before the history, so that nobody who waits for the start waits for that.
    entries = await store.log(replica.last_id)
    kept = 0
    if snapshot is not None:
        kept = int(loaded.model[b"kept"])
        if kept > 0 and learner.policy.refreshes:
            d, upto = learner.config.dimension, replica.last_id
            replica.read_history(lambda: _history(store, upto, kept, d))
        else:
            # No row can be completed anew, be it that another policy kept none: S is frozen.
            learner.history.frozen_s = learner.model.s.copy()
            learner.history.frozen_b = learner.model.b.copy()
    try:
        if replica.busy and kept <= INLINE_ROWS:
            await replica.settled()  # a refresh that is due would have to wait for the history
        while entries:
            await replica.fold(entries)
            entries = await store.log(replica.last_id)
    except BaseException:
        await replica.give_up()
        raise
    estimate = loaded.model.get(b"estimate")
    if estimate is not None and learner.policy.completes:
        # The one that was in use: a restart goes on with it as the worker before would have.
        learner.estimate = estimate_of(estimate)
    return replica


def entries_to_keep(rows: int) -> int:
    """Of the log before a snapshot. More than a refresh needs: one worker may cut the log while
    another is a little behind, or still reads what an older snapshot left it."""
    return rows + max(rows // 8, BEHIND) + MARKS


async def _history(store: LearnerStore, upto: bytes, kept: int, d: int) -> list[Rows] | None:
    """The rows up to the snapshot that were not frozen, as they stood then; None if some are gone.

    They are in the log as they were chosen; those before the last refresh mark are completed with
    it once more. x̄ agrees with x where x was observed, so this gives the same bits as then.
    """
    while True:
        try:
            return await _read_history(store, upto, kept, d)
        except StoreError as error:
            log.warning("learner %s: its history cannot be read yet: %s", store.name, error)
            await asyncio.sleep(READ_AGAIN_S)


async def _read_history(store: LearnerStore, upto: bytes, kept: int, d: int) -> list[Rows] | None:
    newest_first: list[Rows] = []
    estimate: Estimate | None = None
    missing = kept
    async for page in store.rows_back(upto, kept + MARKS):
        rows = rows_of(packing.joined_rows(page.rows, d))
        since_mark = page.since_mark if estimate is None else 0
        if estimate is None and page.mark is not None:
            estimate = estimate_of(page.mark)
        if estimate is not None:
            before = len(rows) - since_mark
            await asyncio.to_thread(complete, rows.z[:before], rows.observed[:before], estimate)
        newest_first.append(_last(rows, missing))
        missing -= len(newest_first[-1])
        if missing == 0:
            break
    return None if missing > 0 else newest_first[::-1]


def _last(rows: Rows, count: int) -> Rows:
    start = max(0, len(rows) - count)
    return Rows(rows.z[start:], rows.observed[start:], rows.y[start:])
