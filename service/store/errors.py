"""What can go wrong between Lacuna and its store; no driver error leaves this package.

StoreError
├── BadStoreURL            the URL cannot be understood
├── StoreUnavailable       not now: try again later
│   ├── StoreLoading       the server is still reading its data from disk
│   ├── StoreReadOnly      the server is a replica and takes no writes
│   └── StoreFull          the server has no memory or disk left for writes
├── StoreDenied            the server refuses our credentials or permissions
├── ScriptMissing          the server does not know this script (any more)
└── EmbeddedServerError
    ├── NoServerFound      there is no server program to start
    ├── DataDirLocked      another process uses the data directory
    └── ServerFailed       the server ended, or did not answer, while starting
"""


class StoreError(Exception):
    """Something is wrong with the store."""


class BadStoreURL(StoreError, ValueError):
    """The URL cannot be understood."""


class StoreUnavailable(StoreError):
    """The store cannot do this now; later it may."""


class StoreLoading(StoreUnavailable):
    """The server is still reading its data from disk."""


class StoreReadOnly(StoreUnavailable):
    """The server is a replica: it takes no writes until it is promoted."""


class StoreFull(StoreUnavailable):
    """The server has no memory or disk left for writes."""


class StoreDenied(StoreError):
    """The server refuses our credentials, or does not permit the command."""


class ScriptMissing(StoreError):
    """The server does not know this script; it must be loaded (again)."""


class EmbeddedServerError(StoreError):
    """The embedded server cannot be had."""


class NoServerFound(EmbeddedServerError):
    """There is no server program to start."""


class DataDirLocked(EmbeddedServerError):
    """Another process uses the data directory."""


class ServerFailed(EmbeddedServerError):
    """The server ended, or did not answer, while it was being started."""
