"""The highest rate that holds a p99: doubled until it does not, then halved in between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .crew import Found

GROWTH = 1.6
CLOSE_ENOUGH = 1.06  # between the highest rate that held and the lowest that did not
ANSWERED = 0.97  # of what was due, by the end of the step


@dataclass(frozen=True, slots=True)
class Tried:
    rate: float
    found: Found
    p99_ms: float
    held: bool


def holds(found: Found, p99_ms: float) -> bool:
    """Whether the rate was kept up: in time, without an error, and without a queue at the end.

    Held against the step's length, not the rate: how many fall due in it is chance.
    """
    in_time = found.elapsed_s <= found.step.duration_s / ANSWERED + p99_ms / 1e3
    return in_time and not found.account.errors and _p99_ms(found) <= p99_ms


def search(
    run: Callable[[float], Found], *, first_rate: float, p99_ms: float, most_steps: int
) -> list[Tried]:
    """Every rate that was tried, in order; ends early after an interruption."""
    tried: list[Tried] = []
    low, high, rate = 0.0, float("inf"), first_rate
    while len(tried) < most_steps:
        found = run(rate)
        if found.interrupted:
            break
        held = holds(found, p99_ms)
        tried.append(Tried(rate, found, _p99_ms(found), held))
        if found.account.errors:
            break
        low, high = (max(low, rate), high) if held else (low, min(high, rate))
        if low and high <= low * CLOSE_ENOUGH:
            break
        if high == float("inf"):
            rate = low * GROWTH
        else:
            rate = (low * high) ** 0.5 if low else high / GROWTH
    return tried


def highest(tried: list[Tried]) -> Tried | None:
    """
    >>> highest([]) is None
    True
    """
    return max((one for one in tried if one.held), key=lambda one: one.rate, default=None)


def _p99_ms(found: Found) -> float:
    return 1e3 * found.selects.quantile_s(0.99)
