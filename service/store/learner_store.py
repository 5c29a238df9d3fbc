"""One learner's state in Redis: bytes in, bytes out. Knows keys and scripts, not policies."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterable
from typing import Any

from .display import LearnerDisplay
from .keys import LEARNERS
from .messages import (
    LOG_BATCH,
    MERGED_MS,
    RECENT,
    Commit,
    Committed,
    Loaded,
    LogEntry,
    RowsPage,
    Snapshot,
)
from .translate import translate_errors


class LearnerStore(LearnerDisplay):
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


async def learner_names(client: Any) -> list[str]:
    with translate_errors():
        return sorted(name.decode() for name in await client.smembers(LEARNERS))


def _pairs(flat: list[bytes]) -> dict[bytes, bytes]:
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _entry(raw: list[Any]) -> LogEntry:
    return raw[0], raw[1][0], raw[1][1]


def sha1(value: bytes) -> str:
    return hashlib.sha1(value, usedforsecurity=False).hexdigest()
