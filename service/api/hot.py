"""The calls that carry the load: typed decode, straight into the engine, typed encode."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from service.errors import LacunaError

from . import problems
from .bodies import Reader, is_compact, refuse_in_query
from .calls import Calls, ErrorAnswer
from .front import Handler
from .request import Request

log = logging.getLogger("lacuna.api")
encode = msgspec.json.Encoder().encode


def handlers(calls: Calls, reader: Reader) -> dict[str, Handler]:
    async def select(request: Request) -> bytes:
        if is_compact(request.content_type):
            asked = reader.compact(request.body, request.query)
        else:
            request.require_json()
            asked = reader.select(request.body, request.query)
        return encode(await calls.select(asked))

    async def reward(request: Request) -> bytes:
        request.require_json()
        refuse_in_query(request.query)
        return encode(await calls.reward(reader.reward(request.body)))

    async def select_batch(request: Request) -> bytes:
        request.require_json()
        refuse_in_query(request.query)
        return await each(reader.selects(request.body), reader.select, calls.select)

    async def reward_batch(request: Request) -> bytes:
        request.require_json()
        refuse_in_query(request.query)
        return await each(reader.rewards(request.body), reader.reward, calls.reward)

    return {
        "/select": select,
        "/reward": reward,
        "/select/batch": select_batch,
        "/reward/batch": reward_batch,
    }


async def each(
    items: list[msgspec.Raw],
    read: Callable[[msgspec.Raw], Any],
    call: Callable[[Any], Awaitable[Any]],
) -> bytes:
    """All items at once, so that they share a commit; results in order."""

    async def one(item: msgspec.Raw) -> Any | ErrorAnswer:
        try:
            return await call(read(item))
        except LacunaError as error:
            return ErrorAnswer(problems.of_error(error))
        except Exception:  # the others have been done, and must be told
            log.exception("an item of a batch failed")
            return ErrorAnswer(problems.of_status(500))

    return encode({"results": await asyncio.gather(*map(one, items))})
