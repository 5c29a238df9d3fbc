"""Values of the command line, each with one sentence where it cannot be used."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from clients.simulate.players import POLICIES

FIRST_SEED = 100


def whole(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            value = int(text.replace("_", "").replace(",", ""))
        except ValueError:
            value = low - 1
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(
                f"must be a whole number from {low:,} to {high:,}; it is {text}"
            )
        return value

    return parse


def shares(text: str) -> tuple[float, ...]:
    """`0.1,0.4`"""
    try:
        values = tuple(dict.fromkeys(float(part) for part in text.split(",")))
    except ValueError:
        values = (-1.0,)
    if not all(0.0 <= value < 1.0 for value in values):
        raise argparse.ArgumentTypeError(f"must be from 0 to below 1, by commas; it is {text}")
    return values


def seeds(text: str) -> list[int]:
    """`3`: 100, 101, 102; `0:8`: 0 to 7."""
    first, colon, end = text.partition(":")
    try:
        low, high = (int(first), int(end)) if colon else (FIRST_SEED, FIRST_SEED + int(first))
    except ValueError:
        low, high = 0, 0
    if not 0 <= low < high:
        raise argparse.ArgumentTypeError(f"must be a count, or A:B with 0 ≤ A < B; it is {text}")
    return list(range(low, high))


def policies(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    unknown = [name for name in names if name not in POLICIES]
    if unknown or not names:
        known = ", ".join(POLICIES)
        raise argparse.ArgumentTypeError(f"there is no policy {', '.join(unknown)}; known: {known}")
    return names
