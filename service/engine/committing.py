"""To the store and back: what a batch decided and claims, and what is new in the log."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from service.errors import StoreDown, UnknownEvent
from service.store import packing
from service.store.messages import LOG_BATCH, Commit, Committed, StoreBehind

from .requests import Chosen, Claim, Selected, reject, resolve

if TYPE_CHECKING:
    from .engine import Engine


class Committing:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.estimate_to_store = b""
        self.due_in_ms: int | None = None  # as the store last said
        self.rounds = 0  # likewise
        self._moments_at = 0.0  # when our moments may be written again
        self._unfolded: Committed | None = None  # of the last batch
        self._refused = False  # its moments, for a repetition among its selects or a lost field

    async def batch(self, chosen: list[Chosen], claims: list[Claim]) -> list[Selected]:
        """One round trip for all of it; claims are answered here, the selects' answers returned."""
        commit = self.new(with_moments=bool(chosen) and self.moments_due())
        commit.decisions = [(one.selection.event, one.record) for one in chosen]
        commit.rewards = [(claim.event, claim.reward, packing.REWARDED) for claim in claims]
        done = await self.send(commit)
        told = [self._settle(one, found) for one, found in zip(chosen, done.decisions, strict=True)]
        for claim, (status, stands) in zip(claims, done.rewards, strict=True):
            self._answer_claim(claim, status, stands)
        self._unfolded = done
        self._refused = bool(commit.moments) and not done.moments_written
        return told

    async def afterwards(self) -> None:
        """What nobody waits for."""
        done, self._unfolded = self._unfolded, None
        if done is not None:
            await self.fold(done)
            if self._refused:
                await self.write_moments()  # without what was repeated, or in a new field

    def new(self, *, with_moments: bool = False) -> Commit:
        replica, configuration = self.engine.replica, self.engine.replica.configuration
        return Commit(
            worker=replica.own.worker,
            has_field=replica.own.has_field,
            position=replica.position,
            last_id=replica.last_id,
            moments=replica.own.to_write() if with_moments else b"",
            estimate=self.estimate_to_store,
            decision_ttl_ms=configuration.decision_ttl_ms,
            reward_wait_ms=configuration.reward_wait_ms,
        )

    async def send(self, commit: Commit) -> Committed:
        engine, own = self.engine, self.engine.replica.own
        done = await engine.store.commit(commit)
        if commit.estimate is self.estimate_to_store:
            self.estimate_to_store = b""
        before, self.rounds = self.rounds, done.rounds
        if done.rounds < before:
            raise StoreBehind("the store has forgotten rounds that it had counted")
        self.due_in_ms = done.due_in_ms
        if done.configured != engine.configured:
            engine.retire()  # with the new configuration another engine goes on
        if done.moments_written:
            own.written()
            per_s = engine.settings.moments_bytes_per_s
            self._moments_at = time.monotonic() + len(commit.moments) / per_s
        elif done.field_lost:
            engine.replica.own.field_lost(done.merged_sha1)
        return done

    def moments_due(self) -> bool:
        """Large moments are written less often: so many bytes per second, not more."""
        return time.monotonic() >= self._moments_at

    def _settle(self, mine: Chosen, found: int | bytes) -> Selected:
        """The answer that stands; a repetition is taken out of the moments."""
        if isinstance(found, int):
            mine.selected.answer.round = found
            return mine.selected
        stored = packing.answer(found)
        if stored.nonce == mine.selected.answer.nonce:
            mine.selected.answer.round = stored.round
            return mine.selected
        self.engine.stats.repeated_selects += 1
        self.engine.replica.retract(mine.selection.arms, mine.generation)
        return Selected(mine.selected.event_id, stored, None, 0)

    def _answer_claim(self, claim: Claim, status: str, stands: bytes) -> None:
        if status == "unknown" and self.engine.alone.just_back:
            reject(claim.done, StoreDown("another worker may have yet to store this decision"))
            return
        self.engine.stats.count_reward(status)
        if status == "unknown":
            reject(claim.done, UnknownEvent(claim.event_id))
        else:
            resolve(claim.done, (status, packing.unpack_reward(stands)))

    async def fold(self, done: Committed) -> None:
        await self.engine.replica.fold(done.log)
        if self.engine.replica.position >= done.appended:
            self.engine.synced_at = time.monotonic()
        elif len(done.log) < LOG_BATCH:  # that was all there is
            raise StoreBehind("the log was cut before this worker had read it")

    async def follow(self) -> None:
        """All that is new in the log."""
        while True:
            done = await self.send(self.new())
            await self.fold(done)
            if self.engine.replica.position >= done.appended or not done.log:
                return

    async def book_defaults(self, due: list[bytes], reward: bytes) -> None:
        commit = self.new()
        commit.rewards = [(event, reward, packing.DEFAULTED) for event in due]
        done = await self.send(commit)
        self.engine.stats.defaults += sum(status == "recorded" for status, _ in done.rewards)
        await self.fold(done)

    async def write_moments(self) -> None:
        """All of them: what was in doubt, then the rest; in a new field where ours is gone."""
        while self.engine.replica.own.unsaved_arms > 0:
            await self.fold(await self.send(self.new(with_moments=True)))
