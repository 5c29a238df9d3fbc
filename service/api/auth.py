"""API keys. Several may be valid at once, so that one can take another's place."""

from __future__ import annotations

import hmac
from collections.abc import Iterable

from service.errors import NotAllowed

# The pages' files hold no data. Their addresses themselves answer 401 as well, in their own way.
OPEN = ("/health/", "/page/")
ASK_THEMSELVES = ("/", "/docs")


class Keys:
    def __init__(self, keys: Iterable[str]) -> None:
        self._keys = [key.encode() for key in keys]

    def guard(self, path: str) -> bool:
        """Whether a call needs a key before anything else."""
        return bool(self._keys) and path not in ASK_THEMSELVES and not path.startswith(OPEN)

    def check(self, authorization: bytes, x_api_key: bytes) -> None:
        if not self._keys:
            return
        scheme, _, token = authorization.partition(b" ")
        bearer = token.strip() if scheme.lower() == b"bearer" else b""
        if not bearer and not x_api_key:
            raise NotAllowed("send Authorization: Bearer <key>, or X-API-Key: <key>")
        # Every key is compared with both, whichever matches: the time taken tells nothing.
        pairs = [(shown, key) for shown in (bearer, x_api_key) for key in self._keys]
        if not sum(hmac.compare_digest(shown, key) for shown, key in pairs):
            raise NotAllowed("this API key is not known")
