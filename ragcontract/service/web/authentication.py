"""Who sends a request: a key in a header, else the cookie of a session; and the guard of all routes.

A browser sends the cookie by itself, whichever site made it send the request. So what changes something and comes with
a cookie must come from a page of the service itself; a key in a header is something that no other site can add.
"""

import re
from typing import Any

from litestar import Request
from litestar.connection import ASGIConnection
from litestar.datastructures import Cookie
from litestar.enums import ScopeType
from litestar.handlers import BaseRouteHandler
from litestar.types import HTTPScope, Scope
from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.service import accounts
from ragcontract.service.accounts import ROLES, Principal, Role, digest, principal_of_key
from ragcontract.service.audit import Author
from ragcontract.service.database import Database, now_ms
from ragcontract.service.logging_in import principal_of_session
from ragcontract.service.web.problem_details import ProblemError
from ragcontract.service.web.request_limits import address_of, check_content_type

BEARER = "bearer "
SECURE_COOKIE, LOCAL_COOKIE = "__Host-session", "session"
LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})
READING = frozenset({"GET", "HEAD", "OPTIONS"})
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?", re.ASCII)
_COOKIE = re.compile(r"[A-Za-z0-9_-]{20,100}", re.ASCII)


class Access(Struct, frozen=True, kw_only=True):
    """What a route needs: at least this role of a person, or this scope of a machine's key; None is never enough."""

    role: Role | None = None
    scope: accounts.Scope | None = None

    def admits(self, principal: Principal) -> bool:
        """Return whether somebody has what the route needs."""
        if principal.role is not None:
            return self.role is not None and ROLES.index(principal.role) >= ROLES.index(self.role)
        return self.scope is not None and self.scope in principal.scopes


READ = Access(role="viewer", scope="read")
RECORD = Access(scope="record")
INGEST = Access(scope="ingest")
EDIT = Access(role="editor")
ADMIN = Access(role="admin")
OPEN = "open"  # in place of an Access: a route for everybody
SIGNED_IN = "signed in"  # likewise: for everybody who has a key or a session


class LoginNeededError(Exception):
    """A page that needs a login; ``path`` is where the login leads to."""

    def __init__(self, scope: Scope) -> None:
        query = scope["query_string"].decode("latin-1")
        self.path = f"{scope['path']}?{query}" if query else scope["path"]
        super().__init__(self.path)


class Credential(Struct, frozen=True, kw_only=True):
    """A key, or the value of a session's cookie, which may be anybody's."""

    text: str
    is_key: bool

    @property
    def digest(self) -> str:
        """What stands for it where requests are counted."""
        return digest(self.text)


def header(scope: Scope, name: bytes) -> str | None:
    """Return the value of a header, which the front lets through at most once."""
    return next((value.decode("latin-1") for each, value in scope["headers"] if each == name), None)


def host_of(scope: Scope) -> str:
    """Return the host that a request is for, without the port; empty if that is not a host."""
    match = _HOST.fullmatch((header(scope, b"host") or "").lower())
    return match[1] if match else ""


def credential_of(scope: HTTPScope) -> Credential | None:
    """Return the key or cookie of a request; an invalid key is not replaced by a valid cookie."""
    value = header(scope, b"authorization")
    if value is not None and value.lower().startswith(BEARER):  # others are a proxy's own
        return Credential(text=value[len(BEARER) :].strip(" "), is_key=True)
    pairs = [
        pair.strip(" ").split("=", 1)
        for name, line in scope["headers"]
        if name == b"cookie"
        for pair in line.decode("latin-1").split(";")
    ]
    values = {pair[1] for pair in pairs if pair[0] == cookie_name(scope) and len(pair) == 2}  # noqa: PLR2004
    if len(values) == 1 and _COOKIE.fullmatch(cookie := values.pop()):  # of two, one was planted
        return Credential(text=cookie, is_key=False)
    return None


def principal_with(database: Database, credential: Credential, now: int) -> Principal | None:
    """Return who has a key or a session."""
    find = principal_of_key if credential.is_key else principal_of_session
    with database.read() as connection:
        return find(connection, credential.text, now)


def cookie_name(scope: Scope) -> str:
    """Return the name of the session's cookie: without TLS, browsers take the secure one from nobody.

    With its prefix, browsers take the cookie neither from another host of the domain nor for a part of the paths.
    """
    is_local = scope["scheme"] == "http" and host_of(scope) in LOCAL_HOSTS
    return LOCAL_COOKIE if is_local else SECURE_COOKIE


def session_cookie(scope: Scope, value: str) -> Cookie:
    """Return the cookie of a session; an empty value removes it."""
    name = cookie_name(scope)
    return Cookie(
        key=name,
        value=value,
        path="/",
        httponly=True,
        secure=name == SECURE_COOKIE,
        samesite="lax",
        max_age=bounds.SESSION_SECONDS if value else 0,
    )


def guard(connection: ASGIConnection[Any, Any, Any, Any], route_handler: BaseRouteHandler) -> None:
    """Admit whoever may use a route; a route that names no access is closed to all."""
    access = route_handler.opt.get("access")
    principal: Principal | None = connection.user
    if access == OPEN:
        check_origin(connection.scope, principal)
        check_content_type(connection.scope, route_handler)
        return
    if access is None:
        raise ProblemError(404, "there is nothing here")
    if principal is None:
        if route_handler.opt.get("page"):
            raise LoginNeededError(connection.scope)
        raise ProblemError(401, "send a key, as the header Authorization: Bearer rc_…")
    if access != SIGNED_IN and not (isinstance(access, Access) and access.admits(principal)):
        raise ProblemError(403, "your role or key may not do this")
    check_origin(connection.scope, principal)
    check_content_type(connection.scope, route_handler)


def check_origin(scope: Scope, principal: Principal | None) -> None:
    """Refuse what another site may have made a browser send, even without a session: it must not log anybody in."""
    if scope["type"] == ScopeType.HTTP and scope["method"] in READING:
        return
    if principal is not None and not principal.has_cookie:
        return
    site, origin = header(scope, b"sec-fetch-site"), header(scope, b"origin")
    if site is None and origin is not None:
        parts = origin.lower().partition("://")
        schemes = {"https"} if scope["scheme"] == "https" else {"https", "http"}  # a proxy may have removed TLS
        if parts[0] in schemes and parts[2] == (header(scope, b"host") or "").lower():
            return
    if site != "same-origin":
        raise ProblemError(403, "the request does not come from a page of this service")


def principal_of(request: Request[Principal, Any, Any]) -> Principal:
    """Return who sent a request."""
    return request.user


def author_of(request: Request[Principal, Any, Any]) -> Author:
    """Return who sends a request, for the audit log."""
    return Author(actor=request.user.actor, at=now_ms(), ip=address_of(request.scope))
