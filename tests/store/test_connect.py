import asyncio
import contextlib
import signal
import subprocess
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import uvloop

from service.store.connect import Client, connect, describe, translate_errors, translated
from service.store.embedded import EmbeddedServer
from service.store.errors import (
    BadStoreURL,
    ScriptMissing,
    StoreDenied,
    StoreError,
    StoreFull,
    StoreLoading,
    StoreReadOnly,
    StoreUnavailable,
)
from service.store.url import parse_url
from tests.servers import (
    HOST,
    SLOTS,
    Directives,
    Server,
    ServerDied,
    bytes_of,
    cluster,
    free_port,
    other_server,
    replica_of,
    sentinel,
    server,
    wait_for,
)


@contextlib.asynccontextmanager
async def client_of(url: str, **options: float) -> AsyncIterator[Client]:
    client = connect(url, **options)  # type: ignore[arg-type]
    try:
        yield client
    finally:
        await client.aclose()


async def ask(client: Client, *command: str | int | bytes) -> object:
    with translate_errors():
        return await client.execute_command(*command)


async def ask_once(url: str, *command: str | int | bytes) -> object:
    async with client_of(url) as client:
        return await ask(client, *command)


async def eventually(action: Callable[[], Awaitable[object]], within_s: float = 15.0) -> object:
    """What the action returns once the store is available again."""
    async with asyncio.timeout(within_s):
        while True:
            with contextlib.suppress(StoreUnavailable):
                return await action()
            await asyncio.sleep(0.05)


def serves_us(one: Server) -> bool:
    with one.admin() as client:
        return any(other["name"] == "lacuna" for other in client.client_list())


@pytest.fixture(scope="module")
def plain() -> Iterator[Server]:
    with server() as one:
        yield one


# The URL


def test_the_parts_of_a_url_are_decoded() -> None:
    at = parse_url("redis://an%40n:p%2Fw%3A%23@db.example:7000/3")
    assert (at.kind, at.tls, at.hosts, at.db) == ("standalone", False, (("db.example", 7000),), 3)
    assert (at.username, at.password) == ("an@n", "p/w:#")
    at = parse_url("unix:///run/a%20b@c.sock?db=2")
    assert (at.kind, at.path, at.db, at.password) == ("unix", "/run/a b@c.sock", 2, None)
    at = parse_url("redis+sentinel://:pw@one,[::1]:7/mine/4?sentinel_password=s%26t")
    assert (at.hosts, at.service, at.db) == ((("one", 26379), ("::1", 7)), "mine", 4)
    assert (at.username, at.password, at.options) == (None, "pw", {"sentinel_password": "s&t"})
    at = parse_url("valkeys+cluster://one,two:7000")
    assert (at.kind, at.tls, at.hosts) == ("cluster", True, (("one", 6379), ("two", 7000)))


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("", "must begin with one of redis://"),
        ("localhost:6379", "must begin with one of redis://"),
        ("http://:secret@host", "must begin with one of redis://"),
        ("redis://", "needs a host"),
        ("redis://:secret@", "needs a host"),
        ("redis://::1", "needs a host"),
        ("redis://host:http", "has a port that is not a number"),
        ("redis://host:0", "has a port that is not a number"),
        ("redis://host:65536", "has a port that is not a number"),
        ("redis://host/first", "needs a number as its database, not 'first'"),
        ("redis://one,two", "names several hosts"),
        ("redis://:sec#secret@host", "has a '#' in it, which must be written %23"),
        ("redis://:sec/secret@host", "has a '/' in its user or password"),
        ("redis://:sec?secret@host", "has an '@' after its '?'"),
        ("redis://host?retries=3", "has the unknown option 'retries'; there are db"),
        ("redis://host?ssl_ca_certs=ca.pem", "needs TLS: rediss in place of redis"),
        ("rediss://host?ssl_ca_certs=/no/ca.pem", "names '/no/ca.pem' as ssl_ca_certs"),
        ("rediss://host?ssl_cert_reqs=perhaps", "needs required, optional or none"),
        ("rediss://host?ssl_check_hostname=1", "needs yes or no as ssl_check_hostname"),
        ("unix://run/redis.sock", "needs the absolute path of a socket"),
        ("unix://", "needs the absolute path of a socket"),
        ("redis+sentinel://:secret@one,two", "needs the name of the service"),
        ("redis+cluster://one,two/1", "a cluster has only database 0"),
        ("redis+cluster://one,,two", "needs a host"),
    ],
)
def test_a_bad_url_is_one_sentence_without_its_secret(url: str, complaint: str) -> None:
    with pytest.raises(BadStoreURL) as bad:
        connect(url)
    assert complaint in str(bad.value)
    assert "secret" not in str(bad.value)
    assert "\n" not in str(bad.value)


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("redis://host:6379/0", "redis://host:6379/0"),
        ("redis://:pw@host", "redis://:***@host"),
        ("redis://ann:pw@host/1", "redis://ann:***@host/1"),
        ("redis://token@host", "redis://***@host"),
        ("redis://:p@w@host", "redis://:***@host"),
        (":pw@host", ":***@host"),
        ("redis://:p/w?x@host", "redis://:***@host"),
        ("unix:///run/a@b.sock?db=1", "unix:///run/a@b.sock?db=1"),
        (
            "rediss+sentinel://:pw@a,b/s?sentinel_username=u&sentinel_password=pw&db=1",
            "rediss+sentinel://:***@a,b/s?sentinel_username=u&sentinel_password=***&db=1",
        ),
    ],
)
def test_a_described_url_has_no_password(url: str, masked: str) -> None:
    assert describe(url) == masked


