"""Who was clicked how often, on the same traffic, over time."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

KEPT = 3_600  # seconds of the timeline; a demo may run for ever


@dataclass(slots=True)
class Tally:
    pages: int = 0
    clicks: int = 0
    expected: float = 0.0  # clicks to be expected of the ads shown: the same with less chance

    @property
    def rate(self) -> float:
        return self.clicks / self.pages if self.pages else math.nan

    @property
    def expected_rate(self) -> float:
        return self.expected / self.pages if self.pages else math.nan

    def add(self, probability: float, clicked: bool) -> None:
        self.pages += 1
        self.clicks += clicked
        self.expected += probability


@dataclass(slots=True)
class Second:
    """One second of the demo."""

    slots: dict[str, Tally]
    best: float = 0.0  # of an oracle that knows what nobody can
    pages: int = 0
    outage: bool = False


@dataclass(slots=True)
class Score:
    names: tuple[str, ...]
    slots: dict[str, Tally] = field(default_factory=dict)
    seconds: deque[tuple[int, Second]] = field(default_factory=lambda: deque(maxlen=KEPT))
    best: float = 0.0
    pages: int = 0

    def __post_init__(self) -> None:
        self.slots = {name: Tally() for name in self.names}

    def second(self, at_s: float) -> Second:
        number = int(at_s)
        if not self.seconds or self.seconds[-1][0] < number:
            self.seconds.append((number, Second({name: Tally() for name in self.names})))
        return self.seconds[-1][1]

    def add(self, at_s: float, name: str, probability: float, clicked: bool) -> None:
        self.slots[name].add(probability, clicked)
        self.second(at_s).slots[name].add(probability, clicked)

    def page(self, at_s: float, best: float, outage: bool) -> None:
        self.best += best
        self.pages += 1
        second = self.second(at_s)
        second.best += best
        second.pages += 1
        second.outage = second.outage or outage

    def recent(self, name: str, seconds: int = 10) -> float:
        """Click rate of the last seconds."""
        last = [one.slots[name] for _, one in list(self.seconds)[-seconds:]]
        pages = sum(one.pages for one in last)
        return sum(one.clicks for one in last) / pages if pages else math.nan

    def lift(self, name: str, over: str) -> float:
        return (
            self.slots[name].rate / self.slots[over].rate - 1.0 if self.slots[over].clicks else 0.0
        )
