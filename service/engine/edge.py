"""Where the store's errors become those that a caller of the service should see."""

from __future__ import annotations

import logging
from types import TracebackType

from service.errors import StoreDown
from service.store.errors import StoreDenied, StoreUnavailable

log = logging.getLogger("lacuna.engine")


class _StoreErrors:
    async def __aenter__(self) -> None:
        return None

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, StoreUnavailable | StoreDenied):
            # Where the store is, and what it said, is for the log, not for callers.
            log.warning("%s", error)
            raise StoreDown("the store does not answer") from error


def store_errors() -> _StoreErrors:
    """`async with store_errors(): …` raises StoreDown where the store is away."""
    return _StoreErrors()
