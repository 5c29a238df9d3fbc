"""A learner's whole state as one file, and back: what was imported decides as the original would.

    kind EXPORT · scalars: configuration, counters, decisions · arrays: the learner, the records

A decision is its event id, time to live, time until it is due, and the length of its record; the
records lie one behind the other. Times are spans, so that they hold on any server's clock.
"""

from __future__ import annotations

import asyncio
from typing import Any

from service.errors import BadRequest
from service.learner import BadState, Learner, dump_model, dump_moments, dump_parts, load
from service.learner.codec import Kind, pack_parts, unpack
from service.store import packing
from service.store.learner_store import LearnerStore
from service.store.messages import RECENT, StoredDecision

from .configuration import MAX_SECONDS, Configuration
from .edge import store_errors
from .engine import Engine
from .registry import Engines, check_name, new_birth
from .replica import estimate_bytes

COUNTERS = ("rounds", "mark", "recorded", "defaults", "duplicates", "late")
ATTEMPTS = 5  # to read the decisions while nobody appends to the log
PART = 1_000  # of the log or the decisions, per pipeline


async def export_learner(engines: Engines, name: str) -> list[bytes]:
    """The file, in parts that follow each other."""

    async def exported(engine: Engine) -> list[bytes]:
        return await engine.run(lambda: _export(engine))

    async with store_errors():
        return await engines.use(name, exported)


async def import_learner(engines: Engines, name: str, blob: bytes) -> None:
    """In place of what the learner was, or as a new one; all of it or nothing."""
    check_name(name)
    try:
        imported = await asyncio.to_thread(_Import, blob)  # hundreds of MB, perhaps
    except BadState as error:
        raise BadRequest("body", str(error)) from error
    del blob  # the caller has let go of it, too
    async with store_errors():
        await imported.put(LearnerStore(engines.client, name))


async def _export(engine: Engine) -> list[bytes]:
    store = engine.store
    for _ in range(ATTEMPTS):
        await engine.flush()
        replica = engine.replica
        await replica.settled()
        decisions = await store.pending_decisions()
        recent = await store.recent(RECENT)
        listed = {one.event_id for one in decisions}
        others = [event_id for event_id in recent if event_id not in listed]
        decisions += await store.stored_decisions(others)
        meta = await store.meta()
        if int(meta.get(b"appended", b"0")) == replica.position:
            break
    else:
        # Others append faster than we read. What is no longer pending may be in the model
        # already; to leave it out is to count it once at the most.
        pending = {one.event_id for one in await store.pending_decisions()}
        decisions = [one for one in decisions if one.due_ms is None or one.event_id in pending]
    now_ms = await store.now_ms()
    scalars = {
        "configuration": replica.configuration.to_dict(),
        "counters": {name: int(meta.get(name.encode(), b"0")) for name in COUNTERS},
        "decisions": [
            [one.event_id, one.ttl_ms, _until(one.due_ms, now_ms), len(one.record)]
            for one in decisions
        ],
        "recent": recent,
    }
    records = [b"".join(one.record for one in decisions)]  # there may be very many

    def packed() -> list[bytes]:
        arrays = {"learner": dump_parts(replica.learner), "records": records}
        return pack_parts(Kind.EXPORT, scalars, arrays)

    # Nothing changes meanwhile: only this engine's task, which waits, would.
    return await asyncio.to_thread(packed)


def _until(due_ms: int | None, now_ms: int) -> int | None:
    return None if due_ms is None else max(0, due_ms - now_ms)


class _Import:
    """An export, read and checked: nothing of it is stored before all of it is known to be good."""

    def __init__(self, blob: bytes) -> None:
        scalars, arrays = unpack(Kind.EXPORT, blob)
        try:
            self.configuration = Configuration.from_dict(scalars["configuration"])
            self.counters = {name: _whole(scalars["counters"][name]) for name in COUNTERS}
            self.recent = [_event_id(one) for one in scalars["recent"]][:RECENT]
            listed = [
                (_event_id(event_id), _span(ttl), None if due is None else _span(due), _whole(size))
                for event_id, ttl, due, size in scalars["decisions"]
            ]
            learner, records = arrays["learner"].data, arrays["records"].data
        except BadRequest as error:
            raise BadState(f"this export's configuration cannot be used: {error}") from error
        except (KeyError, TypeError, ValueError) as error:
            raise BadState(
                f"this export lacks a part, or has one of the wrong kind: {error}"
            ) from error
        self.learner: Learner = load(learner)
        if self.learner.config != self.configuration.learner:
            raise BadState("this export's learner is not of its configuration")
        self.decisions: list[StoredDecision] = []
        start = 0
        for event_id, ttl_ms, due_in_ms, size in listed:
            record = bytes(records[start : start + size])
            _check_record(record, size, self.configuration.learner.dimension)
            self.decisions.append(StoredDecision(event_id, record, max(1, ttl_ms), due_in_ms))
            start += size
        if start != len(records):
            raise BadState("this export has more records than decisions")

    async def put(self, store: LearnerStore) -> None:
        born = new_birth()
        kept = len(self.learner.history)
        for start in range(0, kept, PART):
            await store.put_log(born, self._log(slice(start, start + PART)), start + 1)
        now_ms = await store.now_ms()
        for one in self.decisions:
            one.due_ms = None if one.due_ms is None else now_ms + one.due_ms
        for start in range(0, len(self.decisions), PART):
            await store.put_decisions(born, self.decisions[start : start + PART])
        model: dict[str, Any] = {
            "position": kept,
            "upto": f"1-{kept}" if kept else "0-0",
            "kept": kept,
            "snapshot": dump_model(self.learner),
        }
        if self.learner.estimate is not None:
            model["estimate"] = estimate_bytes(self.learner.estimate)
        await store.restore(
            self.configuration.to_json(),
            dump_moments(self.learner.moments),
            {"born": born, "appended": kept, **self.counters},
            model,
            self.recent,
        )

    def _log(self, part: slice) -> list[bytes]:
        """Of the history, as log rows: as last completed, so no mark needs to go before them."""
        rows = self.learner.history.rows()
        return packing.rewarded_rows(rows.observed[part], rows.z[part, 1:], rows.y[part])


def _check_record(record: bytes, size: int, d: int) -> None:
    try:
        packing.check_decision(record, d)
    except (packing.UnreadableValue, ValueError) as error:
        raise BadState(f"this export holds a decision that cannot be read: {error}") from error
    if len(record) != size:
        raise BadState("this export has more decisions than records")


def _whole(value: object) -> int:
    if type(value) is not int or not 0 <= value < 2**53:
        raise ValueError(f"{value!r} is not a count")
    return value


def _span(value: object) -> int:
    span_ms = _whole(value)
    if span_ms > MAX_SECONDS * 1_000:
        raise ValueError(f"{span_ms:,} ms are too long")
    return span_ms


def _event_id(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{value!r} is not an event id")
    value.encode()
    return value
