"""The URL of a store, its parts, and how it looks in a log.

    redis://[user:password@]host[:6379][/db]
    unix://[user:password@]/path/to/socket[?db=0]
    redis+sentinel://[user:password@]host[:26379][,host[:26379]…]/service[/db]
    redis+cluster://[user:password@]host[:6379][,host[:6379]…]

`rediss` in place of `redis` speaks TLS (to sentinels as well), `valkey` and `valkeys` mean the same
as `redis` and `rediss`. User and password are percent-encoded. After `?`: `db`; with TLS
`ssl_ca_certs`, `ssl_certfile`, `ssl_keyfile`, `ssl_cert_reqs` (required, optional, none) and
`ssl_check_hostname` (yes, no); with Sentinel `sentinel_username` and `sentinel_password`, the
sentinels' own.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qsl, unquote

from service.store.errors import BadStoreURL

Kind = Literal["standalone", "unix", "sentinel", "cluster"]

SCHEMES: Mapping[str, tuple[Kind, bool]] = {  # scheme → kind, TLS
    "redis": ("standalone", False),
    "rediss": ("standalone", True),
    "unix": ("unix", False),
    "redis+sentinel": ("sentinel", False),
    "rediss+sentinel": ("sentinel", True),
    "redis+cluster": ("cluster", False),
    "rediss+cluster": ("cluster", True),
}
TLS_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
TLS_OPTIONS = (*TLS_FILES, "ssl_cert_reqs", "ssl_check_hostname")
SENTINEL_OPTIONS = ("sentinel_username", "sentinel_password")


@dataclass(frozen=True)
class StoreURL:
    kind: Kind
    tls: bool
    hosts: tuple[tuple[str, int], ...]
    path: str
    service: str
    db: int
    username: str | None
    password: str | None
    options: Mapping[str, str]


def describe(url: str) -> str:
    """The URL fit for a log: its passwords masked, even where it is malformed."""
    scheme, separator, rest = url.partition("://") if "://" in url else ("", "", url)
    userinfo, at_sign, address = rest.rpartition("@")
    if at_sign and not userinfo.startswith("/"):  # a unix path may have an @ in it
        username, colon, _ = userinfo.partition(":")
        rest = f"{username}:***@{address}" if colon else f"***@{address}"
    rest = re.sub(r"([?&][^=&]*password)=[^&]*", r"\1=***", rest, flags=re.IGNORECASE)
    return scheme + separator + rest


def parse_url(url: str) -> StoreURL:
    """The parts of a store's URL; BadStoreURL says in one sentence what is wrong with it."""

    def wrong(what: str) -> BadStoreURL:
        return BadStoreURL(f"The store's URL {describe(url)} {what}.")

    scheme, separator, rest = url.partition("://")
    scheme = re.sub("^valkey", "redis", scheme.lower())
    if not separator or scheme not in SCHEMES:
        raise wrong(f"must begin with one of {', '.join(f'{known}://' for known in SCHEMES)}")
    kind, tls = SCHEMES[scheme]
    if "#" in rest:
        raise wrong("has a '#' in it, which must be written %23")
    rest, _, query = rest.partition("?")
    authority, slash, path = rest.partition("/")
    if "@" in query:
        raise wrong(
            "has an '@' after its '?': write a '?' in a password %3F, an '@' in an option %40"
        )
    if "@" in path and kind != "unix":
        raise wrong("has a '/' in its user or password, which must be written %2F")
    options = dict(parse_qsl(query, keep_blank_values=True))
    allowed = ["db"] if kind != "cluster" else []
    allowed += TLS_OPTIONS if tls else ()
    allowed += SENTINEL_OPTIONS if kind == "sentinel" else ()
    for name in options:
        if name in TLS_OPTIONS and not tls:
            raise wrong(f"has the option {name!r}, which needs TLS: rediss in place of redis")
        if name not in allowed:
            raise wrong(
                f"has the unknown option {name!r}; there are {', '.join(allowed) or 'none'}"
            )

    userinfo, _, address = authority.rpartition("@")
    username, _, password = userinfo.partition(":")
    hosts: tuple[tuple[str, int], ...] = ()
    service = ""
    if kind == "unix":
        if address or not path:
            raise wrong("needs the absolute path of a socket: unix:///path/to/socket")
        db = options.pop("db", "")
        path = unquote(slash + path)
    else:
        try:
            hosts = tuple(
                _host(part, 26379 if kind == "sentinel" else 6379) for part in address.split(",")
            )
        except ValueError as error:
            raise wrong(str(error)) from None
        if kind == "standalone" and len(hosts) > 1:
            raise wrong("names several hosts: use redis+sentinel:// or redis+cluster:// for that")
        if kind == "sentinel":
            service, _, path = path.partition("/")
            if not service:
                raise wrong("needs the name of the service that the sentinels watch: …/service")
        db = options.pop("db", path.rstrip("/"))
    if not re.fullmatch("[0-9]{0,6}", db):
        raise wrong(f"needs a number as its database, not {db!r}")
    if kind == "cluster" and int(db or 0) != 0:
        raise wrong("names a database, but a cluster has only database 0")
    for name in TLS_FILES:
        if name in options and not Path(options[name]).is_file():
            raise wrong(f"names {options[name]!r} as {name}, which is not a file")
    if options.get("ssl_cert_reqs", "none") not in ("none", "optional", "required"):
        raise wrong("needs required, optional or none as ssl_cert_reqs")
    if options.get("ssl_check_hostname", "no") not in ("yes", "no"):
        raise wrong("needs yes or no as ssl_check_hostname")
    return StoreURL(
        kind=kind,
        tls=tls,
        hosts=hosts,
        path=path if kind == "unix" else "",
        service=unquote(service),
        db=int(db or 0),
        username=unquote(username) or None,
        password=unquote(password) or None,
        options=options,
    )


def _host(text: str, default_port: int) -> tuple[str, int]:
    parts = re.fullmatch(r"(\[[0-9a-fA-F:.%]+\]|[^\[\]:]+)(?::([^:]*))?", text)
    if not parts:
        raise ValueError("needs a host: host or host:port (an IPv6 address in brackets)")
    host, port = parts[1].strip("[]"), parts[2]
    if port is None:
        return host, default_port
    if not re.fullmatch("[0-9]{1,5}", port) or not 0 < int(port) < 65536:
        raise ValueError("has a port that is not a number from 1 to 65535")
    return host, int(port)
