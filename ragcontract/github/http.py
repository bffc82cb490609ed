"""HTTP calls with retries by GitHub's rules, and a time limit for all calls together.

The rules are those of GitHub's documentation: "Best practices for using the REST API", "Rate limits for the REST API".
"""

import json
import logging
from collections.abc import Callable
from typing import Any

import requests
from msgspec import Struct
from requests.auth import AuthBase

from ragcontract.core import bounds
from ragcontract.core.text import clipped
from ragcontract.github.context import Token, at
from ragcontract.github.failure import GitHubError
from ragcontract.http.pauses import backoff, number, seconds_in
from ragcontract.http.redaction import Redaction
from ragcontract.http.sending import Answered, Call, Unanswered, send
from ragcontract.http.sessions import prepare
from ragcontract.http.timing import Timing

API_VERSION = "2022-11-28"
# "Resource not accessible by integration" (or "by personal access token"), "Must have admin rights to Repository."
DENIALS = ("not accessible", "must have", "permission")
NO_JSON = object()
log = logging.getLogger(__name__)


class _TokenAuth(AuthBase):
    """Sets the Authorization header."""

    def __init__(self, token: Token) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token.value}"
        return request


class Answer(Struct, frozen=True, kw_only=True):
    """The decoded content of an answer (None if it is empty), and the URL of its next page (empty if it has none).

    The token is in neither of them.
    """

    content: Any
    next_page: str


class Http:
    """Sends calls one after the other, with retries by GitHub's rules, all within ``seconds`` from its creation."""

    def __init__(self, session: requests.Session, token: Token, *, seconds: float, timing: Timing) -> None:
        """Configure the session; redirects are not followed, so that the token is not sent to another host."""
        prepare(session, auth=_TokenAuth(token))
        session.headers.update({"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": API_VERSION})
        self._session = session
        self._redact = Redaction(token.value)
        self._timing = timing
        self._seconds = seconds
        self._end = timing.monotonic() + seconds

    def call(
        self,
        method: str,
        url: str,
        *,
        body: Any = None,
        problem_with: Callable[[Any], str] = lambda _content: "",
        repeatable: bool = True,
        tries: int = bounds.TRIES,
    ) -> Answer:
        """Return a successful answer with the content that was asked for; raises :class:`GitHubError`.

        ``problem_with`` describes what is wrong with the content, if anything is. Such an answer, or a page of HTML, is
        treated as a server error. A call that is not ``repeatable`` is sent only once. Where it could be retried, the
        error is raised after the wait with ``try_again`` set, so that the caller can check first whether the call was
        carried out.
        """
        attempt = 0
        while True:
            attempt += 1
            try:
                return self._once(method, url, body, problem_with, attempt)
            except GitHubError as failure:
                if failure.retry_after is None or attempt >= tries:
                    raise
                self._wait(failure.retry_after, failure)
                if not repeatable:
                    failure.try_again = True
                    raise

    def _once(self, method: str, url: str, body: Any, problem_with: Callable[[Any], str], attempt: int) -> Answer:
        answered = self._send(method, url, body, attempt)
        log.debug("%s %s: %d", method, self._redact.text(url), answered.status)
        try:
            content = self._redact.json(json.loads(answered.content)) if answered.content else None
        except (ValueError, RecursionError):
            content = NO_JSON
        if answered.status >= 300:  # noqa: PLR2004 (redirects are failures too)
            raise self._failure(answered, content, attempt)
        if problem := "is not JSON" if content is NO_JSON else problem_with(content):
            raise self._unexpected(f"GitHub's answer {problem}", answered, content, attempt)
        return Answer(content=content, next_page=self._redact.text(answered.next_page))

    def _send(self, method: str, url: str, body: Any, attempt: int) -> Answered:
        left = self._end - self._timing.monotonic()
        if left <= 0:
            raise GitHubError(f"GitHub did not answer within the {self._seconds:g} seconds of github-timeout")
        call = Call(method=method, url=url, json=body)
        try:
            return send(self._session, call, seconds=left, connect_seconds=bounds.CONNECT, read_seconds=bounds.READ)
        except Unanswered as error:
            if error.kind == "too_large":
                raise GitHubError(f"GitHub answered, but {error}", maybe_done=True) from error
            message = f"GitHub could not be reached ({error.name})"
            raise GitHubError(message, maybe_done=not error.unsent, retry_after=backoff(attempt)) from error

    def _wait(self, seconds: float, failure: GitHubError) -> None:
        if self._timing.monotonic() + seconds >= self._end:
            message = (
                f"{failure}; the next try would come after the {self._seconds:g} seconds that github-timeout allows"
            )
            raise GitHubError(message, status=failure.status, maybe_done=failure.maybe_done)
        self._timing.sleep(seconds)

    def _failure(self, answered: Answered, content: Any, attempt: int) -> GitHubError:
        status = answered.status
        message = _reason_in(content) or _shown(self._redact.text(answered.reason)) or "no reason given"
        pause = self._limit(answered, message, attempt)
        if pause is None and status >= 500:  # noqa: PLR2004
            pause = backoff(attempt)
        return GitHubError(
            f"GitHub answered {status}: {message}",
            status=status,
            maybe_done=status >= 500,  # noqa: PLR2004
            denied=status == 404 or (status == 403 and pause is None and _is_about_permissions(message)),  # noqa: PLR2004
            retry_after=pause,
        )

    def _unexpected(self, problem: str, answered: Answered, content: Any, attempt: int) -> GitHubError:
        reason = _reason_in(content)  # GraphQL answers 200 for its errors too
        denied = _is_about_permissions(reason)
        limit = self._limit(answered, reason, attempt)
        return GitHubError(
            f"{problem}: {reason}" if reason else problem,
            maybe_done=True,
            denied=denied,
            retry_after=None if denied else backoff(attempt) if limit is None else limit,
        )

    def _limit(self, answered: Answered, message: str, attempt: int) -> float | None:
        """Return the seconds to wait that a rate limit asks for; None if the answer is about no limit."""
        status, headers = answered.status, answered.headers
        if 300 <= status < 500 and status not in {403, 429}:  # noqa: PLR2004
            return None
        if (seconds := seconds_in(headers.get("retry-after"), self._timing.now())) is not None:
            return seconds
        if headers.get("x-ratelimit-remaining") == "0":
            reset = number(headers.get("x-ratelimit-reset"))
            if reset is not None:
                return max(reset - self._timing.now(), 0.0) + 1.0
        if status == 429 or "secondary rate limit" in message.lower():  # noqa: PLR2004
            return bounds.LIMITED_PAUSE * float(2 ** (attempt - 1))
        return None


def _is_about_permissions(message: str) -> bool:
    """Return whether a refusal is about a missing permission, not about a locked issue or an archived repository."""
    return any(denial in message.lower() for denial in DENIALS)


def _reason_in(content: Any) -> str:
    """Return the reason in the content of a failure: REST's ``message``, or GraphQL's first error; empty if none."""
    errors = at(content, "errors")
    first = errors[0] if isinstance(errors, list) and errors else None
    found = at(content, "message") or at(first, "message")
    return "" if found is None else _shown(str(found))


def _shown(text: str) -> str:
    return clipped(text, bounds.GITHUB_ANSWER)
