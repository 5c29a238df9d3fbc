"""Log lines, for people or as JSON, with the id of the request they belong to."""

from __future__ import annotations

import json
import logging
import math
import sys
import time
from collections import Counter
from contextvars import ContextVar

from service.settings import Settings

WHILE_S = 10.0
LINES = 20

request_id_now: ContextVar[bytes] = ContextVar("request_id", default=b"")


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": self.formatTime(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if request_id := request_id_now.get():
            line["request_id"] = request_id.decode("ascii")
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802
        whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        return f"{whole}.{int(record.msecs):03d}Z"


class TextLines(JsonLines):
    def format(self, record: logging.LogRecord) -> str:
        request_id = request_id_now.get()
        line = f"{self.formatTime(record)} {record.levelname.lower():7} {record.getMessage()}"
        if request_id:
            line += f"  [{request_id.decode('ascii')}]"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


class Flood(logging.Filter):
    """Warnings and errors of one kind, some in every while; the next tells how many were left out.

    While a store is away every reward fails alike: its first lines, which say why, must not be
    pushed out of a log of limited size.
    """

    def __init__(self) -> None:
        super().__init__()
        self._began: dict[tuple[str, str], float] = {}
        self._seen: Counter[tuple[str, str]] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        kind = (record.name, str(record.msg))  # before its arguments are put in
        if record.created - self._began.get(kind, -math.inf) >= WHILE_S:
            left_out = self._seen[kind] - LINES
            self._began[kind], self._seen[kind] = record.created, 0
            if left_out > 0:
                record.msg = f"{record.getMessage()}  (and {left_out:,} like it before)"
                record.args = ()
        self._seen[kind] += 1
        return self._seen[kind] <= LINES


def configure(settings: Settings) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(Flood())
    handler.setFormatter(JsonLines() if settings.log_format == "json" else TextLines())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(settings.log_level.upper())
    # The server tells of every start and stop; so do we, once for all workers.
    logging.getLogger("uvicorn.error").setLevel(
        max(logging.WARNING, logging.getLevelName(settings.log_level.upper()))
    )
    logging.getLogger("numba").setLevel(logging.WARNING)
