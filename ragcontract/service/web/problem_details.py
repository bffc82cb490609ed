"""Answers to requests that fail, as problems of RFC 9457."""

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import msgspec
from litestar import MediaType, Request, Response
from litestar.exceptions import HTTPException, ValidationException
from litestar.params import QueryParameter
from msgspec import Struct
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.safe_text import encodable, shorten
from ragcontract.history.interface import ConflictError
from ragcontract.service.database import BusyError

MEDIA_TYPE = "application/problem+json"
UNPROCESSABLE, CONFLICT, UNAVAILABLE = 422, 409, 503
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


def answer(error: ProblemError) -> "Response[bytes]":
    """Return the answer for a failed request."""
    problem = Problem(
        title=HTTPStatus(error.status).phrase,
        status=error.status,
        detail=shorten(encodable(error.detail), bounds.MESSAGE),
        problems=[shorten(encodable(text), bounds.MESSAGE) for text in error.problems[: bounds.PROBLEMS]],
    )
    return Response(
        msgspec.json.encode(problem), status_code=error.status, media_type=MEDIA_TYPE, headers=error.headers
    )


def _of_ours(_request: "Request[Any, Any, Any]", error: ProblemError) -> "Response[bytes]":
    return answer(error)


def _conflict(_request: "Request[Any, Any, Any]", error: ConflictError) -> "Response[bytes]":
    return answer(ProblemError(CONFLICT, str(error), error.problems))


def _bad_input(_request: "Request[Any, Any, Any]", error: InputError) -> "Response[bytes]":
    return answer(ProblemError(UNPROCESSABLE, error.problems[0] if error.problems else "", error.problems))


def _busy(_request: "Request[Any, Any, Any]", error: Exception) -> "Response[bytes]":
    log.warning("not answered: %s", error)
    return answer(ProblemError(UNAVAILABLE, "the database is busy, or does not answer", retry_after=1))


def _of_database(request: "Request[Any, Any, Any]", error: DBAPIError) -> "Response[bytes]":
    unreachable = error.connection_invalidated or type(error).__name__ == "OperationalError"
    return _busy(request, error) if unreachable else _bug(request, error)


def _invalid(request: "Request[Any, Any, Any]", error: ValidationException) -> "Response[bytes]":
    extra = error.extra if isinstance(error.extra, list) else []
    problems = [f"{_sent_name(request, each)}: {each.get('message', '')}" for each in extra if isinstance(each, dict)]
    return answer(ProblemError(UNPROCESSABLE, "the request is not valid", problems or [error.detail]))


def _sent_name(request: "Request[Any, Any, Any]", problem: Mapping[str, Any]) -> str:
    """Return how a client names what is wrong; the framework names the parameter of the function."""
    key = str(problem.get("key", "body"))
    parameter = request.route_handler.parsed_fn_signature.parameters.get(key.partition(".")[0])
    definition = parameter.kwarg_definition if parameter else None
    return (isinstance(definition, QueryParameter) and definition.name) or key


def _of_framework(_request: "Request[Any, Any, Any]", error: HTTPException) -> "Response[bytes]":
    return answer(ProblemError(error.status_code, error.detail, headers=error.headers))


def _bug(_request: "Request[Any, Any, Any]", error: Exception) -> "Response[bytes]":
    log.error("a request failed", exc_info=error)
    return answer(ProblemError(HTTPStatus.INTERNAL_SERVER_ERROR, "a fault of the service, which its log describes"))


HANDLERS: dict[type[Exception] | int, Any] = {
    ProblemError: _of_ours,
    ConflictError: _conflict,
    InputError: _bad_input,
    BusyError: _busy,
    PoolTimeoutError: _busy,
    DBAPIError: _of_database,
    ValidationException: _invalid,
    HTTPException: _of_framework,
    Exception: _bug,
}
JSON = MediaType.JSON


def answer_to(request: "Request[Any, Any, Any]", error: Exception) -> "Response[bytes]":
    """Return the answer to an exception that was raised outside of a route."""
    handler = next(HANDLERS[each] for each in type(error).__mro__ if each in HANDLERS)
    response: Response[bytes] = handler(request, error)
    return response