# One server


async def test_a_standalone_server_keeps_bytes_as_they_are(plain: Server) -> None:
    async with client_of(plain.url) as client:
        assert await client.set("bytes", b"\x00\xff")
        assert await client.get("bytes") == b"\x00\xff"
        assert (await client.client_info())["name"] == "lacuna"


async def test_the_database_of_the_url_is_used(plain: Server) -> None:
    await ask_once(plain.url.removesuffix("/0") + "/5", "SET", "here", "5")
    assert await ask_once(plain.url + "?db=5", "GET", "here") == b"5"
    assert await ask_once(plain.url, "GET", "here") is None


async def test_the_embedded_server_is_reached_by_its_url(tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path / "with space & more") as one:
        assert await ask_once(one.url, "PING")


async def test_a_user_with_a_percent_encoded_password_is_let_in() -> None:
    with server(user="ann on >p@:/?#%w ~* +ping +client|setname") as one:
        assert await ask_once(f"redis://ann:p%40%3A%2F%3F%23%25w@{HOST}:{one.port}", "PING")
        with pytest.raises(StoreDenied, match="no permissions"):
            await ask_once(f"redis://ann:p%40%3A%2F%3F%23%25w@{HOST}:{one.port}", "GET", "key")


async def test_a_missing_or_wrong_password_is_denied() -> None:
    with server(requirepass="right") as one:
        assert await ask_once(one.url, "PING")
        with pytest.raises(StoreDenied, match="refuses the user or password"):
            await ask_once(f"redis://{HOST}:{one.port}", "PING")
        with pytest.raises(StoreDenied, match="refuses the user or password"):
            await ask_once(f"redis://:wrong@{HOST}:{one.port}", "PING")


async def test_a_server_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    for url in (
        f"redis://{HOST}:{free_port()}",
        "redis://no-such-host.invalid",
        f"unix://{tmp_path}/no.sock",
        f"redis+sentinel://{HOST}:{free_port()}/lacuna",
        f"redis+cluster://{HOST}:{free_port()}",
    ):
        with pytest.raises(StoreUnavailable):
            await ask_once(url, "PING")


async def test_a_command_that_timed_out_is_not_sent_again() -> None:
    with server() as one:
        async with client_of(one.url, timeout_s=0.2) as client:
            await ask(client, "PING")
            one.signal(signal.SIGSTOP)
            with pytest.raises(StoreUnavailable):
                await ask(client, "INCR", "count")
            one.signal(signal.SIGCONT)
            assert await eventually(lambda: ask(client, "GET", "count")) == b"1"


async def test_a_server_that_came_back_is_used_without_an_error() -> None:
    with server(appendonly="yes", appendfsync="always") as one:
        async with client_of(one.url) as client:
            await ask(client, "SET", "key", "kept")
            one.kill()
            with pytest.raises(StoreUnavailable):
                await ask(client, "GET", "key")
            one.start()
            assert await ask(client, "GET", "key") == b"kept"
            one.kill()
            one.start()
            await asyncio.sleep(0.01)
            # Nobody asked while it was away: the dead connection is noticed before it is used.
            assert await ask(client, "GET", "key") == b"kept"


