"""When to try again. Every call may be repeated: ids made before the first try see to that."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx

AGAIN = frozenset({502, 503, 504})


@dataclass(frozen=True, slots=True)
class Retries:
    count: int = 4  # tries after the first
    first_s: float = 0.1
    longest_s: float = 10.0  # a longer Retry-After is cut to this

    def wait_s(self, tried: int, answer: httpx.Response | None) -> float | None:
        """How long to wait before the next try; None: this was the last, or it succeeded."""
        if tried > self.count or (answer is not None and answer.status_code not in AGAIN):
            return None
        # Callers that failed together must not come back together.
        backoff: float = self.first_s * 2.0 ** (tried - 1) * random.uniform(0.5, 1.0)
        asked = None if answer is None else retry_after_s(answer.headers.get("retry-after"))
        return min(self.longest_s, max(backoff, asked or 0.0))


def retry_after_s(text: str | None) -> float | None:
    """Seconds, or a date.

    >>> retry_after_s("2")
    2.0
    >>> retry_after_s("Wed, 21 Oct 2015 07:28:00 GMT")
    0.0
    >>> retry_after_s("soon")
    """
    if text is None:
        return None
    try:
        return max(0.0, float(int(text)))
    except ValueError:
        pass
    try:
        when = parsedate_to_datetime(text)
    except ValueError:
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())
