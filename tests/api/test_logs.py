"""A flood of lines of one kind leaves room for the others."""

import logging

from service.api.logs import LINES, WHILE_S, Flood


def record(level: int, text: str, *arguments: object, at: float = 0.0) -> logging.LogRecord:
    made = logging.LogRecord("lacuna.api", level, "", 0, text, arguments, None)
    made.created = at
    return made


def test_of_lines_of_one_kind_some_are_let_through_and_the_rest_is_counted():
    flood = Flood()
    told = [
        flood.filter(record(logging.ERROR, "%s took %d ms", "/reward", n)) for n in range(1_000)
    ]
    assert told == [True] * LINES + [False] * (1_000 - LINES)
    assert flood.filter(record(logging.ERROR, "something else"))
    later = record(logging.ERROR, "%s took %d ms", "/reward", 7, at=WHILE_S)
    assert flood.filter(later)
    assert later.getMessage() == f"/reward took 7 ms  (and {1_000 - LINES} like it before)"
    again = record(logging.ERROR, "%s took %d ms", "/reward", 8, at=3 * WHILE_S)
    assert flood.filter(again)
    assert again.getMessage() == "/reward took 8 ms"


def test_what_was_asked_for_is_never_left_out():
    flood = Flood()
    assert all(flood.filter(record(logging.INFO, "GET / 200")) for _ in range(1_000))
