"""The calls that carry the load: typed decode, straight into the engine, typed encode."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from service.errors import LacunaError

from .bodies import COMPACT, Reader
from .calls import Calls, ErrorAnswer, error_answer
from .front import Handler, Request

encode = msgspec.json.Encoder().encode


def handlers(calls: Calls, reader: Reader) -> dict[str, Handler]:
    async def select(request: Request) -> bytes:
        if request.content_type == COMPACT:
            asked = reader.compact(request.body, request.query)
        else:
            request.require_json()
            asked = reader.select(request.body)
        return encode(await calls.select(asked))

    async def reward(request: Request) -> bytes:
        request.require_json()
        return encode(await calls.reward(reader.reward(request.body)))

    async def select_batch(request: Request) -> bytes:
        request.require_json()
        return await each(reader.selects(request.body), reader.select, calls.select)

    async def reward_batch(request: Request) -> bytes:
        request.require_json()
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
            return error_answer(error)

    return encode({"results": await asyncio.gather(*map(one, items))})
