"""Stands before all routes: hosts, limits, who asks, the headers of every answer, and a line of the log for each.

It is outside of the routes, so that a path that leads nowhere is limited as well. No line of the log has a query, a
body or a key.
"""

import logging
import re
import time
from collections.abc import Collection, Mapping
from random import getrandbits
from typing import Any

from litestar import Request
from litestar.concurrency import sync_to_thread
from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from ragcontract.core import bounds
from ragcontract.service.accounts import Principal, note_key_use
from ragcontract.service.database import BusyError, Database, now_ms, seconds
from ragcontract.service.json_log import REQUEST
from ragcontract.service.logging_in import note_session_use
from ragcontract.service.web.authentication import Credential, credential_of, header, host_of, principal_with
from ragcontract.service.web.monitoring import Monitoring
from ragcontract.service.web.pages.problem_page import answer
from ragcontract.service.web.problem_details import ProblemError
from ragcontract.service.web.request_limits import (
    BODY,
    Bodies,
    Bucket,
    RequestRates,
    address_of,
    check_size_of_headers,
    network_of,
)

log = logging.getLogger(__name__)
PREFIX = re.compile(rb"bearer +(rc_[A-Za-z0-9]{8})_", re.IGNORECASE)  # of a key, which it names and does not reveal
NO_ANSWER = 499  # the client left before
HEALTH = frozenset({"/healthz", "/readyz"})
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
_ONCE = frozenset({b"host", b"authorization", b"content-length", b"content-type", b"origin", b"sec-fetch-site"})
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS: Mapping[bytes, bytes] = {  # where a route has not chosen another value
    b"content-security-policy": POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",
}
TRANSPORT = {b"strict-transport-security": b"max-age=31536000"}
CLOSING = frozenset({408, 413})  # the rest of the body is not waited for


class Front:
    """The ASGI application around the routes."""

    def __init__(
        self, app: ASGIApp, database: Database, allowed_hosts: Collection[str], monitoring: Monitoring
    ) -> None:
        self._app = app
        self._database = database
        self._monitoring = monitoring
        self._hosts = frozenset(host.lower() for host in allowed_hosts)
        self.rates = RequestRates()
        self._bodies = Bodies()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, and log how that ended."""
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)  # there is no route for a web socket
            return
        number, status, start = f"{getrandbits(128):032x}", NO_ANSWER, time.perf_counter()
        REQUEST.set(number)

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                extra = {**HEADERS, **(TRANSPORT if scope["scheme"] == "https" else {})}
                own = {name.lower() for name, _ in message["headers"]}
                added = [(name, value) for name, value in extra.items() if name not in own]
                if status in CLOSING:
                    added.append((b"connection", b"close"))
                message["headers"] = [*message["headers"], *added, (b"x-request-id", number.encode())]
            await send(message)

        try:
            await self._answer(scope, receive, send_with_headers)
        except Exception as error:
            if status != NO_ANSWER:
                raise
            request: Request[Any, Any, Any] = Request(scope)
            response = answer(request, error)
            await response.to_asgi_response(app=None, request=request)(scope, receive, send_with_headers)
        finally:
            key = PREFIX.match(dict(scope["headers"]).get(b"authorization", b""))
            route = scope.get("path_template")  # None where there is none: a path could be anything
            duration = time.perf_counter() - start
            self._monitoring.answered(scope["method"], route, status, duration)
            facts = {
                "method": scope["method"],
                "route": route,
                "status": status,
                "ms": round(duration * 1_000, 1),
                "key": key[1].decode() if key else None,
            }
            log.info("request", extra={"facts": facts})

    async def _answer(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        self._check_headers(scope)
        address = network_of(address_of(scope))
        credential = credential_of(scope)
        bucket = self.rates.admit(credential.digest if credential else None, address)
        principal = bucket.principal() if bucket else None
        if principal is None:
            principal = await self._identify(credential, address)
            if credential and principal:
                bucket = bucket or self.rates.valid(credential.digest, principal)
                bucket.belongs_to(principal)
        scope["user"], scope["auth"] = principal, credential
        body = self._bodies.of(scope, receive, is_known=principal is not None)
        scope[BODY] = body  # type: ignore[literal-required]
        try:
            await self._app(scope, body.receive, send)
        finally:
            body.release()
        # An open page asks again and again by itself, which does not keep its session alive.
        if credential and principal and bucket and header(scope, b"hx-request") is None:
            await self._note_use(credential, principal, bucket)

    def _check_headers(self, scope: HTTPScope) -> None:
        check_size_of_headers(scope)
        names = [name for name, _ in scope["headers"] if name in _ONCE]
        if len(names) != len({*names}):
            raise ProblemError(400, "a header is there twice")
        if {b"content-length", b"transfer-encoding"} <= {name for name, _ in scope["headers"]}:
            # A proxy may believe the other one, and take the rest of this body for the next request.
            raise ProblemError(400, "the body has two lengths", headers={"Connection": "close"})
        if scope["method"] not in METHODS:
            raise ProblemError(405, headers={"Allow": ", ".join(sorted(METHODS))})
        if scope["path"] in HEALTH:  # what asks for these may know only an address
            return
        if host_of(scope) not in self._hosts:
            raise ProblemError(400, "this host name is not allowed; name it to `serve` with --allowed-host")

    async def _identify(self, credential: Credential | None, address: str) -> Principal | None:
        if credential is None:
            return None
        principal = await sync_to_thread(principal_with, self._database, credential, now_ms())
        if principal is None:
            self.rates.invalid(credential.digest)
            if credential.is_key:
                self.rates.login_failed(address)
                raise ProblemError(401, "the key is not valid")
        return principal  # None if a session has ended: its browser can log in again

    async def _note_use(self, credential: Credential, principal: Principal, bucket: Bucket) -> None:
        """Record the use after the answer was sent, so that nobody waits for it."""
        if seconds() - bucket.noted_at < bounds.USE_NOTED:
            return
        bucket.noted_at = seconds()

        def note(connection: Connection) -> None:
            if principal.token_id is not None:
                note_key_use(connection, principal.token_id, now_ms())
            else:
                note_session_use(connection, credential.text, now_ms())

        try:
            await sync_to_thread(self._database.write, note)
        except (BusyError, SQLAlchemyError) as error:
            log.info("the use of a key was not noted: %s", type(error).__name__)
