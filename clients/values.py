"""Values of a command line, each with one sentence where it cannot be used."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable, Collection

FIRST_SEED = 100  # of a count of seeds; those below are for tuning


def whole(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            value = int(text.replace("_", "").replace(",", ""))
        except ValueError:
            value = low - 1
        if not low <= value <= high:
            raise ArgumentTypeError(
                f"must be a whole number from {low:,} to {high:,}; it is {text}"
            )
        return value

    return parse


def number(low: float, high: float) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not low <= value <= high:
            raise ArgumentTypeError(f"must be from {low:g} to {high:g}; it is {text}")
        return value

    return parse


def share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value <= 1.0:
        raise ArgumentTypeError(f"must be above 0 and at most 1; it is {text}")
    return value


def shares_missing(text: str) -> tuple[float, ...]:
    """`0.1,0.4`"""
    try:
        values = tuple(dict.fromkeys(float(part) for part in text.split(",")))
    except ValueError:
        values = (-1.0,)
    if not all(0.0 <= value < 1.0 for value in values):
        raise ArgumentTypeError(f"must be from 0 to below 1, by commas; it is {text}")
    return values


def seeds(text: str) -> list[int]:
    """`3`: 100, 101, 102; `0:8`: 0 to 7."""
    first, colon, end = text.partition(":")
    try:
        low, high = (int(first), int(end)) if colon else (FIRST_SEED, FIRST_SEED + int(first))
    except ValueError:
        low, high = 0, 0
    if not 0 <= low < high <= 2**32:
        raise ArgumentTypeError(f"must be a count, or A:B with 0 ≤ A < B; it is {text}")
    return list(range(low, high))


def names(known: Collection[str], kind: str) -> Callable[[str], tuple[str, ...]]:
    """Some of those that are known, by commas."""

    def parse(text: str) -> tuple[str, ...]:
        found = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
        if not found:
            raise ArgumentTypeError(f"must name at least one {kind}")
        if unknown := [name for name in found if name not in known]:
            raise ArgumentTypeError(
                f"there is no {kind} {', '.join(unknown)}; there are {', '.join(known)}"
            )
        return found

    return parse
