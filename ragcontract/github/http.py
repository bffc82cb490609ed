"""HTTP calls with retries by GitHub's rules, and a time limit for all calls together.

The rules are those of GitHub's documentation: "Best practices for using the REST API", "Rate limits for the REST API".
"""

import logging
import math
import random
from typing import Any

import requests
from requests.auth import AuthBase
from urllib3.exceptions import NewConnectionError

from ragcontract.core.text import shorten, visible
from ragcontract.core.version import __version__
from ragcontract.github.context import Token
from ragcontract.github.failure import GitHubError, Timing

API_VERSION = "2022-11-28"
CONNECT_TIMEOUT, READ_TIMEOUT = 5.0, 20.0  # seconds to connect, seconds between two bytes
SECONDARY_LIMIT_WAIT = 60.0
FIRST_BACKOFF, LONGEST_BACKOFF = 1.0, 30.0
MAX_TRIES = 6
# "Resource not accessible by integration" (or "by personal access token"), "Must have admin rights to Repository."
DENIALS = ("not accessible", "must have", "permission")
log = logging.getLogger(__name__)
JITTER = random.Random()  # noqa: S311 (not a secret; a separate instance leaves the global random state unchanged)


class _TokenAuth(AuthBase):
    """Sets the Authorization header; without it, requests would use credentials from a .netrc file."""

    def __init__(self, token: Token) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token.value}"
        return request


class Http:
    """Sends calls one after the other, with retries by GitHub's rules, all within ``seconds`` from its creation."""

    def __init__(self, session: requests.Session, token: Token, *, seconds: float, timing: Timing) -> None:
        """Configure the session; redirects are not followed, so that the token is not sent to another host."""
        session.auth = _TokenAuth(token)
        session.headers.update(
            {
                "Accept": "application/vnd.github+json",
                "User-Agent": f"rag-contract/{__version__}",
                "X-GitHub-Api-Version": API_VERSION,
            }
        )
        self._session = session
        self._timing = timing
        self._seconds = seconds
        self._end = timing.monotonic() + seconds

    def call(self, method: str, url: str, *, body: Any = None, repeatable: bool = True) -> requests.Response:
        """Return a successful response; raises :class:`GitHubError`.

        A call that is not ``repeatable`` is sent only once. Where it could be retried, the error is raised after the
        wait with ``try_again`` set, so that the caller can check first whether the call was carried out.
        """
        attempt = 0
        while True:
            attempt += 1
            try:
                response = self._send(method, url, body)
                log.debug("%s %s: %d", method, url, response.status_code)
            except (requests.ConnectTimeout, requests.exceptions.ProxyError) as error:
                failure = GitHubError(f"GitHub could not be reached ({type(error).__name__})")
                wait = _backoff(attempt)
            except requests.RequestException as error:
                received = not _refused(error)
                failure = GitHubError(f"GitHub could not be reached ({type(error).__name__})", maybe_done=received)
                wait = _backoff(attempt)
            else:
                if response.status_code < 300:  # noqa: PLR2004 (redirects are failures too)
                    return response
                retry = self._retry_after(response, attempt)
                failure = _failure(response, final=retry is None)
                if retry is None:
                    raise failure
                wait = retry
            if attempt == MAX_TRIES:
                raise failure
            self._wait(wait, failure)
            if not repeatable:
                failure.try_again = True
                raise failure

    def _send(self, method: str, url: str, body: Any) -> requests.Response:
        left = self._end - self._timing.monotonic()
        if left <= 0:
            raise GitHubError(f"GitHub did not answer within the {self._seconds:g} seconds of github-timeout")
        timeout = (min(CONNECT_TIMEOUT, left), min(READ_TIMEOUT, left))
        return self._session.request(method, url, json=body, timeout=timeout, allow_redirects=False)

    def _wait(self, seconds: float, failure: GitHubError) -> None:
        if self._timing.monotonic() + seconds >= self._end:
            message = (
                f"{failure}; the next try would come after the {self._seconds:g} seconds that github-timeout allows"
            )
            raise GitHubError(message, status=failure.status, maybe_done=failure.maybe_done)
        self._timing.sleep(seconds)

    def _retry_after(self, response: requests.Response, attempt: int) -> float | None:
        """Return how many seconds to wait before the next attempt; None if a retry would not help."""
        status, headers = response.status_code, response.headers
        if status < 500 and status not in {403, 429}:  # noqa: PLR2004
            return None
        if (seconds := _number(headers.get("retry-after"))) is not None:
            return seconds
        if status >= 500:  # noqa: PLR2004
            return _backoff(attempt)
        if headers.get("x-ratelimit-remaining") == "0":
            reset = _number(headers.get("x-ratelimit-reset"))
            if reset is not None:
                return max(reset - self._timing.now(), 0.0) + 1.0
        if status == 429 or "secondary rate limit" in _message(response).lower():  # noqa: PLR2004
            return SECONDARY_LIMIT_WAIT * float(2 ** (attempt - 1))
        return None  # a missing permission: waiting does not help


def _backoff(attempt: int) -> float:
    longest = min(FIRST_BACKOFF * float(2 ** (attempt - 1)), LONGEST_BACKOFF)
    return longest * JITTER.uniform(0.5, 1.0)


def _refused(error: requests.RequestException) -> bool:
    """Return whether the connection was never established, so that nothing was sent."""
    return any(isinstance(getattr(cause, "reason", None), NewConnectionError) for cause in error.args)


def _failure(response: requests.Response, *, final: bool) -> GitHubError:
    status = response.status_code
    return GitHubError(
        f"GitHub answered {status}: {_message(response)}",
        status=status,
        maybe_done=status >= 500,  # noqa: PLR2004
        denied=final and (status == 404 or (status == 403 and _is_about_permissions(_message(response)))),  # noqa: PLR2004
    )


def _is_about_permissions(message: str) -> bool:
    """Return whether a 403 is about a missing permission, not about a locked issue or an archived repository."""
    return any(denial in message.lower() for denial in DENIALS)


def _message(response: requests.Response) -> str:
    try:
        text = str(response.json()["message"])
    except (ValueError, KeyError, TypeError, RecursionError):
        text = response.reason or "no reason given"
    return shorten(visible(text), 200)


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return max(number, 0.0) if math.isfinite(number) else None
