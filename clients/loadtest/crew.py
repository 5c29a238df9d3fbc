"""The processes that make load, as one: steps go out to all, what they find comes together."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic
from types import TracebackType
from typing import IO

import msgspec

from clients.errors import ServiceFailed, WorkerDied

from .histogram import Histogram
from .job import Account, Done, Failed, Job, Message, Ready, Step, Tick

START_S = 60.0
PATIENCE_S = 15.0  # beyond what a step may take


@dataclass(slots=True)
class Moment:
    """One interval of the timeline."""

    selects: Histogram = field(default_factory=Histogram)
    rewards: Histogram = field(default_factory=Histogram)


@dataclass(slots=True)
class Found:
    """Of one step, all processes together."""

    step: Step
    interval_s: float
    selects: Histogram = field(default_factory=Histogram)
    rewards: Histogram = field(default_factory=Histogram)
    lag: Histogram = field(default_factory=Histogram)
    timeline: list[Moment] = field(default_factory=list)
    events: int = 0  # answered, each once
    elapsed_s: float = 0.0
    waiting: int = 0
    busy: int = 0
    account: Account = field(default_factory=Account)
    interrupted: bool = False

    @property
    def rate(self) -> float:
        """Selects answered per second, without those repeated on purpose."""
        return self.events / self.elapsed_s if self.elapsed_s else 0.0

    def take(self, tick: Tick) -> None:
        index = int(max(0.0, tick.elapsed_s - 1e-3) / self.interval_s)
        while len(self.timeline) <= index:
            self.timeline.append(Moment())
        selects, rewards = tick.selects.histogram(), tick.rewards.histogram()
        for whole, part in ((self.selects, selects), (self.rewards, rewards)):
            whole.merge(part)
        self.timeline[index].selects.merge(selects)
        self.timeline[index].rewards.merge(rewards)
        self.lag.merge(tick.lag.histogram())
        self.elapsed_s = max(self.elapsed_s, tick.elapsed_s)


class Crew:
    def __init__(self, jobs: Sequence[Job]) -> None:
        self.jobs = jobs
        self.members: list[subprocess.Popen[bytes]] = []
        self._selector = selectors.DefaultSelector()
        self._events = 0  # of all steps so far
        self._rest: dict[int, bytes] = {}  # lines that have not ended yet
        self._decode = msgspec.json.Decoder[Message](Message).decode

    def __enter__(self) -> Crew:
        try:
            for job in self.jobs:
                member = subprocess.Popen(
                    [sys.executable, "-m", "clients.loadtest.worker"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    start_new_session=True,  # Ctrl-C is for the parent alone
                )
                self.members.append(member)
                self._selector.register(_out(member), selectors.EVENT_READ, len(self.members) - 1)
                self._tell(member, msgspec.json.encode(job))
            waiting = set(range(len(self.members)))
            while waiting:
                for number in self._heard(monotonic() + START_S):
                    waiting -= {number for one in self._hear(number) if isinstance(one, Ready)}
        except BaseException:
            self.end()
            raise
        return self

    def run(self, steps: Sequence[Step], see: Callable[[Found], None]) -> Found:
        """One step for every member; `see` is called as things become known. Ctrl-C ends it early,
        and what was found until then is returned."""
        found = Found(steps[0], max(0.5, steps[0].duration_s / 120.0))
        for member, step in zip(self.members, steps, strict=True):
            self._tell(member, msgspec.json.encode(step))
        before = self._events
        accounts = [Account() for _ in self.members]
        ticks: dict[int, Tick] = {}
        running = set(range(len(self.members)))
        elapsed_s = 0.0
        longest_s = steps[0].duration_s + max(job.drain_s for job in self.jobs) + PATIENCE_S
        deadline = monotonic() + longest_s
        while running:
            try:
                for number in self._heard(deadline):
                    for message in self._hear(number):
                        if isinstance(message, Tick):
                            found.take(message)
                            accounts[number], ticks[number] = message.account, message
                        elif isinstance(message, Done):
                            accounts[number] = message.account
                            elapsed_s = max(elapsed_s, message.elapsed_s)
                            running.discard(number)
                found.waiting = sum(tick.waiting for tick in ticks.values())
                found.busy = sum(tick.busy for tick in ticks.values())
                found.account = total(accounts)
                found.events = found.account.selects - before
                see(found)
            except KeyboardInterrupt:
                if found.interrupted:
                    raise
                found.interrupted = True
                for number in running:
                    self._tell(self.members[number], b"stop")
        found.elapsed_s = elapsed_s
        self._events = found.account.selects
        return found

    def _heard(self, deadline: float) -> list[int]:
        ready = self._selector.select(max(0.0, deadline - monotonic()))
        if not ready:
            raise WorkerDied("a process that makes load does not answer")
        return [key.data for key, _ in ready]

    def _hear(self, number: int) -> list[Message]:
        part = os.read(_out(self.members[number]).fileno(), 1 << 20)
        if not part:
            raise WorkerDied("a process that makes load ended before its time")
        *lines, self._rest[number] = (self._rest.get(number, b"") + part).split(b"\n")
        messages = [self._decode(line) for line in lines]
        for one in messages:
            if isinstance(one, Failed):
                raise ServiceFailed(one.why)
        return messages

    def _tell(self, member: subprocess.Popen[bytes], line: bytes) -> None:
        assert member.stdin is not None
        try:
            member.stdin.write(line + b"\n")
            member.stdin.flush()
        except BrokenPipeError as error:
            raise WorkerDied("a process that makes load ended before its time") from error

    def end(self) -> None:
        self._selector.close()
        for member in self.members:
            assert member.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                member.stdin.close()
            try:
                member.wait(2.0)
            except subprocess.TimeoutExpired:
                member.kill()
                member.wait()
            _out(member).close()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()


def total(accounts: Sequence[Account]) -> Account:
    whole = Account()
    for one in accounts:
        for name in Account.__struct_fields__:
            if name == "errors":
                for why, count in one.errors.items():
                    whole.errors[why] = whole.errors.get(why, 0) + count
            else:
                setattr(whole, name, getattr(whole, name) + getattr(one, name))
    return whole


def _out(member: subprocess.Popen[bytes]) -> IO[bytes]:
    assert member.stdout is not None
    return member.stdout
