"""The FastAPI application: all that is not the hot path, and the document that describes both."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from fastapi import FastAPI

from service import __version__
from service.engine.registry import Engines


def build(
    engines: Engines, lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]]
) -> FastAPI:
    app = FastAPI(title="Lacuna", version=__version__, lifespan=lifespan)
    app.state.engines = engines
    return app
