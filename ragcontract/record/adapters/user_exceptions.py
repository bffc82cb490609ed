"""What an exception of a user's code says about the attempt: whether another one may succeed."""

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ragcontract.core.errors import InputError
from ragcontract.http.pauses import asked_pause
from ragcontract.http.refusals import may_succeed_later
from ragcontract.http.secrets import Secrets
from ragcontract.record.adapters.introspection import named
from ragcontract.record.adapters.user_code import described, place_of
from ragcontract.record.interface import CallFailed
from ragcontract.record.returned.plain_values import part

# Of the OSErrors, those that are the same tomorrow: the others are about connections.
_ABOUT_FILES = (FileNotFoundError, FileExistsError, PermissionError, IsADirectoryError, NotADirectoryError)
# Clients of HTTP and of models name their exceptions so, and derive few of them from Python's.
_PASSING = re.compile(r"(Timeout|Timedout|Connect|Connection|RateLimit|Unavailable|Overloaded|RemoteProtocol|Network)")
_SUFFIX = re.compile(r"(Error|Exception|Timeout)$")


def failed_attempt(error: BaseException) -> CallFailed:
    """Return the failed attempt for an exception that a user's code raised."""
    status = _status(error)
    detail: dict[str, Any] = {"type": named(error).removeprefix("builtins.")}
    if at := place_of(error):
        detail["at"] = at
    if status is not None:
        detail["status_code"] = status
    again = may_succeed_later(status) if status is not None else _is_passing(error)
    kind = "timeout" if isinstance(error, TimeoutError) and status is None else "exception"
    return CallFailed(kind, described(error), again=again, pause=_pause(error) if again else None, detail=detail)


@contextmanager
def redacting(secrets: Secrets) -> Iterator[None]:
    """Take secrets out of what a system's failures say; what they were raised from may have them, and is forgotten."""
    try:
        yield
    except CallFailed as failed:
        failed.args = (secrets.redacted(str(failed)),)
        failed.detail = secrets.redacted(failed.detail)
        raise
    except InputError as error:
        if not secrets:
            raise
        raise InputError(
            secrets.redacted(error.problems), more=error.more, warnings=secrets.redacted(error.warnings)
        ) from None


def _status(error: BaseException) -> int | None:
    """Return the status of an answer over HTTP that an exception is about."""
    found = [getattr(error, "status_code", None), part(getattr(error, "response", None), "status_code")]
    return next((one for one in found if type(one) is int), None)


def _is_passing(error: BaseException) -> bool:
    if isinstance(error, OSError):
        return not isinstance(error, _ABOUT_FILES)
    names = [cls.__name__ for cls in type(error).__mro__ if cls.__module__ != "builtins"]
    return any(_PASSING.search(name) and _SUFFIX.search(name) for name in names)


def _pause(error: BaseException) -> float | None:
    """Return how many seconds the server asked to be left alone whose answer an exception is about."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    if not isinstance(headers, Mapping):
        return None
    return asked_pause({str(name).lower(): str(value) for name, value in headers.items()}, time.time())
