"""Every call of the service, written once: both clients have these as methods."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload
from urllib.parse import quote

import msgspec

from . import calls
from .arms import COMPACT, Arms, compact_arms, json_arms
from .calls import BYTES, JSON, Call, Request, json_request
from .errors import Problem, Refused, refusal
from .results import Decision, Learner, Model, Rewarded, Selected, Statistics

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from .shells import AsyncClient, Client

P = ParamSpec("P")
T = TypeVar("T")

BATCH_ITEMS = 1_000  # the service's own limits, unless it is told otherwise
BATCH_BYTES = 4 << 20


class verb(Generic[P, T]):  # noqa: N801  it is used as a decorator
    """Makes a method that describes a call into one that makes it, or one to be awaited."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Call[T]]) -> None:
        self.describe = describe
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, shell: Client, owner: Any) -> Callable[P, T]: ...
    @overload
    def __get__(self, shell: AsyncClient, owner: Any) -> Callable[P, Awaitable[T]]: ...
    @overload
    def __get__(self, shell: None, owner: Any) -> verb[P, T]: ...
    def __get__(self, shell: Any, owner: Any) -> Any:
        if shell is None:
            return self

        def method(*args: P.args, **kwargs: P.kwargs) -> Any:
            return shell.send(self.describe(shell, *args, **kwargs))

        method.__doc__ = self.__doc__
        return method


class Verbs:
    learner: str
    compact: bool

    @verb
    def select(
        self,
        arms: Arms,
        *,
        learner: str | None = None,
        event_id: str | None = None,
        ids: Sequence[str] | None = None,
        mask: Any | None = None,
        explain: bool = False,
        dry_run: bool = False,
    ) -> Call[Selected]:
        """Choose one of the arms.

        Arms are a NumPy array (arms, features) with NaN where missing, lists with None, mappings
        of named features, or a mapping of arm ids to any of these. Large plain ones travel as
        float32.
        """
        name = learner or self.learner
        if not dry_run:
            event_id = event_id or new_event_id()
        plain = not (ids or explain or dry_run) and mask is None
        if self.compact and plain and (body := compact_arms(arms)):
            query = {"learner": name, "event_id": event_id or ""}
            request = Request("POST", "/select", body, COMPACT, query)
        else:
            request = json_request(
                "POST",
                "/select",
                _select_body(arms, name, event_id, ids, mask, explain=explain, dry_run=dry_run),
            )
        return calls.one(request, calls.reader(Selected))

    @verb
    def reward(self, event_id: str, reward: float, *, learner: str | None = None) -> Call[Rewarded]:
        """Report what a choice has paid. Reporting again changes nothing."""
        body = {"learner": learner or self.learner, "event_id": event_id, "reward": float(reward)}
        return calls.one(
            json_request("POST", "/reward", body),
            lambda answer: _rewarded(calls.decoded(answer, dict), float(reward)),
        )

    @verb
    def select_batch(
        self,
        batch: Sequence[Arms],
        *,
        learner: str | None = None,
        event_ids: Sequence[str] | None = None,
        ids: Sequence[Sequence[str] | None] | None = None,
        explain: bool = False,
    ) -> Call[list[Selected | Refused]]:
        """Many choices at once, in order; one that is refused does not fail the others."""
        name = learner or self.learner
        events = event_ids or [new_event_id() for _ in batch]
        names = ids or [None] * len(batch)
        items = [
            msgspec.json.encode(_select_body(arms, name, event, own, None, explain=explain))
            for arms, event, own in zip(batch, events, names, strict=True)
        ]
        return _batched(
            "/select/batch", b"requests", items, lambda _, item: msgspec.convert(item, Selected)
        )

    @verb
    def reward_batch(
        self,
        rewards: Mapping[str, float] | Iterable[tuple[str, float]],
        *,
        learner: str | None = None,
    ) -> Call[list[Rewarded | Refused]]:
        """Many rewards at once, by event id."""
        pairs = rewards.items() if isinstance(rewards, Mapping) else rewards
        sent = [(event, float(value)) for event, value in pairs]
        name = learner or self.learner
        items = [
            msgspec.json.encode({"learner": name, "event_id": event, "reward": value})
            for event, value in sent
        ]
        return _batched(
            "/reward/batch",
            b"rewards",
            items,
            lambda place, item: _rewarded(item, sent[place][1]),
        )

    @verb
    def put_learner(self, name: str, /, **configuration: Any) -> Call[Learner]:
        """Create a learner, or reconfigure it: `dimension` or `features`, `policy`, …"""
        request = json_request("PUT", _path(name), configuration)
        return calls.one(request, calls.reader(Learner))

    @verb
    def get_learner(self, name: str) -> Call[Statistics]:
        """Configuration and statistics."""
        return calls.one(Request("GET", _path(name)), calls.reader(Statistics))

    @verb
    def list_learners(self) -> Call[list[str]]:
        """The names of all learners."""
        return calls.one(
            Request("GET", "/learners"),
            lambda body: [str(one["name"]) for one in calls.decoded(body, dict)["learners"]],
        )

    @verb
    def reset_learner(self, name: str) -> Call[None]:
        """Forget what was learnt; the configuration stays."""
        return calls.one(Request("POST", f"{_path(name)}/reset"), calls.nothing)

    @verb
    def delete_learner(self, name: str) -> Call[None]:
        """Remove the learner and all it holds."""
        request = Request("DELETE", _path(name), gone_is_done=True)
        return calls.one(request, calls.nothing)

    @verb
    def export_learner(self, name: str) -> Call[bytes]:
        """The whole state as one file."""
        return calls.one(Request("GET", f"{_path(name)}/export"), bytes)

    @verb
    def import_learner(self, name: str, state: bytes) -> Call[Learner]:
        """An exported state, in place of what the learner was or as a new one."""
        request = Request("PUT", f"{_path(name)}/import", state, BYTES)
        return calls.one(request, calls.reader(Learner))

    @verb
    def model(self, name: str | None = None) -> Call[Model]:
        """The estimate of the features' distribution, and the model of the reward."""
        path = f"{_path(name or self.learner)}/model"
        return calls.one(Request("GET", path), calls.reader(Model))

    @verb
    def decisions(self, name: str | None = None, *, limit: int = 50) -> Call[list[Decision]]:
        """The latest decisions, newest first."""
        path = f"{_path(name or self.learner)}/decisions"
        return calls.one(
            Request("GET", path, query={"limit": str(limit)}),
            lambda body: msgspec.convert(
                calls.decoded(body, dict)["decisions"], list[Decision], strict=False
            ),
        )

    @verb
    def ready(self) -> Call[None]:
        """Returns when the service is ready to answer."""
        return calls.one(Request("GET", "/health/ready"), calls.nothing)


