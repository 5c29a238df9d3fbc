"""Health and metrics."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from service.errors import StoreDown, Unavailable

from . import schemas
from .learners import Here
from .openapi import refusals

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

router = APIRouter(tags=["operations"])


@router.get("/health/live", responses=refusals())
async def live() -> schemas.Health:
    """The worker runs."""
    return schemas.Health(status="ok")


@router.get("/health/ready", responses=refusals(503))
async def ready(request: Request, engines: Here) -> schemas.Health:
    """The worker can take requests, and its store answers."""
    if request.app.state.front.draining:
        raise Unavailable("this worker is stopping")
    await engines.names()
    if any(engine.degraded for engine in engines.alive.values()):
        raise StoreDown("decisions are made without the store")
    return schemas.Health(status="ready")


@router.get(
    "/metrics",
    response_class=Response,
    responses=refusals(401)
    | {200: {"content": {"text/plain": {}}, "description": "Prometheus text"}},
)
async def metrics(request: Request) -> Response:
    """All workers together, for Prometheus."""
    return Response(await request.app.state.metrics.text(), media_type=METRICS_TYPE)
