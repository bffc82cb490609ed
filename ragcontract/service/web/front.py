"""Stands before the whole service: hosts, limits, who asks, and the headers of every answer, errors included.

It is outside of the routes, so that a path that leads nowhere is limited as well.
"""

import logging
from collections.abc import Collection, Mapping
from typing import Any

from litestar import Request
from litestar.concurrency import sync_to_thread
from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from ragcontract.core import bounds
from ragcontract.service.access import Principal
from ragcontract.service.accounts import note_key_use
from ragcontract.service.database import BusyError, Database
from ragcontract.service.logging_in import note_session_use
from ragcontract.service.web.authentication import Credential, credential_of, host_of, now_ms, principal_with
from ragcontract.service.web.problem_details import ProblemError, answer_to
from ragcontract.service.web.request_limits import (
    Bodies,
    Bucket,
    RequestRates,
    address_of,
    check_size_of_headers,
    network_of,
    seconds,
)

log = logging.getLogger(__name__)
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

    def __init__(self, app: ASGIApp, database: Database, allowed_hosts: Collection[str]) -> None:
        self._app = app
        self._database = database
        self._hosts = frozenset(host.lower() for host in allowed_hosts)
        self.rates = RequestRates()
        self._bodies = Bodies()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)  # there is no route for a web socket
            return
        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                extra = HEADERS if scope["scheme"] == "http" else {**HEADERS, **TRANSPORT}
                own = {name.lower() for name, _ in message["headers"]}
                added = [(name, value) for name, value in extra.items() if name not in own]
                if message["status"] in CLOSING:
                    added.append((b"connection", b"close"))
                message["headers"] = [*message["headers"], *added]
            await send(message)

        try:
            await self._answer(scope, receive, send_with_headers)
        except Exception as error:
            if started:
                raise
            request: Request[Any, Any, Any] = Request(scope)
            response = answer_to(request, error)
            await response.to_asgi_response(app=None, request=request)(scope, receive, send_with_headers)

    async def _answer(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        self._check_headers(scope)
        address = network_of(address_of(scope))
        credential = credential_of(scope)
        bucket = self.rates.admit(credential.digest if credential else None, address)
        principal = await self._identify(credential, address)
        if credential and principal and bucket is None:
            bucket = self.rates.valid(credential.digest, principal)
        scope["user"], scope["auth"] = principal, credential
        body = self._bodies.of(scope, receive, is_known=principal is not None)
        try:
            await self._app(scope, body.receive, send)
        finally:
            body.release()
        if credential and principal and bucket:
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
        """Note it after the answer was sent, so that nobody waits for it."""
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
