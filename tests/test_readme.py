"""What the README promises: its links lead somewhere, and its commands do what it shows."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, re.S)
PORT = "8080"


def shell_blocks() -> list[tuple[str, str | None]]:
    """Every shell block, with the answer that is shown below it, if one is."""
    following = [*BLOCKS[1:], ("", "")]
    return [
        (text, after if kind_after == "json" else None)
        for (kind, text), (kind_after, after) in zip(BLOCKS, following, strict=True)
        if kind == "sh"
    ]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """`make run`, as the README says it, on a port and a directory of its own."""
    port = free_port()
    # `make test ARGS=…` would hand its ARGS on to this make.
    environment = {
        **{k: v for k, v in os.environ.items() if k != "ARGS" and not k.startswith("MAKE")},
        "LACUNA_PORT": str(port),
        "LACUNA_DATA_DIR": str(tmp_path_factory.mktemp("data")),
    }
    assert BLOCKS[0] == ("sh", "make run\n"), "one command runs it"
    process = subprocess.Popen(
        ["make", "run"], cwd=ROOT, env=environment, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        end = time.monotonic() + 120
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health/ready", timeout=1).close()
                break
            except OSError:
                assert process.poll() is None, process.stdout.read().decode()
                assert time.monotonic() < end, "it never became ready"
                time.sleep(0.1)
        yield port
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=60)


def test_the_commands_of_the_first_screen_answer_as_shown(running):
    asked = 0
    for text, shown in shell_blocks():
        if not text.startswith("curl"):
            continue
        command = text.replace(PORT, str(running)).replace("curl ", "curl -sS --fail-with-body ")
        done = subprocess.run(["bash", "-ec", command], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, (text, done.stdout, done.stderr)
        asked += 1
        if shown is not None:
            answer, promised = json.loads(done.stdout), json.loads(shown)
            assert list(answer) == list(promised)
            same = {"event_id", "learner", "status", "round", "model_version", "degraded"}
            for name in same & set(promised):
                assert answer[name] == promised[name]
    assert asked >= 3


def test_every_other_command_is_one_that_exists():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for text, _ in shell_blocks():
        for line in text.splitlines():
            words = shlex.split(line, comments=True) if not text.startswith("curl") else []
            if words[:1] == ["make"]:
                assert re.search(rf"^{words[1]}:", makefile, re.M), line
            elif words:
                assert words[0] == ".venv/bin/lacuna", line


def our_commands() -> list[str]:
    lines = [line for text, _ in shell_blocks() for line in text.splitlines()]
    return [line for line in lines if line.startswith(".venv/bin/lacuna")]


def test_the_commands_that_take_seconds_run():
    for line in our_commands():
        if "--forever" not in line:
            words = shlex.split(line, comments=True)
            done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, (line, done.stderr)
            assert done.stdout.strip(), line


def test_the_demo_gives_the_page_something_to_show_until_it_is_stopped(running):
    (line,) = [line for line in our_commands() if "--forever" in line]
    words = shlex.split(line.replace(PORT, str(running)))
    demo = subprocess.Popen(
        words, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        end = time.monotonic() + 60
        while True:
            address = f"http://127.0.0.1:{running}/learners/demo-lacuna"
            try:
                with urllib.request.urlopen(address, timeout=5) as answer:
                    if json.load(answer)["rewards"] > 50:
                        break
            except OSError:
                pass  # no such learner yet
            assert demo.poll() is None, demo.stdout.read()
            assert time.monotonic() < end, "no rewards came"
            time.sleep(0.1)
        demo.send_signal(signal.SIGINT)
        said, _ = demo.communicate(timeout=60)
        assert demo.returncode in (0, 130), said
        assert "Traceback" not in said
    finally:
        demo.kill()


def test_every_link_leads_to_a_file():
    documents = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), ROOT / "CONTRIBUTING.md"]
    for document in documents:
        for target in re.findall(r"\]\(([^)#\s]+)", document.read_text("utf-8")):
            if "://" not in target:
                assert (document.parent / target).exists(), f"{document.name}: {target}"
