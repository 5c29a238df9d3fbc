"""The loop that makes load: one thread, plain sockets, `select` for its microseconds.

asyncio and epoll round a wait up to the next millisecond. In an open loop that would be in every
latency: time counts from when a request was due.
"""

from __future__ import annotations

import heapq
import itertools
import random
import select
from collections import deque
from collections.abc import Callable
from time import perf_counter as clock

from .connection import Closed, Connection, Target
from .histogram import Histogram
from .job import Buckets, Job, Step, Tick
from .traffic import REWARD, SELECT, Request, Traffic

TICK_S = 0.25
RETRY_S = 0.25
AGAIN = {408, 429, 500, 502, 503, 504}


class Generator:
    def __init__(self, job: Job) -> None:
        self.job = job
        self.target = Target.of(job.url)
        self.traffic = Traffic(job)
        self.open: dict[int, Connection] = {}
        self.idle: list[Connection] = []
        self.writing: set[int] = set()
        self.waiting: deque[Request] = deque()  # due, in order
        self.later: list[tuple[float, int, Request]] = []  # a heap, by time
        self._fds: list[int] = []
        self._tie = itertools.count()
        self._reopen_at: list[float] = []
        self._random = random.Random(job.seed + 1)
        self._took: tuple[list[float], list[float]] = ([], [])
        self._lag: list[float] = []
        for _ in range(job.connections):
            self._connect()

    def run(self, step: Step, tell: Callable[[Tick], None], stopped: Callable[[], bool]) -> float:
        """Until every request that was due has its answer, or `drain_s` is over; seconds until the
        last select had its own."""
        begin = self._last_select = clock()
        end = begin + step.duration_s
        next_tick = begin + TICK_S
        gap = 0.0 if step.rate is None else 1.0 / step.rate
        closed_loop = step.rate is None
        poisson = step.arrivals == "poisson"
        next_due = begin + gap * self._random.random()
        later, waiting, idle = self.later, self.waiting, self.idle
        while True:
            now = clock()
            over = now >= end
            if not closed_loop:
                while next_due <= now and next_due < end:
                    waiting.append(self.traffic.new_request(next_due))
                    self._lag.append(now - next_due)
                    next_due += gap * self._random.expovariate(1.0) if poisson else gap
            while later and later[0][0] <= now:
                waiting.append(heapq.heappop(later)[2])
            while idle and waiting:
                self._send(idle.pop(), waiting.popleft(), now, closed_loop)
            if closed_loop and not over:
                while idle:
                    self._send(idle.pop(), self.traffic.new_request(now), now, True)
            if over:
                left = waiting or len(idle) < len(self.open) or (step.last and later)
                if not left or now >= end + self.job.drain_s:
                    break
            if now >= next_tick:
                tell(self._tick(now - begin))
                next_tick = now + TICK_S
                self._give_up_on_silent(now)
                if not over and stopped():
                    end = now
            wake = next_tick
            if not closed_loop and next_due < end:
                wake = min(wake, next_due)
            if later:
                wake = min(wake, later[0][0])
            if self._reopen_at:
                self._reopen(now)
                wake = min(wake, now + RETRY_S / 2)
            self._wait(max(0.0, wake - clock()))
        if step.last:
            self._settle()
        tell(self._tick(clock() - begin))
        return self._last_select - begin

    def _wait(self, seconds: float) -> None:
        readable, writable, _ = select.select(self._fds, self.writing, (), seconds)
        now = clock()
        for fd in writable:
            connection = self.open[fd]
            try:
                if connection.flush():
                    self.writing.discard(fd)
            except Closed:
                self._lost(connection, now, "connection lost")
        for fd in readable:
            reading = self.open.get(fd)
            if reading is not None:
                self._receive(reading, now)

    def _send(self, connection: Connection, request: Request, now: float, restart: bool) -> None:
        if restart and not request.tries:
            request.due = now  # a closed loop has no other time at which it was due
        connection.request, connection.sent_at = request, now
        try:
            if not connection.send(self.traffic.encode(request)):
                self.writing.add(connection.fd)
        except Closed:
            self._lost(connection, now, "connection lost")

    def _receive(self, connection: Connection, now: float) -> None:
        try:
            answer = connection.receive()
        except Closed:
            self._lost(connection, now, "connection lost")
            return
        request = connection.request
        if answer is None or not isinstance(request, Request):
            return
        status, body, closing = answer
        connection.request = None
        if request.kind == SELECT and request.first:
            self._last_select = now
        if status == 200:
            self._took[request.kind].append(now - request.due)
            self.traffic.check(request, body)
            for one in self.traffic.follow_up(request, now):
                heapq.heappush(self.later, (one.due, next(self._tie), one))
        else:
            self.traffic.failed(f"status {status}")
            if status in AGAIN:
                self._again(request, now)
        if closing:
            self._drop(connection)
            self._connect()
        else:
            self.idle.append(connection)

    def _again(self, request: Request, now: float) -> None:
        """The same id, so that it counts once however often it is sent."""
        request.tries += 1
        self.traffic.account.retries += 1
        heapq.heappush(self.later, (now + RETRY_S, next(self._tie), request))

    def _lost(self, connection: Connection, now: float, why: str) -> None:
        request = connection.request
        self._drop(connection)
        if isinstance(request, Request):
            self.traffic.failed(why)
            self._again(request, now)
        self._reopen_at.append(now)

    def _give_up_on_silent(self, now: float) -> None:
        for connection in list(self.open.values()):
            if connection.request and now - connection.sent_at > self.job.timeout_s:
                self._lost(connection, now, "timeout")

    def _drop(self, connection: Connection) -> None:
        del self.open[connection.fd]
        self.writing.discard(connection.fd)
        if connection in self.idle:
            self.idle.remove(connection)
        connection.close()
        self._fds = list(self.open)

    def _connect(self) -> None:
        try:
            connection = Connection(self.target)
        except Closed:
            self._reopen_at.append(clock() + RETRY_S)
            return
        self.open[connection.fd] = connection
        self.idle.append(connection)
        self._fds = list(self.open)

    def _reopen(self, now: float) -> None:
        due = [at for at in self._reopen_at if at <= now]
        self._reopen_at = [at for at in self._reopen_at if at > now]
        for _ in due:
            self._connect()

    def _settle(self) -> None:
        """What never got its answer goes into the ledger as such."""
        account = self.traffic.account
        for connection in self.open.values():
            if isinstance(connection.request, Request):
                self._doubt(connection.request)
        for request in [*self.waiting, *(one for _, _, one in self.later)]:
            if request.tries:
                self._doubt(request)
            elif request.kind == REWARD and request.first:
                account.unsent_rewards += 1
        self.waiting.clear()
        self.later.clear()

    def _doubt(self, request: Request) -> None:
        if request.kind == SELECT and request.first:
            self.traffic.account.doubtful_selects += 1
        elif request.kind == REWARD and request.number not in self.traffic.value_of:
            self.traffic.account.doubtful_rewards += 1

    def _tick(self, elapsed_s: float) -> Tick:
        selects, rewards = map(_emptied, self._took)
        busy = len(self.open) - len(self.idle)
        waiting, account = len(self.waiting), self.traffic.account
        return Tick(elapsed_s, selects, rewards, _emptied(self._lag), waiting, busy, account)


def _emptied(values: list[float]) -> Buckets:
    histogram = Histogram()
    histogram.add(values)
    values.clear()
    return Buckets.of(histogram)
