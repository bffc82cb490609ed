"""The log of the service: a line of JSON for each request and each event. No line has a query, a body or a key."""

import logging
import re
import time
from contextvars import ContextVar
from typing import Any
from uuid import uuid4

import msgspec
from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

PREFIX = re.compile(rb"bearer +(rc_[A-Za-z0-9]{8})_", re.IGNORECASE)  # of a key, which it names and does not reveal
NO_ANSWER = 499  # the client left before
REQUEST: ContextVar[str | None] = ContextVar("request", default=None)
log = logging.getLogger(__name__)


class RequestLog:
    """Gives each request an id, which the answer has as ``X-Request-Id``, and logs how it ended."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        number, status, start = uuid4().hex, NO_ANSWER, time.perf_counter()
        REQUEST.set(number)

        async def answering(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", number.encode())]
            await send(message)

        try:
            await self._app(scope, receive, answering)
        finally:
            facts = {
                "method": scope["method"],
                "route": scope.get("path_template"),  # None where there is none: a path could be anything
                "status": status,
                "ms": round((time.perf_counter() - start) * 1_000, 1),
                "key": _prefix(dict(scope["headers"]).get(b"authorization", b"")),
            }
            log.info("request", extra={"facts": facts})


def _prefix(authorization: bytes) -> str | None:
    match = PREFIX.match(authorization)
    return match[1].decode() if match else None


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
