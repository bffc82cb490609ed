"""Calls to a team service: its address and its key, retries, a time limit for all calls, and what a refusal means.

Address and key come from an option and the environment, never from a file, which a pull request could change so that
the key is sent elsewhere.
"""

import json
import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.safe_text import clipped
from ragcontract.github.context import SERVICE_KEY as KEY
from ragcontract.history.interface import ConflictError, NotReachableError, RefusedError
from ragcontract.net.pacing import Timing, asked_pause, backoff
from ragcontract.net.secrets import Redaction
from ragcontract.net.sending import HttpAnswer, HttpCall, Unanswered, has_credentials, is_url, reason_in, send
from ragcontract.net.sessions import is_this_machine, open_session

READ, RECORD = "read", "record"  # the scopes of keys
MAKE_KEY = f"`rag-contract service token add NAME --scope {READ} --scope {RECORD}` makes one"
API = "/api/v1"
PASSING = {"connect_timeout", "unreachable", "proxy_error", "connection_lost", "read_timeout"}
PASSING_STATUSES = {408, 425, 429}
CREATED, NOT_FOUND, CONFLICT, SERVER_ERROR = 201, 404, 409, 500
log = logging.getLogger(__name__)

T = TypeVar("T")


class NotThereError(InputError):
    """The service has no such thing, or does not show it with this key."""


def service_address(name: str) -> str:
    """Return the address of a service without a slash at its end; raises InputError, which quotes no password."""
    if not is_url(name):
        raise InputError([f"{_origin(name)}: is not an address such as https://rag.example.com"])
    if has_credentials(name):
        raise InputError([f"{_origin(name)}: has a user name or a password in it; give the key in {KEY}"])
    if "?" in name or "#" in name:
        raise InputError([f"{_origin(name)}: paths are added to the address; leave out what begins with ? or #"])
    parts = urlsplit(name)
    if parts.scheme == "http" and not is_this_machine(parts.hostname or ""):
        raise InputError([f"{_origin(name)}: would get the key without encryption; use https://"])
    return name.rstrip("/").removesuffix(API)


def check_key(key: str) -> None:
    """Raise InputError if a text cannot be a key of a team service; NotReachableError if it is empty."""
    if not key:
        raise NotReachableError([f"history: the team service needs a key; set {KEY}; {MAKE_KEY}"])
    if not re.fullmatch(r"rc_[A-Za-z0-9_-]{8}_[A-Za-z0-9_-]{43}", key):
        raise InputError([f"history: {KEY} is not a key of a team service, or not all of one; {MAKE_KEY}"])


def _origin(name: str) -> str:
    """Return an address for a message, without what may be secret in it."""
    scheme, _, rest = name.partition("://")
    host = re.split(r"[/?#\\]", rest.rpartition("@")[2])[0]
    return clipped(f"{scheme}://{host}", bounds.VALUE)


class _Problem(Struct, frozen=True):
    """A problem of RFC 9457."""

    status: int
    detail: str = ""
    problems: list[str] = []


