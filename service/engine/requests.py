"""Requests on their way through an engine: from the queue to their answer."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from service.learner import Arms, Choices
from service.store.packing import Answer

_T = TypeVar("_T")


@dataclass(slots=True)
class Selected:
    event_id: str
    answer: Answer
    choices: Choices | None  # None where an earlier answer was found; else this select's batch
    request: int  # its place in the batch


@dataclass(slots=True)
class Selection:
    """One select."""

    arms: Arms
    arm_ids: list[str]
    event_id: str
    event: bytes  # the same, encoded
    done: asyncio.Future[Selected]
    explain: bool = False  # its caller wants to know what the arms were worth


@dataclass(slots=True)
class Chosen:
    """A select with its choice, before the store has said whether it stands."""

    selection: Selection
    selected: Selected
    record: bytes
    generation: int  # of the moments its arms went into


@dataclass(slots=True)
class Claim:
    """One reward."""

    event_id: str
    event: bytes
    reward: bytes
    done: asyncio.Future[tuple[str, float]]


class Identifiers:
    """Random bytes by the page: asking the kernel for every request would show."""

    def __init__(self) -> None:
        self._page = b""
        self._next = 0

    def take(self, size: int) -> bytes:
        start = self._next
        if start + size > len(self._page):
            self._page, start = os.urandom(4_096), 0
        self._next = start + size
        return self._page[start : start + size]


def resolve(done: asyncio.Future[_T], value: _T) -> None:
    if not done.done():  # a caller may have given up
        done.set_result(value)


def reject(done: asyncio.Future[Any], error: Exception) -> None:
    if not done.done():
        done.set_exception(error)


def fail(selects: Iterable[Selection], claims: Iterable[Claim], error: Exception) -> None:
    for select in selects:
        reject(select.done, error)
    for claim in claims:
        reject(claim.done, error)


def first_of_each(selects: list[Selection]) -> tuple[list[Selection], list[Selection]]:
    """One select per event id, and those that get the answer of the first."""
    by_id: dict[str, Selection] = {}
    for select in selects:
        by_id.setdefault(select.event_id, select)
    if len(by_id) == len(selects):
        return selects, []
    return list(by_id.values()), [one for one in selects if by_id[one.event_id] is not one]


def answer_like(repeats: list[Selection], told: list[Selected]) -> None:
    answers = {one.event_id: one.answer for one in told} if repeats else {}
    for select in repeats:
        resolve(select.done, Selected(select.event_id, answers[select.event_id], None, 0))
