"""The page and the description of all calls: files, and the headers that keep them to themselves.

The files hold no data and are the same for everybody, so they need no key; all that the pages show
they ask for with calls that do. `GET /` without a key is a 401 like any other, but with the page as
its body where a browser asks: there the key is entered.
"""

from __future__ import annotations

import hashlib
from importlib import resources
from typing import NamedTuple

from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException

from service.errors import NotAllowed

from .openapi import refusals

FOLDER = "page"
INDEX, DOCS = "index.html", "docs.html"
SWAGGER = ("swagger-ui-bundle.js", "swagger-ui.css")
TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
# Swagger UI writes styles into its elements, and has its icons in its style sheet.
DOCS_POLICY = POLICY.replace("style-src 'self'", "style-src 'self' 'unsafe-inline'").replace(
    "img-src 'self'", "img-src 'self' data:"
)
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-cache",  # asked again every time, answered with 304: upgrades show at once
}


class File(NamedTuple):
    content: bytes
    media_type: str
    etag: str


def read_files() -> dict[str, File]:
    """By name; what is not in here is not served."""
    found = {}
    swagger = resources.files("fastapi_swagger.resources")
    own = resources.files("service.api").joinpath(FOLDER)
    for entry in (*own.iterdir(), *map(swagger.joinpath, SWAGGER)):
        media_type = TYPES.get(entry.name.rpartition(".")[2])
        if media_type is not None:
            content = entry.read_bytes()
            etag = '"' + hashlib.sha256(content).hexdigest()[:32] + '"'
            found[entry.name] = File(content, media_type, etag)
    return found


router = APIRouter(tags=["operations"])


@router.get(
    "/",
    response_class=Response,
    responses=refusals(401)
    | {200: {"content": {"text/html": {}}, "description": "The page"}, 304: {}},
)
async def page(request: Request) -> Response:
    """See it learn: one learner at a glance, live."""
    return _document(request, INDEX, POLICY)


@router.get("/docs", include_in_schema=False)
async def docs(request: Request) -> Response:
    """Every call, to be tried out."""
    return _document(request, DOCS, DOCS_POLICY)


@router.get("/page/{name}", include_in_schema=False)
async def page_file(name: str, request: Request) -> Response:
    file = request.app.state.page.get(name)
    if file is None or name in (INDEX, DOCS):
        raise HTTPException(404)
    return _response(request, file)


def _document(request: Request, name: str, policy: str) -> Response:
    status = 200
    try:
        request.app.state.front.keys.check(
            request.headers.get("authorization", "").encode("latin-1"),
            request.headers.get("x-api-key", "").encode("latin-1"),
        )
    except NotAllowed:
        if "text/html" not in request.headers.get("accept", ""):
            raise
        status = 401
    return _response(request, request.app.state.page[name], status, policy)


def _response(request: Request, file: File, status: int = 200, policy: str = POLICY) -> Response:
    headers = {**HEADERS, "content-security-policy": policy, "etag": file.etag, "vary": "Accept"}
    if status == 401:
        headers["www-authenticate"] = 'Bearer realm="lacuna"'
    elif request.headers.get("if-none-match") == file.etag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, status, headers, file.media_type)
