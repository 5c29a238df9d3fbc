"""Taobao's display advertising log: `raw_sample.csv`, `ad_feature.csv`, `user_profile.csv`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..errors import BadFile
from ..files import Source
from .base import Dataset, Files, Impression, Row, bit, table

HEADERS = {
    "raw_sample.csv": "user,time_stamp,adgroup_id,pid,nonclk,clk",
    "ad_feature.csv": "adgroup_id,cate_id,campaign_id,customer,brand,price",
    "user_profile.csv": (
        "userid,cms_segid,cms_group_id,final_gender_code,age_level,pvalue_level,"
        "shopping_level,occupation,new_user_class_level"
    ),
}
ROLES = tuple(HEADERS)
AD_FIELDS = ("cate_id", "campaign_id", "customer", "brand", "price_band")
USER_FIELDS = tuple(HEADERS["user_profile.csv"].split(",")[1:])
FIELDS = ("pid", "hour_of_day", *AD_FIELDS, *USER_FIELDS)
UTC_OFFSET_S = 8 * 3_600  # the log was kept in China
PRICE_BANDS = (10, 30, 100, 300, 1_000, 3_000)


def role_of(first: str) -> str | None:
    # As published, the last column of user_profile.csv has a space after its name.
    columns = ",".join(name.strip() for name in first.split(","))
    return next((role for role, header in HEADERS.items() if columns == header), None)


def stream(files: Files) -> Iterator[Impression]:
    source = files["raw_sample.csv"]
    for line, (user, stamp, ad, pid, _, click) in table(source, 6, skip=1):
        if not stamp.isdigit():
            raise BadFile(source.name, line, f"time_stamp must be seconds, not {stamp[:20]!r}")
        hour = (int(stamp) + UTC_OFFSET_S) // 3_600 % 24
        yield Impression(bit(click, source, line, "clk"), (user, ad, pid or None, f"{hour:02}"))


def complete(rows: Sequence[Row], files: Files) -> list[Row]:
    """Joined with ad and user; a user without a profile has those fields missing."""
    users = _looked_up(files["user_profile.csv"], {row[0] for row in rows}, len(USER_FIELDS))
    ads = _looked_up(files["ad_feature.csv"], {row[1] for row in rows}, len(AD_FIELDS))
    no_user: Row = (None,) * len(USER_FIELDS)
    no_ad: Row = (None,) * len(AD_FIELDS)
    return [
        (pid, hour, *_banded(ads.get(ad, no_ad)), *users.get(user, no_user))
        for user, ad, pid, hour in rows
    ]


def _looked_up(source: Source, wanted: set[str | None], fields: int) -> dict[str | None, Row]:
    return {
        row[0]: tuple(None if value.strip() in ("", "NULL") else value for value in row[1:])
        for _, row in table(source, fields + 1, skip=1)
        if row[0] in wanted
    }


def _banded(ad: Row) -> Row:
    """The price as a band: a category like the rest."""
    price = ad[-1]
    if price is None:
        return ad
    try:
        return (*ad[:-1], str(sum(float(price) >= bound for bound in PRICE_BANDS)))
    except ValueError:
        return (*ad[:-1], None)


TAOBAO = Dataset(
    name="taobao",
    summary="raw_sample.csv, ad_feature.csv and user_profile.csv, in any order",
    fields=FIELDS,
    roles=ROLES,
    role_of=role_of,
    stream=stream,
    complete=complete,
)
