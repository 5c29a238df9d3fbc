"""The page: its files, and the headers that keep it to itself.

The files hold no data and are the same for everybody, so they need no key; all that the page shows
it asks for with calls that do. `GET /` without a key is a 401 like any other, but with the page as
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
INDEX = "index.html"
TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    ),
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
    for entry in resources.files("service.api").joinpath(FOLDER).iterdir():
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
    try:
        request.app.state.front.keys.check(
            request.headers.get("authorization", "").encode("latin-1"),
            request.headers.get("x-api-key", "").encode("latin-1"),
        )
    except NotAllowed:
        if "text/html" not in request.headers.get("accept", ""):
            raise
        return _response(request, request.app.state.page[INDEX], 401)
    return _response(request, request.app.state.page[INDEX])


@router.get("/page/{name}", include_in_schema=False)
async def page_file(name: str, request: Request) -> Response:
    file = request.app.state.page.get(name)
    if file is None or name == INDEX:
        raise HTTPException(404)
    return _response(request, file)


def _response(request: Request, file: File, status: int = 200) -> Response:
    headers = {**HEADERS, "etag": file.etag, "vary": "Accept"}
    if status == 401:
        headers["www-authenticate"] = 'Bearer realm="lacuna"'
    elif request.headers.get("if-none-match") == file.etag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, status, headers, file.media_type)