def _path(learner: str) -> str:
    return "/learners/" + quote(learner, safe="")


def new_event_id() -> str:
    return uuid.uuid4().hex


def _select_body(
    arms: Arms,
    learner: str,
    event_id: str | None,
    ids: Sequence[str] | None,
    mask: Any | None,
    *,
    explain: bool = False,
    dry_run: bool = False,
) -> dict[str, Any]:
    body: dict[str, Any] = {"learner": learner, "arms": json_arms(arms, ids, mask)}
    if event_id:
        body["event_id"] = event_id
    if explain:
        body["explain"] = True
    if dry_run:
        body["dry_run"] = True
    return body


def _rewarded(item: Mapping[str, Any], sent: float) -> Rewarded:
    # What was sent stands, unless the answer says what does.
    return msgspec.convert({"reward": sent, **item}, Rewarded)


def _batched(
    path: str, key: bytes, items: list[bytes], read: Callable[[int, Any], T]
) -> Call[list[T | Refused]]:
    def join(bodies: list[bytes]) -> list[T | Refused]:
        results = [item for body in bodies for item in calls.decoded(body, dict)["results"]]
        return [
            refusal(msgspec.convert(item["error"], Problem))
            if "error" in item
            else read(place, item)
            for place, item in enumerate(results)
        ]

    bodies = (b'{"%s":[%s]}' % (key, b",".join(chunk)) for chunk in _chunks(items))
    return Call([Request("POST", path, body, JSON) for body in bodies], join)


def _chunks(items: list[bytes]) -> Iterator[list[bytes]]:
    chunk: list[bytes] = []
    size = 0
    for item in items:
        if chunk and (len(chunk) == BATCH_ITEMS or size + len(item) > BATCH_BYTES - 1_024):
            yield chunk
            chunk, size = [], 0
        chunk.append(item)
        size += len(item) + 1
    if chunk:
        yield chunk
