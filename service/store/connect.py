"""From a store's URL to a client: standalone, Sentinel, Cluster, TLS."""

from typing import Any

import hiredis
from redis.asyncio import Redis, RedisCluster
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import Connection, SSLConnection, UnixDomainSocketConnection
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import (
    Sentinel,
    SentinelConnectionPool,
    SentinelManagedConnection,
    SentinelManagedSSLConnection,
)
from redis.backoff import ExponentialWithJitterBackoff

from service.store.translate import translate_errors, translated
from service.store.url import TLS_OPTIONS, StoreURL, describe, parse_url

__all__ = ["Client", "connect", "describe", "translate_errors", "translated"]

Client = Redis | RedisCluster


class _PackedInC:
    """Commands packed by hiredis: the driver's asyncio side does it in Python, byte by byte."""

    def pack_command(self, *args: Any) -> list[bytes]:
        name = args[0] if isinstance(args[0], bytes) else str(args[0]).encode()
        return [hiredis.pack_command((*name.split(), *args[1:]))]


class _Connection(_PackedInC, Connection):
    pass


class _TLSConnection(_PackedInC, SSLConnection):
    pass


class _UnixConnection(_PackedInC, UnixDomainSocketConnection):
    pass


class _SentinelConnection(_PackedInC, SentinelManagedConnection):
    pass


class _SentinelTLSConnection(_PackedInC, SentinelManagedSSLConnection):
    pass


class SentinelClient(Redis):
    """A client of the current primary that closes its connections to the sentinels too."""

    async def aclose(self, close_connection_pool: bool | None = None) -> None:
        await super().aclose(close_connection_pool)
        pool = self.connection_pool
        if isinstance(pool, SentinelConnectionPool):
            await pool.sentinel_manager.aclose()


class ClusterClient(RedisCluster):
    """A cluster's client that closes its connections even when the last command failed."""

    async def aclose(self) -> None:
        await super().aclose()
        # After a lost connection the driver waits for a fresh look at the cluster, and until then
        # takes itself for closed. Without its lock this could cut such a look short.
        if self._lock:
            async with self._lock:
                if self._initialize:
                    await self.nodes_manager.aclose()
                    await self.nodes_manager.aclose("startup_nodes")


def connect(
    url: str,
    *,
    timeout_s: float = 5.0,
    connect_timeout_s: float = 2.0,
    health_check_interval_s: int = 15,
    max_connections: int = 1024,
    client_name: str = "lacuna",
    retries: int = 0,
) -> Client:
    """A client for the URL. Nothing is sent before its first command; close it with `aclose`.

    A lost command is not sent again unless `retries` says so: what to repeat, and when, is the
    caller's to know. Only a cluster's redirects are followed.
    """
    at = parse_url(url)
    common: dict[str, Any] = {
        "decode_responses": False,
        # RESP2: as fast as RESP3, the same replies from every server, and no push messages.
        "protocol": 2,
        "socket_timeout": timeout_s,
        "socket_connect_timeout": connect_timeout_s,
        "health_check_interval": health_check_interval_s,
        "client_name": client_name,
        "retry": Retry(ExponentialWithJitterBackoff(base=0.05, cap=1.0), retries),
        "max_connections": max_connections,
        "driver_info": None,
    }
    user: dict[str, Any] = {"username": at.username, "password": at.password}
    if at.kind == "unix":
        client = Redis(unix_socket_path=at.path, db=at.db, **user, **common)
        client.connection_pool.connection_class = _UnixConnection
        return client
    common |= {"socket_keepalive": True}
    tls = _tls(at)
    if at.kind == "sentinel":
        sentinel_user = {name: at.options.get(f"sentinel_{name}") for name in user}
        sentinel = Sentinel(at.hosts, sentinel_kwargs=sentinel_user | tls | common)  # type: ignore[no-untyped-call]
        client = sentinel.master_for(
            at.service,
            redis_class=SentinelClient,
            connection_class=_SentinelTLSConnection if at.tls else _SentinelConnection,
            db=at.db,
            **user,
            **tls,
            **common,
        )
        assert isinstance(client, Redis)
        return client
    if at.kind == "cluster":
        nodes = [ClusterNode(host, port) for host, port in at.hosts]
        # The URL's hosts stay known: they may be names whose addresses all change at once.
        return ClusterClient(
            startup_nodes=nodes, dynamic_startup_nodes=False, **user, **tls, **common
        )
    [(host, port)] = at.hosts
    client = Redis(host=host, port=port, db=at.db, **user, **tls, **common)
    client.connection_pool.connection_class = _TLSConnection if at.tls else _Connection
    return client


def _tls(at: StoreURL) -> dict[str, Any]:
    if not at.tls:
        return {}
    given: dict[str, Any] = {name: at.options[name] for name in TLS_OPTIONS if name in at.options}
    if "ssl_check_hostname" in given:
        given["ssl_check_hostname"] = given["ssl_check_hostname"] == "yes"
    return {"ssl": True, **given}
