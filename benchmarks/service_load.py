"""Load from the project's own client: open loop, and closed loop where wrk is not installed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from clients.loadtest.bodies import Shape
from clients.loadtest.crew import Crew, Found
from clients.loadtest.job import Job, Step

from .service_servers import other_cores, pin

CONNECTIONS = 16
POOL = 64  # bodies that come round again
OPEN_CONNECTIONS = 64


class LoadFailed(Exception):
    """The load generator did not run, or not every answer was a 200."""


@dataclass(frozen=True, slots=True)
class Rate:
    rate: float  # answers per second
    requests: int


class Load(Protocol):
    name: str

    def run(
        self,
        url: str,
        kind: str,
        learner: str,
        prefix: str,
        duration_s: int,
        *,
        connections: int = CONNECTIONS,
        limit: int = 0,
    ) -> Rate: ...


class OwnClient:
    """In wrk's place."""

    name = "the project's own client"

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def run(
        self,
        url: str,
        kind: str,
        learner: str,
        prefix: str,
        duration_s: int,
        *,
        connections: int = CONNECTIONS,
        limit: int = 0,
    ) -> Rate:
        found = drive(
            url,
            self.shape,
            learner,
            prefix,
            Step(duration_s),
            body="compact" if kind == "compact" else "json",
            rewards_only=kind == "reward",
            connections=connections,
        )
        answers = found.rewards if kind == "reward" else found.selects
        if kind == "reward" and answers.count + connections >= limit:
            raise LoadFailed(f"{limit:,} events were too few for {duration_s} s of rewards")
        return Rate(answers.count / duration_s, answers.count)


def drive(
    url: str,
    shape: Shape,
    learner: str,
    prefix: str,
    step: Step,
    *,
    body: Literal["json", "compact"] = "json",
    rewards_only: bool = False,
    connections: int = OPEN_CONNECTIONS,
) -> Found:
    """One step by one process on a core of its own, where there is one."""
    job = Job(
        url=url,
        learner=learner,
        prefix=prefix,
        body=body,
        arms=shape.arms,
        dimension=shape.dimension,
        missing=shape.missing,
        connections=connections,
        check=False,  # the yardsticks' constants would not pass
        rewards_only=rewards_only,
    )
    with Crew([job]) as crew:
        pin(crew.members[0].pid, other_cores())
        found = crew.run([step], lambda _: None)
    if found.interrupted:
        raise KeyboardInterrupt
    if found.account.errors:
        raise LoadFailed(f"{found.account.errors} at {url}")
    return found
