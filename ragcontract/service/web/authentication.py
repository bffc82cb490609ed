"""Finds out who sends a request, before any route is called, and keeps out who may not use the route."""

import time
from typing import Any

from litestar import Request
from litestar.connection import ASGIConnection
from litestar.di import NamedDependency
from litestar.handlers import BaseRouteHandler
from litestar.middleware import AbstractAuthenticationMiddleware, AuthenticationResult

from ragcontract.service.access import OPEN, Access, Principal
from ragcontract.service.accounts import principal_of_key
from ragcontract.service.database import Database
from ragcontract.service.trends import Trends
from ragcontract.service.web.problem_details import ProblemError

BEARER = "bearer "
Asker = NamedDependency[Principal]  # who sent the request, for a handler
Db = NamedDependency[Database]
Background = NamedDependency[Trends]


def now_ms() -> int:
    """Return the time, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class Authentication(AbstractAuthenticationMiddleware):
    """Sets ``request.user`` to the :class:`Principal` of the key; None without one."""

    async def authenticate_request(self, connection: ASGIConnection[Any, Any, Any, Any]) -> AuthenticationResult:
        """Look the key up."""
        value = connection.headers.get("authorization", "")
        principal = None
        if value.lower().startswith(BEARER):
            database: Database = connection.app.state["database"]
            with database.read() as reading:
                principal = principal_of_key(reading, value[len(BEARER) :].strip(), now_ms())
            if principal is None:
                raise ProblemError(401, "the key is not valid")
        return AuthenticationResult(user=principal, auth=None)


def guard(connection: ASGIConnection[Any, Any, Any, Any], route_handler: BaseRouteHandler) -> None:
    """Let through who may use a route; a route that does not say who may is for nobody."""
    access = route_handler.opt.get("access")
    if access == OPEN:
        return
    principal: Principal | None = connection.user
    if principal is None:
        raise ProblemError(401, "this needs a key")
    if not isinstance(access, Access) or not principal.may(access):
        raise ProblemError(403, "the key may not do this")


def principal_of(request: Request[Principal, Any, Any]) -> Principal:
    """Return who sent a request."""
    return request.user
