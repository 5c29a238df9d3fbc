"""`lacuna demo`: a simulated market in front of a real service."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import socket
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any

import httpx
import uvicorn

from clients.adserver import AdServer
from clients.errors import ServiceFailed
from clients.serving import DidNotStart, OwnService
from clients.values import number, whole

from .score import Score
from .traffic import SimulatedSupply, Visitors
from .view import SIMULATED, Scene, shown, summary
from .world import NAMES, World

REWARD_WAIT_S = 4.0
# No click comes later, and a demo may run for days: a day's decisions would fill a small store.
DECISION_TTL_S = 300.0
READY_WAIT_S = 60.0
PATIENCE_S = 60.0  # of a visitor; the ad server, which may ask again, gives up first
REDRAW_S = 0.25
MINUTE_S = 60.0

POLICIES: dict[str, dict[str, Any]] = {
    "lacuna": {"policy": "clbbf"},
    "zero-fill": {"policy": "oful"},  # a missing feature counts as 0
    "random": {"policy": "random"},
}

EPILOG = f"""\
Three learners decide on every page: Lacuna as it is by default; the same kind of bandit that puts 0
where a feature is missing; and chance. Clicks come seconds later, or never: then each learner books
a default reward of 0 after {REWARD_WAIT_S:g} seconds.
{SIMULATED}

Without --url it starts a service of its own on a free port, with its data in a temporary folder.
The key of a service that asks for one is in LACUNA_API_KEY.

examples:
  lacuna demo                                     a minute, then a summary and lacuna-demo.png
  lacuna demo --duration 20 --pages 100
  lacuna demo --url http://localhost:8080 --forever
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument("--url", metavar="URL", help="a running service (default: one of its own)")
    length = parser.add_mutually_exclusive_group()
    length.add_argument(
        "--duration",
        type=number(1, 86_400),
        default=MINUTE_S,
        metavar="S",
        help="seconds of traffic (default: 60)",
    )
    length.add_argument("--forever", action="store_true", help="until it is stopped")
    parser.add_argument(
        "--pages",
        type=number(0.1, 1_000),
        default=50.0,
        metavar="R",
        help="pages per second (default: 50)",
    )
    parser.add_argument("--seed", type=whole(0, 2**31), default=1, metavar="N", help="of the world")
    parser.add_argument(
        "--learner-prefix",
        default="demo",
        metavar="NAME",
        help="learners are NAME-lacuna, NAME-zero-fill, NAME-random (default: demo)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("lacuna-demo.png"),
        metavar="PNG",
        help="the picture (default: lacuna-demo.png)",
    )
    parser.add_argument("--no-picture", action="store_true", help="draw none")
    parser.add_argument("--quiet", action="store_true", help="no live view")


def run(args: argparse.Namespace) -> int:
    with ExitStack() as stack:
        url = args.url or stack.enter_context(_own_service())
        scene, stopped_by = asyncio.run(_show(args, url))
    print(summary(scene))
    if scene.score.pages and not args.no_picture and not args.forever:
        from .picture import draw

        draw(scene, args.out)
        print(f"wrote {args.out}")
    if stopped_by is not None:
        return 130 if stopped_by == signal.SIGINT else 0
    return 0 if scene.score.pages and not scene.visitors.failed else 1


@contextmanager
def _own_service() -> Iterator[str]:
    print("starting a service ...", flush=True)
    with tempfile.TemporaryDirectory(prefix="lacuna-demo-") as folder:
        service = OwnService(Path(folder))
        try:
            service.__enter__()
        except DidNotStart as error:
            raise ServiceFailed(str(error)) from error
        try:
            yield service.url
        finally:
            service.end()


async def _show(args: argparse.Namespace, url: str) -> tuple[Scene, int | None]:
    key = os.environ.get("LACUNA_API_KEY")
    headers = {"Authorization": f"Bearer {key}"} if key else None
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=10.0) as lacuna:
        await _until_ready(lacuna)
        learners = {name: f"{args.learner_prefix}-{name}" for name in POLICIES}
        for name, learner in learners.items():
            await _make(lacuna, learner, POLICIES[name])
        supply = SimulatedSupply(World.draw(args.seed), args.seed)
        server = AdServer(lacuna, supply, learners, first="lacuna")
        score = Score(tuple(POLICIES))
        async with (
            _listening(server) as address,
            httpx.AsyncClient(base_url=address, timeout=PATIENCE_S) as browser,
        ):
            visitors = Visitors(browser, supply, score, args.seed)
            duration_s = None if args.forever else args.duration
            scene = Scene(url, score, server, supply, visitors, duration_s)
            return scene, await _play(scene, args)


async def _play(scene: Scene, args: argparse.Namespace) -> int | None:
    """Until time is up or a signal comes; which one."""
    stopped: list[int] = []
    loop = asyncio.get_running_loop()
    end = monotonic() + (scene.duration_s or float("inf"))
    traffic = asyncio.create_task(
        scene.visitors.come(args.pages, lambda: monotonic() >= end), name="visitors"
    )

    def stop(number: int) -> None:
        stopped.append(number)
        traffic.cancel()

    for one in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(one, stop, one)
    try:
        with shown(scene, quiet=args.quiet) as see:
            while not traffic.done():
                see()
                await asyncio.wait([traffic], timeout=REDRAW_S)
        with suppress(asyncio.CancelledError):
            await traffic
    finally:
        for one in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(one)
    return stopped[0] if stopped else None


class _AdHttp(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # they are for the demo


@asynccontextmanager
async def _listening(app: AdServer) -> AsyncIterator[str]:
    """The ad server on a free port."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=1_024)
    config = uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off", ws="none")
    server = _AdHttp(config)
    serving = asyncio.create_task(server.serve([listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await serving
        listener.close()


async def _until_ready(lacuna: httpx.AsyncClient) -> None:
    """A service that was started beside this may need a while."""
    deadline = monotonic() + READY_WAIT_S
    while True:
        try:
            answer = await lacuna.get("/health/ready")
            if answer.status_code == 200:
                return
            why = f"it is not ready: {answer.text[:200]}"
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            why = f"it does not answer: {error}"
        if monotonic() > deadline:
            raise ServiceFailed(f"{lacuna.base_url}: {why}")
        await asyncio.sleep(0.5)


async def _make(lacuna: httpx.AsyncClient, learner: str, policy: dict[str, Any]) -> None:
    configuration = {
        "features": list(NAMES),
        "reward_wait_s": REWARD_WAIT_S,
        "default_reward": 0.0,
        "decision_ttl_s": DECISION_TTL_S,
        **policy,
    }
    try:
        answer = await lacuna.put(f"/learners/{learner}", json=configuration)
    except httpx.HTTPError as error:
        raise ServiceFailed(f"{lacuna.base_url}: {error}") from error
    if answer.status_code == 401:
        raise ServiceFailed("the service asks for a key: set LACUNA_API_KEY")
    if answer.is_error:
        raise ServiceFailed(f"the learner {learner} was refused: {answer.text[:200]}")
