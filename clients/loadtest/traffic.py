"""What one process asks for, whether the answers can be right, and the ledger of it all."""

from __future__ import annotations

import random
from typing import Any

import msgspec

from .bodies import COMPACT_TYPE, Shape, compact_bodies, json_tails
from .connection import Target
from .job import Account, Job

POOL = 64  # bodies that come round again
POOL_BYTES = 64 << 20
SHOWN_WRONG = 20
SELECT, REWARD = 0, 1


class Selected(msgspec.Struct, gc=False):
    event_id: str
    arm: str
    index: int
    probability: float
    round: int


class Rewarded(msgspec.Struct, gc=False):
    event_id: str
    status: str
    reward: float | None = None


class Request:
    """`due` is when it was to be sent; `first` whether it is not a repetition on purpose."""

    __slots__ = ("due", "first", "kind", "number", "tries", "value")

    def __init__(self, kind: int, number: int, due: float, value: float, first: bool) -> None:
        self.kind, self.number, self.due, self.value = kind, number, due, value
        self.first, self.tries = first, 0


class Traffic:
    def __init__(self, job: Job) -> None:
        self.job = job
        self.account = Account()
        self.value_of: dict[int, float] = {}  # the reward of an event, as the service has it
        self._acknowledged: set[int] = set()  # events that have had a `recorded`
        self._index_of: dict[int, int] = {}
        self._number = 0
        self._random = random.Random(job.seed)
        self._selected = msgspec.json.Decoder(Selected).decode
        self._rewarded = msgspec.json.Decoder(Rewarded).decode
        self._prepare(Target.of(job.url))

    def _prepare(self, target: Target) -> None:
        job = self.job
        shape = Shape(job.arms, job.dimension, job.missing)
        key = f"Authorization: Bearer {job.api_key}\r\n" if job.api_key else ""
        head = f"Host: {target.authority}\r\n{key}"
        pool = max(4, min(POOL, POOL_BYTES // (10 * job.arms * job.dimension)))
        id_bytes = len(self._event_id(0))
        if job.body == "compact":
            bodies = compact_bodies(shape, pool, job.seed)
            self._before = f"POST {target.path}/select?learner={job.learner}&event_id=".encode()
            kind = f"Content-Type: {COMPACT_TYPE}\r\n"
            self._after = [
                f" HTTP/1.1\r\n{head}{kind}Content-Length: {len(body)}\r\n\r\n".encode() + body
                for body in bodies
            ]
        else:
            start = f'{{"learner":"{job.learner}","event_id":"'
            tails = json_tails(shape, pool, job.seed)
            length = len(start) + id_bytes + 1 + len(tails[0])
            longest = max(map(len, tails))
            # One head for all: shorter bodies end in blanks, which JSON does not mind.
            length += longest - len(tails[0])
            self._before = (
                f"POST {target.path}/select HTTP/1.1\r\n{head}Content-Type: application/json\r\n"
                f"Content-Length: {length}\r\n\r\n{start}"
            ).encode()
            self._after = [b'"' + tail.ljust(longest) for tail in tails]
        start = f'{{"learner":"{job.learner}","event_id":"'
        end = f'","reward":{0.0:8.6f}}}'
        self._reward_before = (
            f"POST {target.path}/reward HTTP/1.1\r\n{head}Content-Type: application/json\r\n"
            f"Content-Length: {len(start) + id_bytes + len(end)}\r\n\r\n{start}"
        ).encode()

    def _event_id(self, number: int) -> bytes:
        return b"%s%09d" % (self.job.prefix.encode(), number)

    def new_request(self, due: float) -> Request:
        self._number += 1
        if self.job.rewards_only:
            return Request(REWARD, self._number, due, _value(self._number), True)
        return Request(SELECT, self._number, due, 0.0, True)

    def encode(self, request: Request) -> bytes:
        event_id = self._event_id(request.number)
        if request.kind == SELECT:
            return self._before + event_id + self._after[request.number % len(self._after)]
        return b'%s%s","reward":%8.6f}' % (self._reward_before, event_id, request.value)

    def follow_up(self, request: Request, now: float) -> list[Request]:
        """What an answered select brings about later: its reward, and repetitions on purpose."""
        job, chance, delay = self.job, self._random.random, self._random.expovariate
        if request.kind != SELECT or not request.first:
            return []
        number, found = request.number, []
        if job.rewards and chance() < job.rewards:
            at = now + delay(1.0) * job.reward_delay_s
            found.append(Request(REWARD, number, at, _value(number), True))
            if job.duplicates and chance() < job.duplicates:
                # With another value, before or after the other or at once: only one may count.
                at += self._random.choice((-1.0, 0.0, 1.0)) * delay(1.0) * job.reward_delay_s
                found.append(Request(REWARD, number, max(now, at), _value(number + 1), False))
        if job.duplicates and chance() < job.duplicates:
            found.append(Request(SELECT, number, now + delay(1.0) * job.reward_delay_s, 0.0, False))
        return found

    def check(self, request: Request, body: bytes) -> None:
        """An answer with status 200, into the ledger."""
        if not self.job.check:
            self.account.selects += 1
            return
        try:
            if request.kind == SELECT:
                self._check_select(request, self._selected(body))
            else:
                self._check_reward(request, self._rewarded(body))
        except msgspec.MsgspecError as error:
            self._wrong(request, f"{error}: {body[:200]!r}")

    def _check_select(self, request: Request, answer: Selected) -> None:
        before = self._index_of.setdefault(request.number, answer.index)
        if request.first:
            self.account.selects += 1
        else:
            self.account.repeats += 1
        if answer.event_id.encode() != self._event_id(request.number):
            self._wrong(request, f"it is for {answer.event_id}")
        elif before != answer.index:
            self._wrong(request, f"arm {answer.index}, and {before} before")
        elif not 0 <= answer.index < self.job.arms or not 0.0 < answer.probability <= 1.0:
            self._wrong(request, f"index {answer.index}, probability {answer.probability}")
        elif answer.arm != self._arm(answer.index):
            self._wrong(request, f"arm {answer.arm} is not the one at {answer.index}")

    def _check_reward(self, request: Request, answer: Rewarded) -> None:
        account = self.account
        if answer.event_id.encode() != self._event_id(request.number):
            self._wrong(request, f"it is for {answer.event_id}")
            return
        known = self.value_of.get(request.number)
        if answer.status == "late":
            account.late += 1
            return
        if answer.status == "recorded":
            value = request.value
            if request.number in self._acknowledged or known not in (None, value):
                self._wrong(request, f"recorded a second time, as {value} after {known}")
                return
            self._acknowledged.add(request.number)
        elif answer.status == "duplicate" and answer.reward is not None:
            account.duplicates += 1
            value = answer.reward
            # The answer to the first may be lost, or still on its way; this one says the same.
            if known is not None and known != value:
                self._wrong(request, f"the reward is {value}, and was {known} before")
                return
        else:
            self._wrong(request, f"status {answer.status}")
            return
        if known is None:
            self.value_of[request.number] = value
            account.recorded += 1
            account.reward_sum += value

    def _arm(self, index: int) -> str:
        return str(index) if self.job.body == "compact" else f"ad-{index}"

    def _wrong(self, request: Request, why: str) -> None:
        wrong = self.account.wrong
        if len(wrong) < SHOWN_WRONG:
            what = "reward" if request.kind == REWARD else "select"
            wrong.append(f"{what} {self._event_id(request.number).decode()}: {why}")
        self.failed("wrong answer")

    def failed(self, why: str) -> None:
        errors: dict[str, Any] = self.account.errors
        errors[why] = errors.get(why, 0) + 1


def _value(number: int) -> float:
    """In 64ths, so that sums of them are exact in any order."""
    return (7 * number % 65) / 64.0
