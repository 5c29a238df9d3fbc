"""Driver errors become ours here, so that no other room needs to know the driver."""

import re
from types import TracebackType

from redis import exceptions as driver

from service.store.errors import (
    ScriptMissing,
    StoreDenied,
    StoreError,
    StoreFull,
    StoreLoading,
    StoreReadOnly,
    StoreUnavailable,
)

# The first row that fits decides: some of the driver's errors derive from one another.
BY_TYPE: tuple[tuple[type[StoreError], tuple[type[Exception], ...], str], ...] = (
    (StoreLoading, (driver.BusyLoadingError,), "The store is still loading its data"),
    (
        StoreDenied,
        (
            driver.AuthenticationError,
            driver.AuthenticationWrongNumberOfArgsError,
            driver.AuthorizationError,
            driver.NoPermissionError,
        ),
        "The store refuses the user or password of its URL, or does not permit the command",
    ),
    (StoreReadOnly, (driver.ReadOnlyError,), "The store is a replica and takes no writes"),
    (StoreFull, (driver.OutOfMemoryError,), "The store has no memory left"),
    (ScriptMissing, (driver.NoScriptError,), "The store does not know the script"),
    (
        StoreUnavailable,
        (driver.AskError,),  # and MovedError
        "The store is a cluster that keeps this key elsewhere (its URL is redis+cluster://…)",
    ),
    (
        StoreUnavailable,
        (
            driver.ConnectionError,
            driver.TimeoutError,
            driver.ClusterError,
            driver.TryAgainError,
            driver.SlotNotCoveredError,
            OSError,
        ),
        "The store is not available",
    ),
    (StoreError, (driver.RedisError, driver.RedisClusterException), "The store failed"),
)
# Replies for which the driver has no type. In a pipeline it puts words in front of them.
BY_REPLY: tuple[tuple[type[StoreError], re.Pattern[str], str], ...] = (
    (StoreFull, re.compile(r"(?:^|\(['\"])MISCONF "), "The store cannot write to its disk"),
    (
        StoreUnavailable,
        re.compile(r"(?:^|\(['\"])(?:NOREPLICAS|BUSY) "),
        "The store is not available",
    ),
)
CLUSTER_AWAY = re.compile("cannot be connected|slots are not covered")
TRANSPORT_CLOSED = re.compile("Transport.* closed|handler is closed")


def translated(error: BaseException) -> StoreError | None:
    """Our error for a driver's, also for one found in a pipeline's results; None if not its own."""
    if isinstance(error, driver.RedisClusterException) and CLUSTER_AWAY.search(str(error)):
        # The cause tells a refused password from a cluster that is away.
        cause = translated(error.__cause__) if error.__cause__ else None
        return cause or StoreUnavailable(f"The store is not available: {error}")
    if isinstance(error, RuntimeError) and TRANSPORT_CLOSED.search(str(error)):
        # uvloop's way of saying that the connection was lost before the write.
        return StoreUnavailable(f"The store is not available: {error}")
    if isinstance(error, driver.ResponseError):
        for ours, pattern, sentence in BY_REPLY:
            if pattern.search(str(error)):
                return ours(f"{sentence}: {error}")
    for ours, theirs, sentence in BY_TYPE:
        if isinstance(error, theirs):
            return ours(f"{sentence}: {error}")
    return None


class _Translation:
    __slots__ = ()

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None and (ours := translated(error)):
            raise ours from error


_TRANSLATION = _Translation()


def translate_errors() -> _Translation:
    """`with translate_errors(): await client…` raises only errors of this package."""
    return _TRANSLATION
