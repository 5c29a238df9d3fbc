"""MovieLens 100K: `u.data`, `u.user`, `u.item`, or the whole `ml-100k.zip`. Rating 5 is a 1."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..errors import BadFile
from ..files import Source
from .base import Dataset, Files, Impression, Row, table

ROLES = ("u.data", "u.user", "u.item")
SHAPES = {
    "u.data": re.compile(r"\d+\t\d+\t\d+\t\d+"),
    "u.user": re.compile(r"\d+\|\d+\|[A-Z]\|[^|]*\|[^|]*"),
    "u.item": re.compile(r"\d+\|[^|]*\|[^|]*\|[^|]*\|[^|]*(\|[01]){19}"),
}
GENRES = (
    *("unknown", "action", "adventure", "animation", "children", "comedy", "crime", "documentary"),
    *("drama", "fantasy", "film_noir", "horror", "musical", "mystery", "romance", "sci_fi"),
    *("thriller", "war", "western"),
)
ITEM_COLUMNS = 5 + len(GENRES)
FIELDS = ("age", "gender", "occupation", "zip_region", "movie", "year", *GENRES)
LIKED = "5"


def role_of(first: str) -> str | None:
    return next((role for role, shape in SHAPES.items() if shape.fullmatch(first)), None)


def stream(files: Files) -> Iterator[Impression]:
    source = files["u.data"]
    for line, (user, movie, rating, _) in table(source, 4, delimiter="\t"):
        if rating not in ("1", "2", "3", "4", "5"):
            raise BadFile(source.name, line, f"a rating must be 1 to 5, not {rating[:20]!r}")
        yield Impression(rating == LIKED, (user, movie))


def complete(rows: Sequence[Row], files: Files) -> list[Row]:
    users = {
        row[0]: (f"{int(row[1]) // 10 * 10}s", row[2] or None, row[3] or None, row[4][:1] or None)
        for row in _users(files["u.user"])
    }
    movies: dict[str | None, Row] = {
        row[0]: (row[0], _decade(row[2]), *row[5:])
        for _, row in table(files["u.item"], ITEM_COLUMNS, delimiter="|")
    }
    no_user: Row = (None,) * 4
    no_movie: Row = (None,) * (2 + len(GENRES))
    return [(*users.get(user or "", no_user), *movies.get(movie, no_movie)) for user, movie in rows]


def _users(source: Source) -> Iterator[list[str]]:
    for line, row in table(source, 5, delimiter="|"):
        if not row[1].isdigit():
            raise BadFile(source.name, line, f"age must be a whole number, not {row[1][:20]!r}")
        yield row


def _decade(released: str) -> str | None:
    """`01-Jan-1995` as 1990."""
    year = released[-4:]
    return f"{year[:3]}0" if year.isdigit() else None


MOVIELENS = Dataset(
    name="movielens",
    summary="u.data, u.user and u.item of MovieLens 100K, or ml-100k.zip",
    fields=FIELDS,
    roles=ROLES,
    role_of=role_of,
    stream=stream,
    complete=complete,
    encoding="latin-1",
)
