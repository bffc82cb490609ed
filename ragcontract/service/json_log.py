"""The log of the service and its workers: a line of JSON for each record, to standard error."""

import logging
import time
from contextvars import ContextVar
from typing import Any

import msgspec

REQUEST: ContextVar[str | None] = ContextVar("request", default=None)  # the id of the one that is being answered


class JsonLines(logging.Formatter):
    """Formats a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created)),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            "request": REQUEST.get(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()


def log_json() -> None:
    """Log to standard error from now on, a line of JSON each."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    logging.getLogger().addHandler(handler)
    logging.getLogger("ragcontract").setLevel(logging.INFO)
