"""The bodies of `/select` and `/reward`, decoded once, into exactly what the engine takes."""

from __future__ import annotations

import re
from typing import Annotated, TypeVar
from urllib.parse import parse_qsl

import msgspec
import numpy as np
from msgspec import Meta

from service.errors import BadRequest
from service.learner import Arms, BadInput
from service.learner.arms import Floats, Mask
from service.settings import Settings

from .problems import bad_arms, bad_json

MAX_ID = 128
COMPACT = b"application/vnd.lacuna.f32"


def is_compact(content_type: bytes) -> bool:
    if content_type == COMPACT:
        return True
    return content_type.partition(b";")[0].strip().lower() == COMPACT


IN_THE_BODY = ("learner", "event_id", "arms", "explain", "dry_run", "reward")
HEADER_BYTES = 4  # uint16 K, uint16 d

Id = Annotated[str, Meta(min_length=1, max_length=MAX_ID)]
Values = list[float | None]
Named = dict[str, float | None]

_T = TypeVar("_T")


class ArmBody(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    features: Values | Named
    id: Id | None = None
    mask: list[int] | None = None


class SelectBody(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    arms: list[ArmBody]
    learner: str = "default"
    event_id: Id | None = None
    explain: bool = False
    dry_run: bool = False


class RewardBody(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    event_id: Id
    reward: float
    learner: str = "default"


class SelectsBody(msgspec.Struct, forbid_unknown_fields=True):
    requests: list[msgspec.Raw]


class RewardsBody(msgspec.Struct, forbid_unknown_fields=True):
    rewards: list[msgspec.Raw]


class SelectRequest(msgspec.Struct, gc=False):
    """A select that is fit to be tried; `named` where only its learner can tell what is what."""

    learner: str
    event_id: str | None
    arm_ids: list[str]
    arms: Arms | None
    named: SelectBody | None = None
    explain: bool = False
    dry_run: bool = False


class Reader:
    """Decoders, made once; every refusal is a BadRequest that names the field."""

    def __init__(self, settings: Settings) -> None:
        self.max_arms = settings.max_arms
        self.max_dimension = settings.max_dimension
        self.max_batch = settings.max_batch
        self.positions = [str(index) for index in range(settings.max_arms)]
        self._select = msgspec.json.Decoder(SelectBody)
        self._reward = msgspec.json.Decoder(RewardBody)
        self._selects = msgspec.json.Decoder(SelectsBody)
        self._rewards = msgspec.json.Decoder(RewardsBody)

    def select(self, text: bytes | msgspec.Raw, query: bytes = b"") -> SelectRequest:
        refuse_in_query(query)
        body = _decoded(self._select, text)
        count = len(body.arms)
        self._check_count(count)
        ids = [
            self.positions[index] if arm.id is None else arm.id
            for index, arm in enumerate(body.arms)
        ]
        if len(set(ids)) != count:
            raise BadRequest(*_duplicate(ids))
        rows = [arm.features for arm in body.arms]
        request = SelectRequest(
            body.learner, body.event_id, ids, None, None, body.explain, body.dry_run
        )
        if all(type(row) is list for row in rows):
            request.arms = self._arms(rows, body.arms)  # type: ignore[arg-type]
        else:
            request.named = body
        return request

    def named_arms(self, body: SelectBody, names: tuple[str, ...]) -> Arms:
        """Features by name as those by position; a name left out is missing."""
        known = set(names)
        rows: list[Values] = []
        for index, arm in enumerate(body.arms):
            row = arm.features
            if isinstance(row, dict):
                for name in row:
                    if name not in known:
                        raise BadRequest(
                            f"arms[{index}].features.{name}", "is not a feature of this learner"
                        )
                row = [row.get(name) for name in names]
            rows.append(row)
        try:
            return self._arms(rows, body.arms)
        except BadRequest as error:
            [told] = error.errors
            found = re.fullmatch(r"(arms\[(\d+)\]\.features)\[(\d+)\]", told["loc"])
            if found and isinstance(body.arms[int(found[2])].features, dict):
                raise BadRequest(f"{found[1]}.{names[int(found[3])]}", told["msg"]) from None
            raise

    def compact(self, body: bytes, query: bytes) -> SelectRequest:
        asked = _query(query)
        for name in asked:
            if name not in ("learner", "event_id", "explain", "dry_run"):
                raise BadRequest(name, "is not a field of this request")
        if len(body) < HEADER_BYTES:
            raise BadRequest("body", "must begin with uint16 K and uint16 d")
        count, d = int.from_bytes(body[:2], "little"), int.from_bytes(body[2:4], "little")
        wanted = HEADER_BYTES + 4 * count * d
        if len(body) != wanted:
            raise BadRequest(
                "body", f"must be {wanted:,} bytes long for K={count} and d={d}, not {len(body):,}"
            )
        self._check_count(count)
        self._check_dimension(d, 0)
        values = np.frombuffer(body, "<f4", offset=HEADER_BYTES).reshape(count, d)
        return SelectRequest(
            asked.get("learner", "default"),
            _checked_id(asked.get("event_id"), "event_id"),
            self.positions[:count],
            _checked(values.astype(np.float64)),
            explain=_flag(asked, "explain"),
            dry_run=_flag(asked, "dry_run"),
        )

    def reward(self, text: bytes | msgspec.Raw) -> RewardBody:
        return _decoded(self._reward, text)

    def selects(self, text: bytes) -> list[msgspec.Raw]:
        return self._batch(_decoded(self._selects, text).requests, "requests")

    def rewards(self, text: bytes) -> list[msgspec.Raw]:
        return self._batch(_decoded(self._rewards, text).rewards, "rewards")

    def _batch(self, items: list[msgspec.Raw], name: str) -> list[msgspec.Raw]:
        if len(items) > self.max_batch:
            raise BadRequest(name, f"must be at most {self.max_batch:,}, not {len(items):,}")
        return items

    def _arms(self, rows: list[Values], bodies: list[ArmBody]) -> Arms:
        d = len(rows[0])
        self._check_dimension(d, 0)
        for index, row in enumerate(rows):
            if len(row) != d:
                raise BadRequest(
                    f"arms[{index}].features", f"must be {d} as in the first arm, not {len(row)}"
                )
        values = np.array(rows, dtype=np.float64)  # None becomes NaN
        for index, arm in enumerate(bodies):
            if arm.mask is not None:
                values[index, ~_observed(arm.mask, d, index)] = np.nan
        return _checked(values)

    def _check_count(self, count: int) -> None:
        if not 1 <= count <= self.max_arms:
            raise BadRequest("arms", f"must be 1 to {self.max_arms:,} arms, not {count:,}")

    def _check_dimension(self, d: int, index: int) -> None:
        if not 1 <= d <= self.max_dimension:
            raise BadRequest(
                f"arms[{index}].features", f"must be 1 to {self.max_dimension:,}, not {d:,}"
            )


def _decoded(decoder: msgspec.json.Decoder[_T], text: bytes | msgspec.Raw) -> _T:
    try:
        return decoder.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise bad_json(error, bytes(text)) from None


def _checked(values: Floats) -> Arms:
    try:
        return Arms.of(values)
    except BadInput as error:
        raise bad_arms(error) from None


def _observed(mask: list[int], d: int, index: int) -> Mask:
    if len(mask) != d:
        raise BadRequest(f"arms[{index}].mask", f"must be {d} as the features, not {len(mask)}")
    for position, value in enumerate(mask):
        if value not in (0, 1):
            raise BadRequest(f"arms[{index}].mask[{position}]", "must be 0 or 1")
    return np.array(mask, dtype=np.bool_)


def _duplicate(ids: list[str]) -> tuple[str, str]:
    seen: dict[str, int] = {}
    for index, arm_id in enumerate(ids):
        first = seen.setdefault(arm_id, index)
        if first != index:
            return f"arms[{index}].id", f"is that of arms[{first}] too: {arm_id!r}"
    raise AssertionError("all ids differ")


def _query(query: bytes) -> dict[str, str]:
    try:
        return dict(parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict"))
    except UnicodeDecodeError:
        raise BadRequest("query", "is not valid UTF-8") from None


def _flag(asked: dict[str, str], name: str) -> bool:
    given = asked.get(name, "false")
    if given not in ("true", "false"):
        raise BadRequest(name, "must be true or false")
    return given == "true"


def refuse_in_query(query: bytes) -> None:
    """What would be left unread there, and was meant."""
    if not query:
        return
    for name in _query(query):
        if name in IN_THE_BODY:
            raise BadRequest(name, "belongs into the body; only a compact one has it in the query")


def _checked_id(value: str | None, name: str) -> str | None:
    if value is not None and not 1 <= len(value) <= MAX_ID:
        raise BadRequest(name, f"must be 1 to {MAX_ID} characters")
    return value
