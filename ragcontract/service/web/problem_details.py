"""Answers to requests that fail, as problems of RFC 9457."""

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException
from litestar.params import QueryParameter
from msgspec import Struct
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.safe_text import encodable, shorten
from ragcontract.history.interface import ConflictError
from ragcontract.service.database import BusyError

MEDIA_TYPE = "application/problem+json"
log = logging.getLogger(__name__)


class Problem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a request failed."""

    title: str
    status: int
    detail: str = ""
    problems: list[str] = []


class ProblemError(Exception):
    """A request that cannot be answered as it is."""

    def __init__(
        self,
        status: int,
        detail: str = "",
        problems: Sequence[str] = (),
        *,
        retry_after: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail or HTTPStatus(status).phrase)
        self.status, self.detail, self.problems = status, detail, problems
        self.headers = dict(headers or {})
        if retry_after is not None:
            self.headers["Retry-After"] = str(retry_after)
        if status == HTTPStatus.UNAUTHORIZED:
            self.headers["WWW-Authenticate"] = "Bearer"


def problem_of(request: "Request[Any, Any, Any]", error: Exception) -> ProblemError:
    """Return what a client is told of an exception; the log alone has the details of a fault of the service."""
    match error:
        case ProblemError():
            return error
        case ConflictError():
            return ProblemError(409, str(error), error.problems)
        case InputError():
            return ProblemError(422, error.problems[0] if error.problems else "", error.problems)
        case ValidationException():
            extra = error.extra if isinstance(error.extra, list) else []
            problems = [f"{_sent_name(request, each)}: {each.get('message', '')}" for each in extra]
            return ProblemError(422, "the request is not valid", problems or [error.detail])
        case HTTPException():
            return ProblemError(error.status_code, error.detail, headers=error.headers)
    is_unreachable = isinstance(error, DBAPIError) and error.connection_invalidated
    if is_unreachable or isinstance(error, BusyError | PoolTimeoutError | OperationalError):
        log.warning("not answered: %s", error)
        return ProblemError(503, "the database is busy, or does not answer", retry_after=1)
    log.error("a request failed", exc_info=error)
    return ProblemError(500, "a fault of the service, which its log describes")


def _sent_name(request: "Request[Any, Any, Any]", problem: Mapping[str, Any]) -> str:
    """Return how a client names what is wrong; the framework names the parameter of the function."""
    key = str(problem.get("key", "body"))
    parameter = request.route_handler.parsed_fn_signature.parameters.get(key.partition(".")[0])
    definition = parameter.kwarg_definition if parameter else None
    return (isinstance(definition, QueryParameter) and definition.name) or key


def answer(request: "Request[Any, Any, Any]", error: Exception) -> "Response[bytes]":
    """Return the answer to a request that failed."""
    failed = problem_of(request, error)
    problem = Problem(
        title=HTTPStatus(failed.status).phrase,
        status=failed.status,
        detail=shorten(encodable(failed.detail), bounds.MESSAGE),
        problems=[shorten(encodable(text), bounds.MESSAGE) for text in failed.problems[: bounds.PROBLEMS]],
    )
    content = msgspec.json.encode(problem)
    return Response(content, status_code=failed.status, media_type=MEDIA_TYPE, headers=failed.headers)