class ServiceCalls:
    """Sends calls one after the other, all within ``seconds`` from now. Each may be repeated without harm.

    Redirects are not followed, so that the key is not sent to another host.
    """

    def __init__(self, address: str, key: str, *, name: str, seconds: float, timing: Timing) -> None:
        self._url = f"{address}{API}"
        self._name = name
        self._headers = {"Authorization": f"Bearer {key}"}
        self._session = open_session(address, at_once=1)
        self._redact = Redaction(key)
        self._timing = timing
        self.allow(seconds)

    def allow(self, seconds: float) -> None:
        """Let the calls from now on take at most so many seconds together."""
        self._seconds = seconds
        self._end = self._timing.monotonic() + seconds

    def get(self, path: str, kind: type[T], query: Mapping[str, str | Sequence[str]] = {}) -> T:
        """Return what is at a path, checked to be of this kind; raises NotThereError, or InputError."""
        return self._read(self._answer(HttpCall(method="GET", url=f"{self._url}{path}", query=query), READ), kind)

    def content(self, path: str) -> bytes:
        """Return the bytes at a path; raises NotThereError, or InputError."""
        return self._answer(HttpCall(method="GET", url=f"{self._url}{path}"), READ).content

    def put(self, path: str, content: bytes, query: Mapping[str, str]) -> None:
        """Store content at a path; raises InputError."""
        self._answer(self._sending("PUT", path, content, query, "application/octet-stream"), RECORD)

    def post(self, path: str, content: bytes, query: Mapping[str, str], kind: type[T]) -> tuple[T, bool]:
        """Send JSON, and return the answer, and whether it made something; raises ConflictError, or InputError."""
        answered = self._answer(self._sending("POST", path, content, query, "application/json"), RECORD)
        return self._read(answered, kind), answered.status == CREATED

    def _sending(self, method: str, path: str, content: bytes, query: Mapping[str, str], media_type: str) -> HttpCall:
        headers = {"Content-Type": media_type}
        return HttpCall(method=method, url=f"{self._url}{path}", query=query, content=content, headers=headers)

    def _read(self, answered: HttpAnswer, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(answered.content, type=kind)
        except (ValueError, RecursionError) as error:
            raise self._wrong(f"its answer is not that of a team service ({self._short(str(error))})") from None

    def _answer(self, call: HttpCall, scope: str) -> HttpAnswer:
        """Return a successful answer, after as many tries as there is time for."""
        for attempt in range(1, bounds.TRIES + 1):
            try:
                answered = self._once(call)
            except Unanswered as error:
                problem, advice = f"{error}", UNANSWERED.get(error.kind, "")
                if error.kind not in PASSING:
                    raise self._wrong(f"{problem}{advice}") from None
                asked = None
            else:
                if answered.is_success:
                    return answered
                problem, advice = self._refusal(answered, scope), ""
                asked = asked_pause(answered.headers, self._timing.now())
            if attempt < bounds.TRIES:
                self._wait((asked or 0.0) + backoff(attempt), problem)  # those that were refused together part
        raise self._wrong(f"{problem}, {bounds.TRIES} times{advice}")

    def _once(self, call: HttpCall) -> HttpAnswer:
        left = self._end - self._timing.monotonic()
        if left <= 0:
            raise self._wrong(f"did not answer within {self._seconds:g} seconds")
        call = msgspec.structs.replace(call, headers={**call.headers, **self._headers})
        try:
            answered = send(self._session, call, seconds=left, connect_seconds=bounds.CONNECT, read_seconds=bounds.READ)
        except OSError as error:  # such as a file of certificates that does not exist
            raise self._wrong(f"cannot be called from this machine: {self._short(str(error))}") from None
        log.debug("%s %s: %d", call.method, call.url, answered.status)
        return answered

    def _wait(self, seconds: float, problem: str) -> None:
        """Wait before another try; raises InputError if no time would be left for it."""
        if self._timing.monotonic() + seconds >= self._end:
            raise self._wrong(f"{problem}; the next try would come after the {self._seconds:g} seconds that there are")
        self._timing.sleep(seconds)

    def _refusal(self, answered: HttpAnswer, scope: str) -> str:
        """Return why another try may succeed where this one did not; raises InputError if it would be refused, too."""
        status, content = answered.status, _decoded(answered)
        problem = _problem_in(content)
        reason = self._short(reason_in(content) or answered.reason or "no reason given")
        refused = f"answered {status}: {reason}"
        if status in PASSING_STATUSES or status >= SERVER_ERROR:
            return refused
        if status == NOT_FOUND and problem is not None:
            which = f"{refused}; is the address right, and is the key in {KEY} for this project?"
            raise NotThereError([f"{self._name}: {which}"])
        problems = [self._short(text) for text in (problem.problems[: bounds.PROBLEMS] if problem else ())]
        if status == CONFLICT:
            raise ConflictError(problems or [reason])
        if problems and status not in ADVICE:
            raise RefusedError([f"{self._name}: refused what was sent: {text}" for text in problems])
        raise self._wrong(refused + ADVICE.get(status, "").format(scope=scope))

    def _short(self, text: str) -> str:
        return clipped(self._redact.text(text), bounds.MESSAGE)

    def _wrong(self, problem: str) -> InputError:
        return InputError([f"{self._name}: {problem}"])


def _decoded(answered: HttpAnswer) -> Any:
    """Return the JSON of an answer; None if it is none."""
    try:
        return json.loads(answered.content)
    except (ValueError, RecursionError):
        return None


def _problem_in(content: Any) -> _Problem | None:
    """Return the problem in the content of a refusal; None if it has another form, so that no service wrote it."""
    try:
        return msgspec.convert(content, _Problem)
    except msgspec.ValidationError:
        return None


# What to do about no answer, by its kind
UNANSWERED = {
    "unreachable": "; check the address, and that the service runs",
    "tls_error": " REQUESTS_CA_BUNDLE names a file with the certificates of your own authority",
}
_NO_SERVICE = "; is a team service at this address?"
_ELSEWHERE = "; it leads elsewhere, which is not followed: name the address of the service itself"
# What to do about an answer, by its status
ADVICE = {
    **dict.fromkeys((301, 302, 303, 307, 308), _ELSEWHERE),
    401: f"; was the key in {KEY} revoked, has it expired, or is it of another service? {MAKE_KEY}",
    403: f"; the key in {KEY} needs the scope {{scope}}; {MAKE_KEY}",
    404: _NO_SERVICE,
    405: _NO_SERVICE,
    413: "; the service, or a proxy before it, takes no content of this size",
}
