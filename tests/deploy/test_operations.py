"""The commands of docs/operations.md: backup, restore and rotation, run as they are written."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.api.running import Service, service
from tests.servers import Server, free_port, server

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "operations.md").read_text("utf-8")
REDIS = shutil.which("redis-server") if shutil.which("redis-cli") else None
LEARNERS = ("ads", "news")


def blocks(section: str) -> list[str]:
    """The shell blocks of a section, in order."""
    [body] = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", TEXT, re.S | re.M)
    return re.findall(r"```sh\n(.*?)```", body, re.S)


EXPORT, IMPORT, RDB, RDB_BACK, TAR, TAR_BACK = blocks("Backup and restore")
BOTH_KEYS, NEW_KEY_ONLY = blocks("Keys")


def run(block: str, folder: Path, **variables: str) -> str:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block],
        cwd=folder, env={**os.environ, **variables}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, (block, done.stdout, done.stderr)
    return done.stdout


def client(one: Service, key: str) -> httpx.Client:
    return one.client(headers={"x-api-key": key})


def play(http: httpx.Client) -> dict[str, dict[str, object]]:
    """Two learners with some rewards, and one decision that waits for its own."""
    for name in LEARNERS:
        for number in range(30):
            arms = [{"features": [0.1 * k, None, 0.3 + number / 50]} for k in range(4)]
            body = {"learner": name, "event_id": f"e{number}", "arms": arms}
            assert http.post("/select", json=body).json()["degraded"] is False
            if number < 29:
                reward = {"learner": name, "event_id": f"e{number}", "reward": number % 2}
                assert http.post("/reward", json=reward).json()["status"] == "recorded"
    return counts(http)


def counts(http: httpx.Client) -> dict[str, dict[str, object]]:
    told = {name: http.get(f"/learners/{name}").json() for name in LEARNERS}
    same = ("rounds", "rewards", "pending", "mean_reward")
    return {name: {key: one[key] for key in same} for name, one in told.items()}


def goes_on(http: httpx.Client) -> None:
    """The decision that waited is known, and its reward counts."""
    for name in LEARNERS:
        reward = {"learner": name, "event_id": "e29", "reward": 1}
        assert http.post("/reward", json=reward).json()["status"] == "recorded"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("operations")


@pytest.fixture(scope="module")
def store() -> Iterator[Server]:
    """Of the same make as the one that will read its copy."""
    with server(Path(REDIS) if REDIS else None) as one:
        yield one


@pytest.fixture(scope="module")
def keys(folder: Path) -> dict[str, str]:
    """What LACUNA_API_KEYS is at each step of a rotation, by the words of the document."""
    show = '\nprintf "%s\\n" "$LACUNA_API_KEYS" "$NEW_KEY"'
    both, new = run(BOTH_KEYS + show, folder, OLD_KEY="old").split()
    last = run(NEW_KEY_ONLY + 'printf "%s" "$LACUNA_API_KEYS"', folder, NEW_KEY=new)
    return {"old": "old", "both": both, "new": new, "last": last}


@pytest.fixture(scope="module")
def saved(folder: Path, store: Server, keys: dict[str, str]) -> dict[str, dict[str, object]]:
    """A service with the old key that was saved in both ways; what it counted."""
    with service("--redis-url", store.url, LACUNA_API_KEYS=keys["old"]) as one:
        with client(one, keys["old"]) as http:
            counted = play(http)
        run(EXPORT, folder, LACUNA=one.url, KEY=keys["old"])
    if REDIS:
        run(RDB, folder, REDIS_URL=store.url)
    return counted


@contextmanager
def restored_redis(folder: Path) -> Iterator[str]:
    """A Redis that has read the copy, with an append-only file from then on."""
    port, data = free_port(), folder / "redis"
    data.mkdir()
    run(RDB_BACK.replace("6379", str(port)), folder, REDIS_DIR=str(data))
    with server(Path(str(REDIS)), dir=str(data), appendonly="yes") as one:
        yield one.url


@pytest.mark.skipif(REDIS is None, reason="there is no redis-server with its redis-cli")
def test_a_copy_of_redis_goes_on_where_it_was_and_both_keys_are_let_in(folder, saved, keys):
    with (
        restored_redis(folder) as url,
        service("--redis-url", url, LACUNA_API_KEYS=keys["both"]) as one,
    ):
        for key in (keys["old"], keys["new"]):
            with client(one, key) as http:
                assert counts(http) == saved
        with client(one, keys["new"]) as http:
            goes_on(http)


def test_exports_come_back_elsewhere_and_only_the_new_key_is_let_in(folder, saved, keys):
    first, second = folder / "data", folder / "copied"
    variables = {"DATA_DIR": str(first), "NEW_DATA_DIR": str(second)}
    with service("--data-dir", str(first), LACUNA_API_KEYS=keys["last"]) as one:
        run(IMPORT, folder, LACUNA=one.url, KEY=keys["new"])
        with client(one, keys["old"]) as http:
            assert http.get("/learners").status_code == 401
        with client(one, keys["new"]) as http:
            assert counts(http) == saved
    run(TAR + TAR_BACK, folder, **variables)
    assert not list(second.glob("*.lock"))
    with service("--data-dir", str(second)) as one, one.client() as http:
        assert counts(http) == saved
        goes_on(http)


def test_what_a_newer_version_wrote_is_refused_as_the_document_says(folder, saved, store):
    config = "lacuna:{ads}:config"
    told = store.do("GET", config)
    assert isinstance(told, bytes)
    store.do("SET", config, json.dumps(json.loads(told) | {"novelty": 1}))
    snapshot = store.do("HGET", "lacuna:{news}:model", "snapshot")
    assert isinstance(snapshot, bytes)
    store.do("HSET", "lacuna:{news}:model", "snapshot", snapshot[:7] + b"\x02" + snapshot[8:])
    export = (folder / "backup" / "ads.lacuna").read_bytes()
    arms = [{"features": [0.1, 0.2, 0.3]}]
    with service("--redis-url", store.url) as one, one.client() as http:
        answer = http.post("/select", json={"learner": "ads", "arms": arms})
        assert answer.status_code == 422
        assert "is not a setting of a learner" in answer.json()["detail"]
        assert http.post("/select", json={"learner": "news", "arms": arms}).status_code == 500
        newer = http.put("/learners/new/import", content=export[:7] + b"\x02" + export[8:])
        assert newer.status_code == 422
        assert "written by a newer version" in newer.json()["detail"]
        # What it could not read is as it was; a good file takes its place.
        assert store.do("HGET", "lacuna:{news}:model", "snapshot")[7] == 2
        assert http.put("/learners/ads/import", content=export).status_code == 200
        assert http.post("/select", json={"learner": "ads", "arms": arms}).status_code == 200
    assert any("written by a newer version" in line for line in one.logged)


def test_every_setting_it_names_is_one():
    known = set(re.findall(r"`(LACUNA_\w+)`", (ROOT / "docs" / "configuration.md").read_text()))
    assert set(re.findall(r"LACUNA_[A-Z_]+[A-Z]", TEXT)) <= known
