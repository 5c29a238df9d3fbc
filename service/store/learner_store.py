"""One learner's state in Redis: bytes in, bytes out. Knows keys and scripts, not policies."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from typing import Any

from . import scripts
from .connect import Client
from .errors import StoreError
from .keys import LEARNERS, LearnerKeys
from .translate import translate_errors

RECENT = 200  # latest decisions that can be listed
LOG_BATCH = 1_024  # log entries per reply
MERGED_MS = 86_400_000  # a worker cut off for longer may count its last arms twice
START = b"0-0"  # before the first log entry
READY_S = 3_600  # what an import that broke off leaves behind is gone after so long

LogEntry = tuple[bytes, bytes, bytes]  # id, kind (r or m), value


class LearnerGone(StoreError):
    """The learner was removed or reset since it was loaded."""


class StoreBehind(StoreError):
    """The server has forgotten log entries that this worker has folded: it came back older."""


@dataclass(slots=True)
class Loaded:
    """All that a worker starts from."""

    config: bytes
    born: str
    meta: dict[bytes, bytes]
    moments: dict[bytes, bytes]
    model: dict[bytes, bytes]

    def counter(self, name: str) -> int:
        return int(self.meta.get(name.encode(), b"0"))


@dataclass(slots=True)
class RowsPage:
    rows: bytes  # log entries r, one behind the other, oldest first
    mark: bytes | None  # the newest refresh mark among them
    since_mark: int  # rows newer than it; without a mark, all


@dataclass(slots=True)
class StoredDecision:
    event_id: str
    record: bytes
    ttl_ms: int
    due_ms: int | None = None  # on the server's clock; None where nothing is waited for


@dataclass(slots=True)
class Commit:
    """What a worker sends in one step."""

    worker: str
    has_field: bool
    position: int
    last_id: bytes
    moments: bytes = b""
    estimate: bytes = b""
    decision_ttl_ms: int = 86_400_000
    reward_wait_ms: int = 0
    # event ids are bytes here
    decisions: list[tuple[bytes, bytes]] = field(default_factory=list)
    rewards: list[tuple[bytes, bytes, bytes]] = field(default_factory=list)  # id, reward, R or D


@dataclass(slots=True)
class Snapshot:
    configured: int  # how often the learner had been reconfigured
    position: int
    upto: bytes  # the log id of that position
    model: bytes
    kept_rows: int  # before it, that a refresh still completes
    keep_entries: int  # of the log before it


@dataclass(slots=True)
class Committed:
    rounds: int
    appended: int
    configured: int  # how often the learner was reconfigured
    moments_written: bool
    field_lost: bool
    merged_sha1: str  # of the sums with which the lost field went into the base, or ""
    due_in_ms: int | None  # until the first pending event falls due
    decisions: list[int | bytes]  # round, or the record that was there already
    rewards: list[tuple[str, bytes]]  # status, and the reward that stands
    log: list[LogEntry]


class LearnerStore:
    def __init__(self, client: Client, name: str) -> None:
        # The driver's types promise str or bytes; ours was asked for bytes.
        self.client: Any = client
        self.name = name
        self.keys = LearnerKeys(name)
        self.born = ""
        self.calls = 0  # round trips

    async def load(self) -> Loaded | None:
        """The learner as it is now, or None; from here on this is the birth we speak to."""
        keys = [self.keys.config, self.keys.meta, self.keys.moments, self.keys.model]
        config, meta, moments, model = await self._call("load", keys)
        if config is None:
            return None
        fields = _pairs(meta)
        self.born = fields[b"born"].decode()
        return Loaded(config, self.born, fields, _pairs(moments), _pairs(model))

    async def commit(self, commit: Commit) -> Committed:
        keys = self.keys
        key_list = [
            keys.meta, keys.moments, keys.workers, keys.due, keys.rewards, keys.recent, keys.model,
            keys.merged(commit.worker),
        ]  # fmt: skip
        args: list[Any] = [
            self.born,
            commit.position,
            commit.worker,
            int(commit.has_field),
            commit.moments,
            commit.last_id,
            LOG_BATCH,
            RECENT,
            commit.decision_ttl_ms,
            commit.reward_wait_ms,
            commit.estimate,
            len(commit.decisions),
            len(commit.rewards),
        ]
        decision_keys = keys.decisions(self.born)
        for event, record in commit.decisions:
            key_list.append(decision_keys + event)
            args += (event, record)
        for event, reward, kind in commit.rewards:
            key_list.append(decision_keys + event)
            args += (event, reward, kind)
        reply = await self._call("commit", key_list, *args)
        self._check(reply[0])
        _, rounds, appended, configured, written, lost, merged, due_in_ms, *rest = reply
        decisions, rewards, log = rest
        return Committed(
            rounds,
            appended,
            configured,
            bool(written),
            bool(lost),
            merged.decode(),
            due_in_ms,
            decisions,
            [(status.decode(), reward) for status, reward in rewards],
            [_entry(entry) for entry in log],
        )

    async def mark(
        self, position: int, last_id: bytes, power: int, mark: bytes
    ) -> tuple[int, list[LogEntry]]:
        """A refresh mark, unless one for this power is in the log; entries there are, and new."""
        keys = [self.keys.meta, self.keys.rewards]
        args = (self.born, position, power, mark, last_id, LOG_BATCH)
        reply = await self._call("mark", keys, *args)
        self._check(reply[0])
        return reply[1], [_entry(entry) for entry in reply[2]]

    async def snapshot(self, new: Snapshot) -> bool:
        """Keep a model snapshot if it is newer, and cut the log before it."""
        keys = [self.keys.meta, self.keys.model, self.keys.rewards]
        args = (new.configured, new.position, new.upto, new.model, new.kept_rows, new.keep_entries)
        return bool(await self._call("snapshot", keys, self.born, *args))

    async def moments(self) -> dict[bytes, bytes]:
        """All workers' sums, by worker."""
        self.calls += 1
        with translate_errors():
            return dict(await self.client.hgetall(self.keys.moments))

    async def merge(
        self,
        worker: str,
        value: bytes,
        base: bytes | None,
        merged: bytes,
        remember_ms: int = MERGED_MS,
    ) -> bool:
        """`merged` as the new base and the worker's field away, if both are still as given."""
        keys = [self.keys.moments, self.keys.workers, self.keys.merged(worker)]
        base_sha1 = sha1(base) if base is not None else ""
        args = (worker, sha1(value), base_sha1, merged, remember_ms)
        return bool(await self._call("merge", keys, *args))

    async def silent_workers(self, for_ms: int) -> list[str]:
        """Workers that have not written for so long."""
        now_ms = await self.now_ms()
        self.calls += 1
        with translate_errors():
            found = await self.client.zrangebyscore(self.keys.workers, 0, now_ms - for_ms)
        return [worker.decode() for worker in found]

    async def forget_worker(self, worker: str) -> None:
        """One without a field."""
        self.calls += 1
        with translate_errors():
            await self.client.zrem(self.keys.workers, worker)

    async def due(self, limit: int) -> list[bytes]:
        """Pending events whose time has come."""
        return list(await self._call("due", [self.keys.due], limit))

    async def forget_due(self, event_ids: Iterable[bytes]) -> None:
        """Take expired events off the pending ones."""
        self.calls += 1
        with translate_errors():
            await self.client.zrem(self.keys.due, *event_ids)

    async def probe(self) -> None:
        """Raises while the store cannot be written to."""
        await self._call("probe", [self.keys.meta])

    async def now_ms(self) -> int:
        """The server's clock: the only one that all workers share."""
        return int(await self._call("clock", [self.keys.meta]))

    async def pending(self) -> int:
        self.calls += 1
        with translate_errors():
            return int(await self.client.zcard(self.keys.due))

    async def meta(self) -> dict[bytes, bytes]:
        self.calls += 1
        with translate_errors():
            return dict(await self.client.hgetall(self.keys.meta))

    async def log(self, after: bytes, count: int = LOG_BATCH) -> list[LogEntry]:
        self.calls += 1
        with translate_errors():
            found = await self.client.xrange(self.keys.rewards, b"(" + after, b"+", count=count)
        return [(id_, *next(iter(values.items()))) for id_, values in found]

    async def rows_back(self, upto: bytes, entries: int) -> AsyncIterator[RowsPage]:
        """The log up to an id, newest page first, at most so many entries."""
        highest = upto
        while entries > 0:
            page = await self._call(
                "rows_back", [self.keys.rewards], highest, min(entries, LOG_BATCH)
            )
            found, oldest, rows, mark, since_mark = page
            if not found:
                return
            yield RowsPage(rows, mark, since_mark)
            entries -= found
            highest = b"(" + oldest

    async def decisions(self, event_ids: list[str]) -> list[bytes | None]:
        self.calls += 1
        if not event_ids:
            return []
        with translate_errors():
            keys = [self.keys.decision(self.born, event_id) for event_id in event_ids]
            return list(await self.client.mget(keys))

    async def recent(self, limit: int) -> list[str]:
        self.calls += 1
        with translate_errors():
            found = await self.client.lrange(self.keys.recent, 0, limit - 1)
        return [event_id.decode() for event_id in found]

    async def workers(self) -> int:
        """How many have sums of their own here."""
        self.calls += 1
        with translate_errors():
            return int(await self.client.zcard(self.keys.workers))

    async def bytes_held(self, pending: int) -> int:
        """What the learner occupies in the server: its keys, and its pending decisions as if all
        were as large as the latest."""
        latest = await self.recent(1)
        keys = [self.keys.config, *self.keys.state()]
        keys += [self.keys.decision(self.born, event_id) for event_id in latest]
        self.calls += 1
        with translate_errors():
            pipe = self.client.pipeline(transaction=False)
            for key in keys:
                pipe.memory_usage(key)
            sizes = [size or 0 for size in await pipe.execute()]
        return sum(sizes) + (pending - 1) * sizes[-1] if latest else sum(sizes)

    # Administration -------------------------------------------------------------------------

    async def configure(
        self, old: bytes | None, new: bytes, born: str, *, reborn: bool = False
    ) -> bool | None:
        """True if made, False if changed, None if `old` is not what is there.

        `reborn`: another birth as well, which takes a learner without rounds.
        """
        keys = [self.keys.config, *self.keys.state()]
        made = await self._call("configure", keys, old or b"", new, born, int(reborn))
        if made < 0:
            return None
        await self._list()
        return bool(made)

    async def forget(self, born: str) -> bool:
        """Another birth with the same configuration, or with born "" no learner at all."""
        keys = [self.keys.config, *self.keys.state()]
        found = bool(await self._call("forget", keys, born))
        if not born:
            self.calls += 1
            with translate_errors():
                await self.client.srem(LEARNERS, self.name)
        return found

    async def put_log(self, born: str, rows: list[bytes], first: int) -> None:
        """Log rows of an import lie ready, ids 1-first, 1-first+1, …"""
        key = self.keys.ready(born, "rewards")
        self.calls += 1
        with translate_errors():
            pipe = self.client.pipeline(transaction=False)
            for number, row in enumerate(rows, first):
                pipe.xadd(key, {b"r": row}, id=f"1-{number}")
            pipe.expire(key, READY_S)
            await pipe.execute()

    async def put_decisions(self, born: str, decisions: list[StoredDecision]) -> None:
        """Decisions of an import lie ready."""
        key = self.keys.ready(born, "due")
        self.calls += 1
        with translate_errors():
            pipe = self.client.pipeline(transaction=False)
            for one in decisions:
                pipe.set(self.keys.decision(born, one.event_id), one.record, px=one.ttl_ms)
                if one.due_ms is not None:
                    pipe.zadd(key, {one.event_id: one.due_ms})
            pipe.expire(key, READY_S)
            await pipe.execute()

    async def pending_decisions(self) -> list[StoredDecision]:
        """All that wait for their reward, the first due first."""
        pending: list[StoredDecision] = []
        start = 0
        while True:
            self.calls += 1
            with translate_errors():
                due = await self.client.zrange(
                    self.keys.due, start, start + LOG_BATCH - 1, withscores=True
                )
            if not due:
                return pending
            due_ms = {event_id.decode(): int(score) for event_id, score in due}
            for one in await self.stored_decisions(list(due_ms)):
                one.due_ms = due_ms[one.event_id]
                pending.append(one)
            start += len(due)

    async def stored_decisions(self, event_ids: list[str]) -> list[StoredDecision]:
        """Those that have not expired, in any state."""
        self.calls += 1
        with translate_errors():
            pipe = self.client.pipeline(transaction=False)
            for event_id in event_ids:
                key = self.keys.decision(self.born, event_id)
                pipe.get(key)
                pipe.pttl(key)
            found = await pipe.execute() if event_ids else []
        return [
            StoredDecision(event_id, record, ttl_ms)
            for event_id, record, ttl_ms in zip(event_ids, found[::2], found[1::2], strict=True)
            if record is not None and ttl_ms > 0
        ]

    async def restore(
        self,
        config: bytes,
        moments: bytes,
        meta: dict[str, Any],
        model: dict[str, Any],
        recent: list[str],
    ) -> None:
        """The last step of an import: what lies ready for meta["born"] becomes the learner."""
        state = self.keys
        keys = [
            state.config, state.meta, state.moments, state.workers, state.due, state.rewards,
            state.model, state.recent,
        ]  # fmt: skip
        keys += [state.ready(meta["born"], part) for part in ("due", "rewards")]
        args = [item for fields in (meta, model) for pair in fields.items() for item in pair]
        counts = (len(meta), len(model), len(recent))
        await self._call("restore", keys, config, moments, *counts, *args, *recent)
        await self._list()

    async def _list(self) -> None:
        self.calls += 1
        with translate_errors():
            await self.client.sadd(LEARNERS, self.name)

    async def _call(self, script: str, keys: list[bytes], *args: Any) -> Any:
        self.calls += 1
        return await scripts.call(self.client, script, keys, *args)

    def _check(self, status: bytes) -> None:
        if status == b"gone":
            raise LearnerGone(f"learner {self.name!r} was removed or reset meanwhile")
        if status == b"behind":
            raise StoreBehind(f"the store of learner {self.name!r} came back with older data")


async def learner_names(client: Any) -> list[str]:
    with translate_errors():
        return sorted(name.decode() for name in await client.smembers(LEARNERS))


def _pairs(flat: list[bytes]) -> dict[bytes, bytes]:
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _entry(raw: list[Any]) -> LogEntry:
    return raw[0], raw[1][0], raw[1][1]


def sha1(value: bytes) -> str:
    return hashlib.sha1(value, usedforsecurity=False).hexdigest()
