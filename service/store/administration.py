"""A learner as a whole: made, changed, forgotten; out as an export, and in."""

from __future__ import annotations

from typing import Any

from . import scripts
from .connect import Client
from .keys import LEARNERS, LearnerKeys
from .messages import LOG_BATCH, READY_S, LearnerGone, StoreBehind, StoredDecision
from .translate import translate_errors


class LearnerAdministration:
    """How a learner is made, changed, forgotten, and carried elsewhere."""

    def __init__(self, client: Client, name: str) -> None:
        # The driver's types promise str or bytes; ours was asked for bytes.
        self.client: Any = client
        self.name = name
        self.keys = LearnerKeys(name)
        self.born = ""
        self.calls = 0  # round trips

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
            state.model, state.recent, state.timeline, state.explained, state.explained_order,
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
