"""The Lua scripts: read once, called by their SHA, sent again when the server forgot them."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources
from typing import Any

from .connect import Client
from .errors import ScriptMissing
from .translate import translate_errors


@cache
def source(name: str) -> tuple[str, str]:
    """A script's text and its SHA-1."""
    text = resources.files("service.store").joinpath("scripts", f"{name}.lua").read_text("utf-8")
    return text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


async def call(client: Client, name: str, keys: list[bytes], *args: Any) -> Any:
    text, sha = source(name)
    with translate_errors():
        try:
            return await _evalsha(client, sha, keys, args)
        except ScriptMissing:
            # EVAL keeps what it runs; a restarted or failed-over server has it again.
            return await client.eval(text, len(keys), *keys, *args)


async def _evalsha(client: Client, sha: str, keys: list[bytes], args: tuple[Any, ...]) -> Any:
    with translate_errors():
        return await client.evalsha(sha, len(keys), *keys, *args)
