"""Avazu's `train.gz` as published for the CTR prediction challenge: 40,428,967 impressions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..errors import BadFile
from .base import Dataset, Files, Impression, Row, bit, table

HEADER = (
    "id,click,hour,C1,banner_pos,site_id,site_domain,site_category,app_id,app_domain,"
    "app_category,device_id,device_ip,device_model,device_type,device_conn_type,"
    "C14,C15,C16,C17,C18,C19,C20,C21"
)
COLUMNS = HEADER.split(",")
CLICK, HOUR, FIRST = 1, 2, 3
FIELDS = ("hour_of_day", *COLUMNS[FIRST:])

# Hashes that stand for "none": an impression in an app has no site, one on a site no app.
MISSING = {
    "site_id": "85f751fd",
    "site_domain": "c4e18dd6",
    "site_category": "50e219e0",
    "app_id": "ecad2386",
    "app_domain": "7801e8d9",
    "app_category": "07d7df22",
    "device_id": "a99f214a",
    "C20": "-1",
}
PLACEHOLDERS = [MISSING.get(name, "") for name in COLUMNS[FIRST:]]


def stream(files: Files) -> Iterator[Impression]:
    source = files["train"]
    for line, row in table(source, len(COLUMNS), skip=1):
        hour = row[HOUR]
        if len(hour) != 8 or not hour.isdigit():
            raise BadFile(source.name, line, f"hour must be YYMMDDHH, not {hour[:20]!r}")
        yield Impression(bit(row[CLICK], source, line, "click"), tuple(row[HOUR:]))


def complete(rows: Sequence[Row], files: Files) -> list[Row]:
    return [
        (
            (hour or "")[6:],
            *(
                None if value in ("", placeholder) else value
                for value, placeholder in zip(fields, PLACEHOLDERS, strict=True)
            ),
        )
        for hour, *fields in rows
    ]


AVAZU = Dataset(
    name="avazu",
    summary="train.gz of the CTR prediction challenge",
    fields=FIELDS,
    roles=("train",),
    role_of=lambda first: "train" if first == HEADER else None,
    stream=stream,
    complete=complete,
)
