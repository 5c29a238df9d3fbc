"""The FastAPI application: all that is not the hot path, and the document that describes both."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route

from service import __version__
from service.engine.registry import Engines
from service.errors import BadRequest, LacunaError
from service.settings import Settings

from . import dashboard, learners, openapi, operations, problems
from .metrics import Metrics


def build(
    engines: Engines,
    metrics: Metrics,
    settings: Settings,
    lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]],
) -> FastAPI:
    app = FastAPI(
        title="Lacuna",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,  # theirs loads from elsewhere
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.engines = engines
    app.state.metrics = metrics
    app.state.settings = settings
    app.state.page = dashboard.read_files()
    app.include_router(dashboard.router)
    app.include_router(operations.router)
    app.include_router(learners.router)
    app.add_exception_handler(LacunaError, refused)
    app.add_exception_handler(RequestValidationError, refused)
    app.add_exception_handler(HTTPException, refused)
    app.add_exception_handler(Exception, failed)
    app.openapi = lambda: openapi.document(app)  # type: ignore[method-assign]
    return app


async def refused(request: Request, error: Exception) -> Response:
    """Any error of a call as a problem document."""
    if isinstance(error, HTTPException):
        # 400 is what FastAPI says of a body that it cannot parse at all.
        if error.status_code != 400:
            headers = {name.lower(): value for name, value in (error.headers or {}).items()}
            if error.status_code == 405 and (methods := methods_of(request)):
                headers["allow"] = ", ".join(methods)
            return _response(problems.of_status(error.status_code, str(error.detail)), headers)
        error = BadRequest("body", "is not JSON that can be read")
    if isinstance(error, RequestValidationError):
        error = problems.bad_fields(list(error.errors()))
    assert isinstance(error, LacunaError)
    headers = {name.decode(): value.decode() for name, value in problems.headers_of(error)}
    return _response(problems.of_error(error), headers)


async def failed(_: Request, __: Exception) -> Response:
    """A bug; the front logs it."""
    return _response(problems.of_status(500), {})


def methods_of(request: Request) -> list[str]:
    """All of a path; the framework names only those of the first route that matches it."""
    found: set[str] = set()
    routers = (dashboard.router, operations.router, learners.router)
    for route in (route for router in routers for route in router.routes):
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE:
            found |= route.methods or set()
    return sorted(found)


def _response(problem: problems.Problem, headers: dict[str, str]) -> Response:
    return Response(
        problem.encoded(), problem.status, headers=headers, media_type=problems.MEDIA_TYPE
    )
