"""The OpenAPI document: FastAPI's own, and with it the calls that FastAPI does not see."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from . import problems, schemas

BYTES = "application/octet-stream"
COMPACT = "application/vnd.lacuna.f32"
REF = "#/components/schemas/"

DESCRIPTION = """\
Send candidates with holes in their features to `/select`, and what came of the chosen one to
`/reward`. Every error is an RFC 9457 problem document. Every answer has an `X-Request-ID`.
"""

MEANING = {
    401: "No API key, or none that is known",
    403: "A browser sent it for a page of another site",
    404: "There is no such learner or event",
    409: "It contradicts what is there",
    413: "The body is too large",
    415: "The media type is not understood",
    422: "A field cannot be used; `errors` names it",
    500: "A bug",
    503: "Not now: `Retry-After` says when",
}


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The errors of a call, for its documentation."""
    return {status: _refusal(status) for status in (*statuses, 500)}


def _refusal(status: int) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "description": MEANING[status],
        "content": {problems.MEDIA_TYPE: {"schema": {"$ref": REF + "Problem"}}},
    }
    if status == 503:
        answer["headers"] = {"Retry-After": {"schema": {"type": "integer"}}}
    if status == 401:
        answer["headers"] = {"WWW-Authenticate": {"schema": {"type": "string"}}}
    return answer


def document(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        found = get_openapi(
            title=app.title,
            version=app.version,
            description=DESCRIPTION,
            routes=app.routes,
            tags=[{"name": "choose and learn"}, {"name": "learners"}, {"name": "operations"}],
        )
        app.openapi_schema = _completed(found)
    return app.openapi_schema


def _completed(found: dict[str, Any]) -> dict[str, Any]:
    models: list[type[BaseModel]] = [
        *(schemas.SelectRequest, schemas.SelectAnswer, schemas.SelectBatch),
        *(schemas.SelectBatchAnswer, schemas.RewardRequest, schemas.RewardAnswer),
        *(schemas.RewardBatch, schemas.RewardBatchAnswer, schemas.Problem),
    ]
    _, made = models_json_schema(
        [(model, "validation") for model in models], ref_template=REF + "{model}"
    )
    components = found.setdefault("components", {})
    components["schemas"] = components.get("schemas", {}) | made["$defs"]
    for unused in ("HTTPValidationError", "ValidationError"):
        components["schemas"].pop(unused, None)
    components["securitySchemes"] = {
        "bearer": {"type": "http", "scheme": "bearer"},
        "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    }
    found["security"] = [{}, {"bearer": []}, {"key": []}]
    found["paths"] = {
        "/select": {"post": _select()},
        "/reward": {
            "post": _call(
                "Learn",
                "Say how a decision turned out. Answered only when stored.",
                *("RewardRequest", "RewardAnswer"),
                not_found=True,
            )
        },
        "/select/batch": {
            "post": _call(
                "Choose, many at once",
                "Results in order; a bad item gets its own `error` and fails no other.",
                *("SelectBatch", "SelectBatchAnswer"),
            )
        },
        "/reward/batch": {
            "post": _call(
                "Learn, many at once",
                "Results in order; a bad item gets its own `error` and fails no other.",
                *("RewardBatch", "RewardBatchAnswer"),
            )
        },
        **found["paths"],
    }
    for path, item in found["paths"].items():
        if path.startswith("/health/"):
            for call in item.values():
                call["security"] = []
    return found


def _select() -> dict[str, Any]:
    call = _call(
        "Choose",
        "One of the arms. A heavy caller may send the arms as little-endian `uint16 K, uint16 d, "
        "K·d float32`, NaN where missing, with `learner` and `event_id` in the query.",
        *("SelectRequest", "SelectAnswer"),
        not_found=True,
    )
    call["requestBody"]["content"][COMPACT] = {"schema": {"type": "string", "format": "binary"}}
    id_schema = {"type": "string", "minLength": 1, "maxLength": 128}
    # Its default is not told: whoever tries a call out would send it with every body.
    name_schema = {"type": "string", "pattern": schemas.NAME_PATTERN}
    only = "Compact body only."
    call["parameters"] = [
        {"name": "learner", "in": "query", "schema": name_schema, "description": only},
        {"name": "event_id", "in": "query", "schema": id_schema, "description": only},
        *(
            {"name": name, "in": "query", "schema": {"type": "boolean"}, "description": only}
            for name in ("explain", "dry_run")
        ),
    ]
    return call


def _call(
    summary: str, description: str, body: str, answer: str, *, not_found: bool = False
) -> dict[str, Any]:
    statuses = (401, 403, *((404,) if not_found else ()), 413, 415, 422, 503)
    return {
        "tags": ["choose and learn"],
        "summary": summary,
        "description": description,
        "requestBody": {"required": True, "content": {"application/json": _schema(body)}},
        "responses": {
            "200": {"description": "Done", "content": {"application/json": _schema(answer)}},
            **{str(status): refusal for status, refusal in refusals(*statuses).items()},
        },
    }


def _schema(name: str) -> dict[str, Any]:
    return {"schema": {"$ref": REF + name}}
