"""`lacuna serve`: the store, the workers, and where to find them."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import shutil
import tempfile
from contextlib import ExitStack
from dataclasses import fields
from typing import Any, get_args, get_type_hints

from service.settings import Settings, variable

log = logging.getLogger("lacuna.serve")

EXAMPLES = """\
Every option is also an environment variable: --redis-url is LACUNA_REDIS_URL. API keys come only
from there (LACUNA_API_KEYS), so that they show up in no list of processes.

examples:
  lacuna serve                                  embedded store, one worker
  lacuna serve --workers 4 --host 0.0.0.0
  lacuna serve --redis-url redis://db:6379/0
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    hints = get_type_hints(Settings)
    for one in fields(Settings):
        if not one.metadata["flag"]:
            continue
        flag = "--" + one.name.replace("_", "-")
        shown = f"{one.metadata['help']} (default: {one.default!s})"
        shown = shown.removesuffix(" (default: )")
        if hints[one.name] is bool:
            parser.add_argument(
                flag, action=argparse.BooleanOptionalAction, default=None, help=shown
            )
        else:
            choices = get_args(hints[one.name])
            metavar = "|".join(choices) if choices else one.name.rpartition("_")[2].upper()
            parser.add_argument(flag, default=None, metavar=metavar, help=shown)


def run(args: argparse.Namespace) -> int:
    settings = given_settings(args)
    from service.api import logs
    from service.door import Door
    from service.store.embedded import EmbeddedServer
    from service.store.url import describe, parse_url
    from service.supervisor import Supervisor

    logs.configure(settings)
    with ExitStack() as stack:
        door = Door(settings.host, settings.port)
        stack.callback(door.close)
        if settings.redis_url:
            parse_url(settings.redis_url)
            kept = describe(settings.redis_url)
        else:
            server = EmbeddedServer(
                settings.data_dir or None,
                appendfsync=settings.appendfsync,
                config={"maxmemory": str(settings.max_memory_bytes)},
            )
            stack.enter_context(server)
            settings = settings.changed({"redis_url": server.url})
            kept = str(server.data_dir)
        if not settings.metrics_dir:
            metrics_dir = tempfile.mkdtemp(prefix="lacuna-metrics-")
            stack.callback(shutil.rmtree, metrics_dir, ignore_errors=True)
            settings = settings.changed({"metrics_dir": metrics_dir})

        def announce() -> None:
            print(banner(door.url, kept, settings), flush=True)
            if (problem := asyncio.run(store_problem(settings.redis_url))) is not None:
                log.warning("selects and rewards will fail until the store answers: %s", problem)

        print("Starting; the very first start compiles kernels for up to a minute.", flush=True)
        return Supervisor(door, settings, announce).run()


async def store_problem(url: str) -> str | None:
    """Why the store does not answer, or None: a mistyped URL should not pass for a start."""
    from service.store.connect import connect, translate_errors
    from service.store.errors import StoreError

    client: Any = connect(url, timeout_s=2.0)
    try:
        with translate_errors():
            await client.ping()
    except StoreError as error:
        return str(error)
    finally:
        await client.aclose()
    return None


def given_settings(args: argparse.Namespace) -> Settings:
    """The environment, and above it what was given on the command line."""
    environment = dict(os.environ)
    for one in fields(Settings):
        value = getattr(args, one.name, None)
        if value is not None:
            environment[variable(one.name)] = str(value)
    return Settings.from_environment(environment)


def banner(address: str, kept: str, settings: Settings) -> str:
    workers = f"{settings.workers} worker{'s' if settings.workers > 1 else ''}"
    headers = "-H 'Content-Type: application/json'"
    if settings.api_keys:
        headers += " -H 'X-API-Key: …'"
    arms = [{"id": "a", "features": [0.2, None, 1.3]}, {"id": "b", "features": [0.1, 0.7, 0.0]}]
    calls = [
        ("select", {"event_id": "e1", "arms": arms}),
        ("reward", {"event_id": "e1", "reward": 1.0}),
    ]
    lines = [
        f"Lacuna is ready at {address}   ({workers}; state in {kept})",
        f"See it learn: {address}/   All calls: {address}/docs",
        "",
        "Choose, then say how it went (null: a feature nobody knows):",
        *(f"  curl {headers} {address}/{call} -d '{json.dumps(body)}'" for call, body in calls),
        "",
    ]
    return "\n".join(lines)
