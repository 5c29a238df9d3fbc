"""Administration of learners."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.responses import StreamingResponse

from service.engine import transfer, views
from service.engine.edge import store_errors
from service.engine.engine import Engine
from service.engine.registry import Engines
from service.errors import BadRequest

from . import schemas
from .openapi import BYTES, refusals

_T = TypeVar("_T")

KEPT_DECISIONS = 200  # more are not kept
PIECE_BYTES = 256 << 10

router = APIRouter(prefix="/learners", tags=["learners"])


def engines_of(request: Request) -> Engines:
    engines: Engines = request.app.state.engines
    return engines


Here = Annotated[Engines, Depends(engines_of)]
Name = Annotated[str, Path(pattern=schemas.NAME_PATTERN, examples=["default"])]


async def fresh(engines: Engines, name: str, view: Callable[[Engine], Awaitable[_T]]) -> _T:
    """A view of the learner as the store has it now, whichever worker changed it last."""

    async def work(engine: Engine) -> _T:
        async with store_errors():
            await engine.run(engine.flush)
            # A second job is refused by an engine that has just learnt that it is outdated.
            return await engine.run(lambda: view(engine))

    return await engines.use(name, work)


async def configuration(engine: Engine) -> dict[str, Any]:
    return {"name": engine.store.name, **engine.replica.configuration.to_dict()}


@router.get("", summary="List", responses=refusals(401, 503))
async def list_learners(engines: Here) -> schemas.LearnerList:
    """All learners, by name."""
    names = await engines.names()
    return schemas.LearnerList(learners=[schemas.Named(name=name) for name in names])


@router.put(
    "/{name}",
    summary="Create or reconfigure",
    response_model=schemas.Learner,
    responses=refusals(401, 403, 409, 413, 415, 422, 503)
    | {201: {"model": schemas.Learner, "description": "Created"}},
)
async def put_learner(
    name: Name,
    body: schemas.Configuration,
    request: Request,
    response: Response,
    engines: Here,
) -> dict[str, Any]:
    """Create a learner (201), or reconfigure it (200).

    `dimension` and `features` of a learner that has data are fixed: 409.
    """
    most = request.app.state.settings.max_dimension
    if (body.dimension or len(body.features or [])) > most:
        raise BadRequest("dimension", f"must be at most {most:,} here")
    if await engines.put(name, body.given()):
        response.status_code = 201
    return await fresh(engines, name, configuration)


@router.get(
    "/{name}", summary="Configuration and statistics", responses=refusals(401, 404, 422, 503)
)
async def get_learner(name: Name, engines: Here) -> schemas.LearnerStatistics:
    """Configuration and statistics."""

    async def view(engine: Engine) -> dict[str, Any]:
        return await configuration(engine) | await views.statistics(engine)

    return schemas.LearnerStatistics.model_validate(await fresh(engines, name, view))


@router.get(
    "/{name}/model",
    summary="Estimate and model",
    response_model=schemas.Model,
    responses=refusals(401, 404, 422, 503),
)
async def get_model(name: Name, engines: Here, matrices: bool = True) -> dict[str, Any]:
    """The estimate of the features' distribution, and the model of the reward.

    With `matrices=false`, `sigma` and `gram` are null: at d = 1,024 they are most of 40 MB.
    """
    return await fresh(engines, name, lambda engine: views.model_view(engine, matrices=matrices))


@router.get("/{name}/timeline", summary="Over time", responses=refusals(401, 404, 422, 503))
async def get_timeline(name: Name, engines: Here) -> schemas.Timeline:
    """What happened in the latest 720 intervals in which something did, oldest first."""
    return schemas.Timeline.model_validate(await fresh(engines, name, views.timeline))


@router.get("/{name}/decisions", summary="Latest decisions", responses=refusals(401, 404, 422, 503))
async def get_decisions(
    name: Name,
    engines: Here,
    limit: Annotated[int, Query(ge=1)] = 50,
    explained: Annotated[
        bool, Query(description="Only those of which is known what their arms were worth.")
    ] = False,
) -> schemas.Decisions:
    """The latest decisions, newest first, each with its reward where it came."""

    async def view(engine: Engine) -> list[dict[str, Any]]:
        most = min(limit, KEPT_DECISIONS)
        return await views.recent_decisions(engine, most, explained_only=explained)

    return schemas.Decisions.model_validate({"decisions": await fresh(engines, name, view)})


@router.get(
    "/{name}/decisions/{event_id:path}",
    summary="One decision",
    responses=refusals(401, 404, 422, 503),
)
async def get_decision(
    name: Name,
    event_id: Annotated[str, Path(min_length=1, max_length=128, examples=["imp-8f2c"])],
    engines: Here,
) -> schemas.ExplainedDecision:
    """One decision, and what its arms were worth when it was made, where that is still known.

    It is known of the latest 50 that were explained: a sample, and first of all those that were
    asked to be.
    """
    found = await fresh(engines, name, lambda engine: views.one_decision(engine, event_id))
    return schemas.ExplainedDecision.model_validate(found)


@router.get(
    "/{name}/export",
    summary="Export",
    response_class=Response,
    responses=refusals(401, 404, 422, 503)
    | {200: {"content": {BYTES: {}}, "description": "The whole state, as one file"}},
)
async def export_learner(name: Name, engines: Here) -> Response:
    """The whole state as one versioned file."""
    parts = await transfer.export_learner(engines, name)
    return StreamingResponse(
        _pieces(parts),
        media_type=BYTES,
        headers={
            "content-disposition": f'attachment; filename="{name}.lacuna"',
            "content-length": str(sum(map(len, parts))),
        },
    )


async def _pieces(parts: list[bytes]) -> AsyncIterator[bytes]:
    """So small that what waits to be sent is not a second copy of it all."""
    for part in parts:
        for start in range(0, len(part), PIECE_BYTES):
            yield part[start : start + PIECE_BYTES]


@router.put(
    "/{name}/import",
    summary="Import",
    response_model=schemas.Learner,
    responses=refusals(401, 403, 413, 422, 503),
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {BYTES: {"schema": {"type": "string", "format": "binary"}}},
        }
    },
)
async def import_learner(name: Name, request: Request, engines: Here) -> dict[str, Any]:
    """An exported state in place of what the learner was, or as a new one.

    It decides exactly as the original did.
    """
    # Not `request.body()`, which would keep it for as long as the request lasts.
    await transfer.import_learner(engines, name, b"".join([x async for x in request.stream() if x]))
    return await fresh(engines, name, configuration)


@router.post(
    "/{name}/reset", summary="Reset", status_code=204, responses=refusals(401, 403, 404, 422, 503)
)
async def reset_learner(name: Name, engines: Here) -> None:
    """Forget what was learnt; the configuration stays."""
    await engines.reset(name)


@router.delete(
    "/{name}", summary="Delete", status_code=204, responses=refusals(401, 403, 404, 422, 503)
)
async def delete_learner(name: Name, engines: Here) -> None:
    """Remove the learner and all it holds."""
    await engines.delete(name)