def test_a_connection_lost_under_uvloop_is_unavailable_too() -> None:
    async def lose_it(one: Server) -> None:
        async with client_of(one.url) as client:
            for _ in range(3):
                busy = [asyncio.create_task(ask(client, "BLPOP", "none", 2)) for _ in range(8)]
                await asyncio.sleep(0.05)
                one.kill()
                lost = await asyncio.gather(*busy, return_exceptions=True)
                assert {type(error) for error in lost} == {StoreUnavailable}
                one.start()
                assert await ask(client, "PING")

    with server() as one, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(lose_it(one))


# Errors of a real server in each state


async def test_a_replica_is_read_only(plain: Server) -> None:
    with replica_of(plain) as replica:
        async with client_of(replica.url) as client:
            with pytest.raises(StoreReadOnly):
                await ask(client, "SET", "key", "value")
            with pytest.raises(StoreReadOnly):
                await ask(client, "EVAL", "return redis.call('SET', KEYS[1], '1')", 1, "key")
            pipeline = client.pipeline(transaction=False)
            pipeline.get("key")
            pipeline.set("key", "value")
            with pytest.raises(StoreReadOnly), translate_errors():
                await pipeline.execute()
            pipeline.get("key")
            pipeline.set("key", "value")
            _, refused = await pipeline.execute(raise_on_error=False)
            assert isinstance(translated(refused), StoreReadOnly)


async def test_a_replica_that_lost_its_primary_is_unavailable() -> None:
    with server() as primary, replica_of(primary, replica_serve_stale_data="no") as replica:
        primary.kill()
        wait_for(lambda: replica.info("replication")["master_link_status"] == "down", "link down")
        with pytest.raises(StoreUnavailable, match="MASTER"):
            await ask_once(replica.url, "GET", "key")


async def test_a_server_that_reads_its_data_is_loading() -> None:
    slow: Directives = {"key_load_delay": "3000", "loading_process_events_interval_bytes": "1024"}
    with server(appendonly="yes", **slow) as one:
        one.do("MSET", *(word for n in range(1000) for word in (f"key-{n}", "x" * 100)))
        one.do("BGREWRITEAOF")
        wait_for(lambda: not one.info("persistence")["aof_rewrite_in_progress"], "rewritten")
        one.restart(wait=False)
        async with client_of(one.url) as client, asyncio.timeout(10):
            met: StoreError | None = None
            while not isinstance(met, StoreLoading):
                try:
                    await ask(client, "GET", "key-1")
                except StoreUnavailable as error:
                    met = error
        one.kill()


async def test_a_server_without_memory_is_full() -> None:
    with server(maxmemory="1mb") as one:
        async with client_of(one.url) as client:
            with pytest.raises(StoreFull):
                await ask(client, "SET", "key", "value")
            with pytest.raises(StoreFull):
                await ask(client, "EVAL", "return redis.call('SET', KEYS[1], '1')", 1, "key")
            assert await ask(client, "GET", "key") is None


async def test_a_server_that_cannot_write_its_disk_is_full() -> None:
    with server(save="3600 1") as one:
        (one.folder / "dump.rdb").mkdir()
        async with client_of(one.url) as client:
            await ask(client, "SET", "key", "value")
            await ask(client, "BGSAVE")
            wait_for(
                lambda: one.info("persistence")["rdb_last_bgsave_status"] == "err", "saving failed"
            )
            with pytest.raises(StoreFull, match="cannot write to its disk"):
                await ask(client, "SET", "key", "value")
            pipeline = client.pipeline(transaction=False)
            pipeline.set("key", "value")
            with pytest.raises(StoreFull), translate_errors():
                await pipeline.execute()
        one.do("CONFIG", "SET", "save", "")


async def test_a_server_that_waits_for_replicas_is_unavailable() -> None:
    with (
        server(min_replicas_to_write="1") as one,
        pytest.raises(StoreUnavailable, match="NOREPLICAS"),
    ):
        await ask_once(one.url, "SET", "key", "value")


