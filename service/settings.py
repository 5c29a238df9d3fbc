"""What the service is told: `LACUNA_*` in the environment, or flags of `lacuna serve`.

docs/configuration.md has a line for each; a test compares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args, get_type_hints

from service.errors import BadSetting

PREFIX = "LACUNA_"

LogFormat = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]
AppendFsync = Literal["everysec", "always"]


def about(help: str, *, least: float = 0, most: float = 2**53, flag: bool = True) -> dict[str, Any]:
    """What a setting is for; without a flag it can only come from the environment."""
    return {"help": help, "least": least, "most": most, "flag": flag}


@dataclass(frozen=True, slots=True)
class Settings:
    host: str = field(default="127.0.0.1", metadata=about("address to listen on; 0.0.0.0 for all"))
    port: int = field(
        default=8080, metadata=about("port to listen on; 0 takes a free one", most=65_535)
    )
    workers: int = field(
        default=1,
        metadata=about("worker processes; one per core is a good start", least=1, most=1_024),
    )
    redis_url: str = field(
        default="",
        repr=False,
        metadata=about("Redis or Valkey to use; empty: an embedded Valkey is started"),
    )
    data_dir: str = field(
        default="",
        metadata=about("where the embedded Valkey keeps its data; empty: ~/.local/share/lacuna"),
    )
    appendfsync: AppendFsync = field(
        default="everysec", metadata=about("how often the embedded Valkey syncs to disk")
    )
    max_memory_bytes: int = field(
        default=0, metadata=about("bytes the embedded Valkey may hold; 0: as many as there are")
    )
    api_keys: tuple[str, ...] = field(
        default=(),
        repr=False,
        metadata=about(
            "keys that callers must show, comma-separated; empty: no key is asked for", flag=False
        ),
    )
    log_format: LogFormat = field(
        default="text", metadata=about("log lines for people, or as JSON")
    )
    log_level: LogLevel = field(default="info", metadata=about("the least that is logged"))
    access_log: bool = field(
        default=False, metadata=about("log every request, not only those that failed")
    )
    auto_create: bool = field(default=True, metadata=about("make a learner on its first select"))
    max_arms: int = field(default=1_000, metadata=about("arms in a select", least=1, most=65_535))
    max_dimension: int = field(
        default=1_024, metadata=about("features of an arm", least=1, most=1_024)
    )
    max_batch: int = field(default=1_000, metadata=about("items in a batch", least=1))
    max_body_bytes: int = field(default=4 << 20, metadata=about("bytes in a request", least=1_024))
    max_import_bytes: int = field(
        default=1 << 30, metadata=about("bytes in an imported learner", least=1_024)
    )
    keep_alive_s: int = field(
        default=75, metadata=about("an idle connection is closed after this", least=1, most=86_400)
    )
    drain_idle_s: float = field(
        default=1.0,
        metadata=about(
            "at shutdown an idle connection may still send a request for so long", most=3_600
        ),
    )
    drain_s: int = field(
        default=30, metadata=about("at shutdown requests may take this long", least=1, most=3_600)
    )
    follow_interval_s: float = field(
        default=0.25,
        metadata=about(
            "how often an idle worker looks for rewards that other workers took", least=0.001
        ),
    )
    store_timeout_s: float = field(
        default=5.0, metadata=about("the store must answer within this", least=0.01)
    )
    queue_limit: int = field(
        default=8_192, metadata=about("requests that may wait for one learner of a worker", least=1)
    )
    buffer_limit: int = field(
        default=10_000,
        metadata=about("decisions a worker keeps per learner while the store is away"),
    )
    idle_s: float = field(
        default=900.0,
        metadata=about("a learner unused for so long leaves the worker's memory", least=1),
    )
    metrics_dir: str = field(
        default="",
        metadata=about("where workers share their metrics; `lacuna serve` sets it", flag=False),
    )
    worker_number: int = field(
        default=0, metadata=about("this worker's place; `lacuna serve` sets it", flag=False)
    )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings:
        given = {}
        for name, parse in PARSERS.items():
            text = environment.get(variable(name))
            if text is not None and text.strip() != "":
                given[name] = parse(text.strip(), variable(name))
        return cls().changed(given)

    def changed(self, given: Mapping[str, Any]) -> Settings:
        """With some settings replaced, and checked."""
        for one in fields(self):
            value = given.get(one.name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                continue
            least, most = one.metadata["least"], one.metadata["most"]
            if not least <= value <= most:
                raise BadSetting(variable(one.name), f"must be from {least:g} to {most:g}")
        return replace(self, **given)

    def to_environment(self) -> dict[str, str]:
        """For a process that is to be told the same."""
        return {variable(one.name): _text(getattr(self, one.name)) for one in fields(self)}


def variable(name: str) -> str:
    return PREFIX + name.upper()


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _parse_int(text: str, name: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise BadSetting(name, f"must be a whole number, not {text!r}") from None


def _parse_float(text: str, name: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise BadSetting(name, f"must be a number, not {text!r}") from None
    if value != value:
        raise BadSetting(name, "must be a number")
    return value


def _parse_bool(text: str, name: str) -> bool:
    words = {"true": True, "1": True, "yes": True, "on": True}
    words |= {"false": False, "0": False, "no": False, "off": False}
    if text.lower() not in words:
        raise BadSetting(name, f"must be true or false, not {text!r}")
    return words[text.lower()]


def _parse_list(text: str, name: str) -> tuple[str, ...]:
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    if not found:
        raise BadSetting(name, f"must name at least one, not {text!r}")
    return found


def _parse_text(text: str, name: str) -> str:
    return text


def _one_of(allowed: tuple[str, ...]) -> Any:
    def parse(text: str, name: str) -> str:
        if text.lower() not in allowed:
            raise BadSetting(name, f"must be one of {', '.join(allowed)}, not {text!r}")
        return text.lower()

    return parse


def _parser(hint: Any) -> Any:
    simple = {int: _parse_int, float: _parse_float, bool: _parse_bool, str: _parse_text}
    if hint in simple:
        return simple[hint]
    return _one_of(get_args(hint)) if get_args(hint)[-1] is not Ellipsis else _parse_list


PARSERS = {name: _parser(hint) for name, hint in get_type_hints(Settings).items()}
