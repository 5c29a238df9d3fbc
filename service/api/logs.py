"""Log lines, for people or as JSON, with the id of the request they belong to."""

from __future__ import annotations

import json
import logging
import sys
import time
from contextvars import ContextVar

from service.settings import Settings

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


def configure(settings: Settings) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if settings.log_format == "json" else TextLines())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(settings.log_level.upper())
    # The server tells of every start and stop; so do we, once for all workers.
    logging.getLogger("uvicorn.error").setLevel(
        max(logging.WARNING, logging.getLevelName(settings.log_level.upper()))
    )
    logging.getLogger("numba").setLevel(logging.WARNING)
