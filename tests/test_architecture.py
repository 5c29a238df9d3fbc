"""Imports point one way: api → engine → {learner, store}. Read from the source, nothing is run."""

import ast
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# What each room may import of `service`.
ROOMS = {
    "service.learner": {"service.learner"},
    "service.store": {"service.store", "service.errors"},
    "service.engine": {
        "service.engine",
        "service.learner",
        "service.store",
        "service.errors",
        "service.settings",
    },
    "service.api": {
        "service.api",
        "service.engine",
        "service.learner",
        "service.errors",
        "service.settings",
        "service.__version__",
    },
}
MATHS = {"numpy", "scipy", "numba"}
OUTSIDE_WORLD = {
    *("asyncio", "concurrent", "multiprocessing", "threading", "subprocess", "signal"),
    *("http", "io", "logging", "os", "pathlib", "shutil", "socket", "ssl", "tempfile", "urllib"),
    *("datetime", "random", "secrets", "time", "uuid"),
}
WEB = {"fastapi", "starlette", "uvicorn"}
CODE_IN_DATA = {"pickle", "marshal", "shelve", "dill", "joblib", "cloudpickle"}
BUILT_BY_MAIN = {"FastAPI", "Starlette", "Redis", "RedisCluster", "AsyncClient", "create_app"}


def test_every_module_imports_only_what_its_room_may():
    assert list(problems_in_tree(import_problems)) == []


def test_nothing_is_built_at_import():
    assert list(problems_in_tree(construction_problems)) == []


def test_no_tracked_file_names_a_place_on_this_machine():
    places = {ROOT, ROOT.parent, Path.home().resolve()}
    places -= {Path(ROOT.anchor), Path(tempfile.gettempdir()).resolve()}
    needles = [f"{place}/".encode() for place in places]
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    assert paths
    found = [
        f"{path.relative_to(ROOT)} contains {needle.decode()}"
        for path in paths
        if path.is_file()
        for needle in needles
        if needle in path.read_bytes()
    ]
    assert found == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("service.learner.a", "import service.store"),
        ("service.learner.a", "from service import errors"),
        ("service.learner.a", "from ..store import keys"),
        ("service.learner.a", "from .. import settings"),
        ("service.learner.a", "def f():\n    import time"),
        ("service.learner.a", "from os import path"),
        ("service.learner.a", "import pydantic"),
        ("service.store.a", "from service.learner import Moments"),
        ("service.store.a", "import starlette"),
        ("service.engine.a", "import service.api.routes"),
        ("service.engine.a", "from redis import asyncio"),
        ("service.engine.a", "from fastapi import FastAPI"),
        ("service.api.a", "from service.store import keys"),
        ("service.api.a", "import redis"),
        ("service.main", "import clients.simulate"),
        ("service.settings", "from clients import client"),
        ("service.store.a", "import pickle"),
        ("clients.a", "import joblib"),
        ("benchmarks.a", "from marshal import loads"),
        ("clients.a", "from service import engine"),
        ("clients.a.b", "import service.store.keys"),
        ("clients.a", "from service.api import schemas"),
        ("service.learner.a", "from service.learners import x"),
        ("service.learner.__init__", "from .. import store"),
    ],
)
def test_a_forbidden_import_is_seen(module, source):
    assert len(list(import_problems(module, ast.parse(source)))) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        (
            "service.learner.a",
            "import math, numpy as np\nfrom scipy.linalg import lapack\nimport numba",
        ),
        ("service.learner.a", "from .errors import BadInput\nfrom . import moments"),
        ("service.learner.__init__", "from .moments import Moments"),
        (
            "service.store.a",
            "import redis\nfrom service.errors import StoreAway\nfrom . import keys",
        ),
        ("service.engine.a", "import asyncio\nfrom service import learner, store, settings"),
        ("service.api.a", "import fastapi\nfrom service.engine import Engine"),
        ("service.main", "import service.store, service.api"),
        ("service.cli", "import clients.simulate"),
        ("clients.a", "from service.learner import Learner"),
    ],
)
def test_an_allowed_import_passes(module, source):
    assert list(import_problems(module, ast.parse(source))) == []


@pytest.mark.parametrize("source", ["app = create_app()", "if x:\n    r = redis.Redis(host='h')"])
def test_an_object_built_at_import_is_seen(source):
    assert len(list(construction_problems("service.a", ast.parse(source)))) == 1


def test_an_object_built_in_a_function_passes():
    source = "def wire():\n    return FastAPI()"
    assert list(construction_problems("service.main", ast.parse(source))) == []


def problems_in_tree(check) -> Iterator[str]:
    for folder in ("service", "clients", "benchmarks", "tests"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            # `__init__` stays in the name, so that one dot means the same in every file.
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            yield from check(module, ast.parse(path.read_bytes(), str(path)))


def import_problems(module: str, tree: ast.Module) -> Iterator[str]:
    for line, target in imports(module, tree):
        if why := objection(module, target):
            yield f"{module}:{line} imports {target}: {why}"


def objection(module: str, target: str) -> str | None:
    """Why `module` may not import `target`, or None."""
    top = target.partition(".")[0]
    room = next((room for room in ROOMS if within(module, room)), None)
    if top in CODE_IN_DATA:
        return "stored bytes must never run as code"
    if top == "clients" and within(module, "service") and module != "service.cli":
        return "only service.cli knows the clients"
    if within(module, "clients") and within(target, *ROOMS.keys() - {"service.learner"}):
        return "clients speak HTTP, or run the learner in process"
    if room and top == "service" and not within(target, *ROOMS[room]):
        return f"{room} may not know it"
    if room == "service.learner":
        if top in OUTSIDE_WORLD:
            return "the learner knows no IO and no clock"
        if top not in MATHS | sys.stdlib_module_names | {"service"}:
            return "the learner is pure maths"
    if room and room != "service.store" and top == "redis":
        return "only the store knows Redis"
    if room and room != "service.api" and top in WEB:
        return "only the api knows HTTP"
    return None


def construction_problems(module: str, tree: ast.Module) -> Iterator[str]:
    if not within(module, "service"):
        return
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        waiting.extend(ast.iter_child_nodes(node))
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            if name in BUILT_BY_MAIN:
                yield f"{module}:{node.lineno} builds {name} at import"


def imports(module: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Absolute dotted names, those inside functions too; `from a import b` counts as `a.b`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = module.split(".")[: -node.level]
                base = ".".join([*above, base] if base else above)
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def within(module: str, *packages: str) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)
