"""Where everything is put together."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from service.api import app as api
from service.api import hot
from service.api.bodies import Reader
from service.api.calls import Calls
from service.api.front import Front
from service.api.metrics import Metrics
from service.api.warmup import warm_up
from service.engine.registry import Engines
from service.engine.settings import EngineSettings
from service.errors import BadSetting
from service.settings import Settings, variable
from service.store.connect import connect


def create_app(settings: Settings | None = None) -> Front:
    """The service as one ASGI application; its store must run already."""
    settings = settings or Settings.from_environment(os.environ)
    if not settings.redis_url:
        raise BadSetting(variable("redis_url"), "is needed where `lacuna serve` does not set it")
    client = connect(settings.redis_url, timeout_s=settings.store_timeout_s)
    engines = Engines(
        client,
        EngineSettings(
            follow_interval_s=settings.follow_interval_s,
            queue_limit=settings.queue_limit,
            buffer_limit=settings.buffer_limit,
            idle_s=settings.idle_s,
        ),
        auto_create=settings.auto_create,
    )
    reader = Reader(settings)
    metrics = Metrics(settings.metrics_dir, settings.worker_number)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        warm_up()
        await engines.start()
        metrics.start(engines)
        yield
        await engines.stop()
        await metrics.stop()
        await client.aclose()

    app = api.build(engines, metrics, settings, lifespan)
    front = Front(app, hot.handlers(Calls(engines, reader, metrics), reader), settings, metrics)
    app.state.front = front
    return front