async def test_a_server_busy_with_a_script_is_unavailable() -> None:
    with server(busy_reply_threshold="20") as one:

        def run_forever() -> None:
            with contextlib.suppress(Exception):
                one.do("EVAL", "while true do end", 0)

        thread = threading.Thread(target=run_forever)
        thread.start()
        await asyncio.sleep(0.2)
        with pytest.raises(StoreUnavailable, match="BUSY"):
            await ask_once(one.url, "GET", "key")
        one.do("SCRIPT", "KILL")
        thread.join()


async def test_a_script_the_server_forgot_is_missing(plain: Server) -> None:
    with pytest.raises(ScriptMissing):
        await ask_once(plain.url, "EVALSHA", "0" * 40, 0)


async def test_any_other_error_of_the_server_is_a_store_error(plain: Server) -> None:
    with pytest.raises(StoreError, match="unknown command") as failed:
        await ask_once(plain.url, "NONSENSE")
    assert type(failed.value) is StoreError


def test_errors_that_are_not_the_drivers_pass_unchanged() -> None:
    for error in (KeyError("mine"), RuntimeError("mine"), asyncio.CancelledError()):
        with pytest.raises(type(error)) as same, translate_errors():
            raise error
        assert same.value is error


# Cluster and Sentinel


async def test_a_cluster_is_used_and_its_redirects_are_followed() -> None:
    with cluster(nodes=3) as three:
        async with client_of(three.url) as client:
            for n in range(20):
                await ask(client, "SET", f"{{{n}}}:key", n)
            assert {one.do("DBSIZE") != 0 for one in three.nodes} == {True}

            source = three.owner("moved")
            target = next(node for node in three.nodes if node is not source)
            slot = source.do("CLUSTER", "KEYSLOT", "moved")
            assert isinstance(slot, int)
            ids = {node.port: bytes_of(node.do("CLUSTER", "MYID")) for node in three.nodes}
            target.do("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[source.port])
            source.do("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[target.port])
            await ask(client, "SET", "moved", "by ASK")
            for node in (target, source):
                node.do("CLUSTER", "SETSLOT", slot, "NODE", ids[target.port])
            assert await ask(client, "GET", "moved") == b"by ASK"
            assert target.do("GET", "moved") == b"by ASK"

            with pytest.raises(StoreUnavailable, match="is a cluster"):
                await ask_once(source.url, "GET", "moved")

            lost = three.owner("{0}:key")
            lost.kill()
            with pytest.raises(StoreUnavailable):
                await ask(client, "GET", "{0}:key")
            lost.start()
            assert await eventually(lambda: ask(client, "SET", "{0}:key", "back"))
            lost.kill()
            with pytest.raises(StoreUnavailable):
                await ask(client, "GET", "{0}:key")
        others = [node for node in three.nodes if node is not lost]
        wait_for(lambda: not any(map(serves_us, others)), "the client's connections are closed")


async def test_a_cluster_without_slots_is_unavailable() -> None:
    with server(cluster_enabled="yes", cluster_port=str(free_port())) as one:
        with pytest.raises(StoreUnavailable, match="not served"):
            await ask_once(one.url, "GET", "key")
        with pytest.raises(StoreUnavailable, match="not covered"):
            await ask_once(f"redis+cluster://{HOST}:{one.port}", "GET", "key")


async def test_a_cluster_url_for_a_server_that_is_none_says_so(plain: Server) -> None:
    with pytest.raises(StoreError, match="Cluster mode is not enabled"):
        await ask_once(f"redis+cluster://{HOST}:{plain.port}", "GET", "key")


async def test_a_cluster_with_another_password_is_denied() -> None:
    with (
        server(cluster_enabled="yes", cluster_port=str(free_port()), requirepass="right") as one,
        pytest.raises(StoreDenied),
    ):
        await ask_once(f"redis+cluster://:wrong@{HOST}:{one.port}", "GET", "key")


async def test_a_sentinel_failover_is_followed() -> None:
    with (
        server(requirepass="pw") as primary,
        replica_of(primary) as replica,
        sentinel(primary, count=1, requirepass="s%o@w") as watchers,
    ):
        hosts = f"{HOST}:{free_port()},{HOST}:{watchers.servers[0].port}"
        url = f"redis+sentinel://:pw@{hosts}/lacuna/0?sentinel_password=s%25o%40w"
        async with client_of(url) as client:
            await ask(client, "SET", "key", "before")
            assert primary.do("WAIT", 1, 5000) == 1
            primary.kill()
            with pytest.raises(StoreUnavailable):
                await ask(client, "GET", "key")
            await eventually(lambda: ask(client, "SET", "key", "after"))
            assert replica.do("GET", "key") == b"after"
        with pytest.raises(StoreUnavailable, match="No master found"):
            await ask_once(url.replace("/lacuna/", "/other/"), "PING")


# TLS


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    for name in ("ca", "other"):
        own = ("-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}")
        openssl("req", "-x509", *key, *own)
    openssl("req", *key[:-2], "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=server")
    (folder / "names").write_text(f"subjectAltName=IP:{HOST},DNS:localhost\n")
    signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "names")
    openssl("x509", "-req", "-in", "server.csr", "-out", "server.pem", "-days", "2", *signed)
    return folder


@pytest.fixture(scope="module")
def tls_directives(certificates: Path) -> Directives:
    return {
        "tls_cert_file": str(certificates / "server.pem"),
        "tls_key_file": str(certificates / "server.key"),
        "tls_ca_cert_file": str(certificates / "ca.pem"),
        "tls_replication": "yes",
    }


@pytest.fixture(scope="module")
def tls_server(tls_directives: Directives) -> Iterator[Server]:
    """The wheel's server is built without TLS; the system's usually has it."""
    with contextlib.ExitStack() as stack:
        for executable in (None, other_server()):
            with contextlib.suppress(ServerDied):
                one = stack.enter_context(server(executable, tls=True, **tls_directives))
                break
        else:
            pytest.skip("no server built with TLS: install redis-server")
        yield one


async def test_tls_works_with_the_servers_authority_and_a_certificate_of_ours(
    tls_server: Server, certificates: Path
) -> None:
    ours = f"ssl_certfile={certificates}/server.pem&ssl_keyfile={certificates}/server.key"
    url = f"{tls_server.url}?ssl_ca_certs={certificates}/ca.pem&{ours}"
    assert await ask_once(url, "PING")
    with pytest.raises(StoreUnavailable):
        await ask_once(url.replace(f"&{ours}", ""), "PING")
    with pytest.raises(StoreUnavailable, match="certificate"):
        await ask_once(url.replace("/ca.pem", "/other.pem"), "PING")
    unverified = f"{tls_server.url}?ssl_cert_reqs=none&{ours}"
    assert await ask_once(unverified, "PING")
    with pytest.raises(StoreUnavailable):
        await ask_once(tls_server.url.replace("rediss:", "redis:"), "PING")


async def test_a_cluster_is_reached_by_tls(
    tls_server: Server, certificates: Path, tls_directives: Directives
) -> None:
    options = f"ssl_ca_certs={certificates}/ca.pem"
    own = {"tls_auth_clients": "no", "tls_cluster": "yes", "cluster_enabled": "yes"}
    directives = tls_directives | own | {"cluster_port": str(free_port())}
    with server(tls_server.executable, tls=True, **directives) as one:
        await ask_once(f"{one.url}?{options}", "CLUSTER", "ADDSLOTSRANGE", 0, SLOTS - 1)
        url = f"rediss+cluster://{HOST}:{one.port}?{options}"
        await eventually(lambda: ask_once(url, "SET", "key", "value"))


async def test_sentinels_and_their_primary_are_reached_by_tls(
    tls_server: Server, certificates: Path, tls_directives: Directives
) -> None:
    directives = tls_directives | {"tls_auth_clients": "no"}
    with server(tls_server.executable, tls=True, **directives) as primary:
        watch = directives | {"sentinel monitor": f"lacuna {HOST} {primary.port} 1"}
        with server(tls_server.executable, mode=("--sentinel",), tls=True, **watch) as watcher:
            options = f"ssl_ca_certs={certificates}/ca.pem"
            url = f"rediss+sentinel://{HOST}:{watcher.port}/lacuna?{options}"
            await eventually(lambda: ask_once(url, "SET", "key", "value"))
            assert await ask_once(f"{primary.url}?{options}", "GET", "key") == b"value"
