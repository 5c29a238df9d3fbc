"""What every log has in common."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..errors import BadFile
from ..files import Source

Row = tuple[str | None, ...]  # a field that the log does not know is None
Files = Mapping[str, Source]  # by role


class Impression(NamedTuple):
    """One line of the log: what it was about, and whether it paid."""

    clicked: bool
    key: Row  # enough to look the rest up


@dataclass(frozen=True, slots=True)
class Dataset:
    name: str
    summary: str
    fields: tuple[str, ...]
    roles: tuple[str, ...]  # the files it needs, the log first
    role_of: Callable[[str], str | None]  # by a file's first line
    stream: Callable[[Files], Iterator[Impression]]
    # Only for impressions that were kept: tables of users and items need not fit into memory.
    complete: Callable[[Sequence[Row], Files], list[Row]]
    encoding: str = "utf-8"

    def assign(self, given: Sequence[Source]) -> dict[str, Source]:
        """Which file is which, told by their first lines."""
        found: dict[str, Source] = {}
        for source in given:
            first = source.first_line()
            role = self.role_of(first)
            if role is None:
                if source.member is None and len(given) <= len(self.roles):
                    raise BadFile(source.name, 1, self._foreign(first))
                continue  # an archive or folder may hold more than is needed
            if role in found:
                raise BadFile(
                    source.name, 1, f"is a second {role}; the first is {found[role].name}"
                )
            found[role] = source
        missing = [role for role in self.roles if role not in found]
        if missing:
            where = given[0].name if given else "nothing"
            raise BadFile(where, 1, f"{self.name} needs {', '.join(missing)} as well")
        return found

    def _foreign(self, first: str) -> str:
        if not first:
            return "is empty"
        begins = first[:60] + ("…" if len(first) > 60 else "")
        return f"is not a file of {self.name} ({', '.join(self.roles)}); it begins with {begins!r}"


def table(source: Source, columns: int, *, delimiter: str = ",", skip: int = 0) -> Iterator[
    tuple[int, list[str]]
]:  # fmt: skip
    """Rows with their line numbers, each of exactly so many columns."""
    # MovieLens has titles with a quote inside, and quotes nothing.
    quote = '"' if delimiter == "," else None
    quoting: Any = csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE
    rows = csv.reader(source.lines(), delimiter=delimiter, quotechar=quote, quoting=quoting)
    try:
        for _ in range(skip):
            next(rows, None)
        for row in rows:
            if len(row) != columns:
                raise BadFile(
                    source.name, rows.line_num, f"has {len(row)} columns, not {columns}: cut short?"
                )
            yield rows.line_num, row
    except csv.Error as error:
        raise BadFile(source.name, rows.line_num + 1, f"is not a table: {error}") from None


def bit(text: str, source: Source, line: int, column: str) -> bool:
    if text not in ("0", "1"):
        raise BadFile(source.name, line, f"{column} must be 0 or 1, not {text[:20]!r}")
    return text == "1"
