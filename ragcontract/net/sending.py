"""Sends one call and reads its answer, within a time and a size, and sends nothing to another host.

Addresses and headers are checked before the first call. Of a failed call, the kind of error shows whether another
attempt may succeed. A :class:`Service` answers with JSON, which is returned without secrets.
"""

import math
import re
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import SplitResult, urljoin, urlsplit

import requests
from msgspec import Struct
from msgspec.structs import replace
from urllib3.exceptions import HTTPError, NewConnectionError

from ragcontract.core import bounds
from ragcontract.core.safe_text import shorten, visible
from ragcontract.net.pacing import Timing, asked_pause
from ragcontract.net.secrets import Secrets
from ragcontract.net.sessions import Deadline, TrustEnv, open_session

HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")

# Kinds of failures after which another attempt may succeed. After others, such as a wrong key, it would fail again.
AGAIN = {"connect_timeout", "unreachable", "proxy_error", "connection_lost"}
AGAIN_STATUSES = {408, 409, 425, 429}

PIECE = 1 << 16
REDIRECTS = {301, 302, 303, 307, 308}
SEE_OTHER, KEEPS_METHOD = 303, {307, 308}
UNSENT = {"connect_timeout", "proxy_error", "unreachable"}
DEFAULT_PORTS = {"http": 80, "https": 443}


class HttpCall(Struct, frozen=True, kw_only=True):
    """A request to a server."""

    method: str
    url: str
    headers: Mapping[str, str | bytes] = {}
    query: Mapping[str, Any] = {}  # goes into the address
    json: Any = None  # the body, unless it is ``form`` or ``content``
    form: Mapping[str, Any] | None = None
    content: bytes | None = None  # sent as it is


class HttpAnswer(Struct, frozen=True, kw_only=True):
    """An answer, whatever its status."""

    status: int
    reason: str
    headers: Mapping[str, str]  # a look-up ignores case
    content: bytes
    next_page: str = ""  # the link to the next page, empty if there is none

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300  # noqa: PLR2004


class Unanswered(Exception):  # noqa: N818 (it is what happened, not a fault in how something was called)
    """There is no answer, or it is not read. The message has no address and no header in it.

    ``kind`` is one of ``connect_timeout``, ``unreachable`` (refused, or no such host), ``proxy_error``, ``tls_error``,
    ``read_timeout``, ``connection_lost``, ``too_large``, ``bad_encoding``, ``redirect`` and ``bad_request``. ``unsent``
    says that nothing was sent. ``name`` is that of the library's error.
    """

    def __init__(self, kind: str, message: str, *, unsent: bool = False, name: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.unsent = unsent
        self.name = name


def send(
    session: requests.Session,
    call: HttpCall,
    *,
    seconds: float,
    connect_seconds: float,
    read_seconds: float | None = None,
    redirects: int = 0,
    read_at_most: int | None = None,
) -> HttpAnswer:
    """Send a call and return the answer, whatever its status; raises :class:`Unanswered`.

    A wrong setting of the machine, such as a file of certificates that does not exist, raises OSError. The call ends
    after ``seconds``, or if there is no connection after ``connect_seconds``, or if nothing is received for
    ``read_seconds``. At most ``redirects`` redirects are followed, and only on the same host. Of the content,
    ``read_at_most`` bytes are read, and the rest is ignored; by default, an answer that is too large raises.
    """
    end = time.monotonic() + seconds
    read = min(seconds, math.inf if read_seconds is None else read_seconds)
    timeout = (min(connect_seconds, seconds), read if read < math.inf else None)
    with Deadline(seconds) as deadline:
        while True:
            try:
                answered = _once(session, call, timeout, read_at_most)
            except (requests.RequestException, HTTPError, ValueError, TimeoutError, ConnectionError) as error:
                raise _unanswered(error, over=deadline.over or time.monotonic() >= end) from None
            if deadline.over:  # a part of an answer may look like an answer
                raise _unanswered(TimeoutError(), over=True)
            if answered.status not in REDIRECTS or "location" not in answered.headers or not redirects:
                return answered
            call = _redirected(call, answered)
            redirects -= 1


def _once(
    session: requests.Session, call: HttpCall, timeout: tuple[float, float | None], read_at_most: int | None
) -> HttpAnswer:
    response = session.request(
        call.method,
        call.url,
        headers=dict(call.headers),
        params=dict(call.query),
        json=call.json,
        data=call.form if call.content is None else call.content,
        timeout=timeout,
        allow_redirects=False,
        stream=True,
    )
    with response:
        content = bytearray()
        for piece in response.iter_content(PIECE if read_at_most is None else read_at_most):
            content += piece
            if read_at_most is not None and len(content) >= read_at_most:
                del content[read_at_most:]
                break
            if len(content) > bounds.HTTP_ANSWER:
                raise Unanswered("too_large", f"the answer is larger than {bounds.HTTP_ANSWER >> 20} MiB")
        return HttpAnswer(
            status=response.status_code,
            reason=response.reason or "",
            headers=response.headers,
            content=bytes(content),
            next_page=response.links.get("next", {}).get("url") or "",
        )


def _redirected(call: HttpCall, answered: HttpAnswer) -> HttpCall:
    """Return the call that a redirect asks for. Another host must not get the data that is meant for this one."""
    try:
        target = urljoin(call.url, answered.headers["location"])
        before, after = urlsplit(call.url), urlsplit(target)
        upgraded = (_origin(before)[0], _origin(after)[0]) == ("http", "https") and before.port == after.port is None
        same = _origin(before) == _origin(after) or (upgraded and before.hostname == after.hostname)
    except ValueError:
        same = False
    if not same:
        raise Unanswered("redirect", f"the answer ({answered.status}) leads to another host, which is not followed")
    if answered.status == SEE_OTHER or (answered.status not in KEEPS_METHOD and call.method == "POST"):
        return HttpCall(method="GET", url=target, headers=call.headers)
    return replace(call, url=target, query={})


def _origin(url: SplitResult) -> tuple[str, str | None, int | None]:
    return url.scheme, url.hostname, url.port or DEFAULT_PORTS.get(url.scheme)


def _unanswered(error: Exception, *, over: bool) -> Unanswered:
    kind, message = _kind(error, over=over)
    return Unanswered(kind, message, unsent=kind in UNSENT, name=type(error).__name__)


def _kind(error: Exception, *, over: bool) -> tuple[str, str]:
    """Return the kind of an error and a message. The libraries' own messages may have secrets in them."""
    if isinstance(error, requests.ConnectTimeout):
        return "connect_timeout", "there was no connection in time"
    if isinstance(error, requests.exceptions.ProxyError):
        return "proxy_error", "the proxy did not connect"
    if any(isinstance(getattr(cause, "reason", None), NewConnectionError) for cause in error.args):
        return "unreachable", "the connection was refused, or there is no such host"
    if over or isinstance(error, requests.ReadTimeout):
        return "read_timeout", "the answer was not complete in time"
    if isinstance(error, requests.exceptions.SSLError):
        return "tls_error", "the connection could not be encrypted; is the certificate valid?"
    if isinstance(error, requests.exceptions.ContentDecodingError):
        return "bad_encoding", "the answer is not compressed in the way it says"
    if isinstance(error, ValueError):  # of an address or a header
        return "bad_request", "the address or a header cannot be sent"
    return "connection_lost", "the connection was lost before the answer was complete"


class Failed(Exception):  # noqa: N818 (it is what happened, not a fault in how something was called)
    """A call that failed. The message, which begins with the address, has no secret in it.

    ``kind`` is that of :class:`Unanswered`, or ``machine`` for a wrong setting of this machine, ``not_json``, or
    ``http_error`` for a refusal.
    """

    def __init__(
        self, kind: str, message: str, *, unsent: bool = False, answered: HttpAnswer | None = None, content: Any = None
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.unsent = unsent
        self.answered = answered
        self.content = content  # of a refusal, decoded; None if it is not JSON

    @property
    def may_succeed_later(self) -> bool:
        if self.answered is None:
            return self.kind in AGAIN
        return self.kind == "http_error" and may_succeed_later(self.answered.status)

    def pause(self, timing: Timing) -> float | None:
        """Return the pause that the server asks for, in seconds; None if it asks for none."""
        if self.answered is None or not self.may_succeed_later:
            return None
        return asked_pause(self.answered.headers, timing.now())


class Service:
    """A server whose answers are JSON. They are returned without secrets, in case it echoes them."""

    def __init__(
        self,
        url: str,
        *,
        secrets: Secrets,
        connect_seconds: float,
        at_once: int,
        trust_env: TrustEnv = "auto",
        redirects: int = 0,
    ) -> None:
        self._secrets = secrets
        self._connect_seconds = connect_seconds
        self._redirects = redirects
        self._session = open_session(url, trust_env=trust_env, at_once=at_once)

    def close(self) -> None:
        self._session.close()

    def json(
        self,
        call: HttpCall,
        seconds: float,
        *,
        decode: Callable[[HttpAnswer], Any],
        read_seconds: float | None = None,
    ) -> tuple[Any, HttpAnswer]:
        """Return the decoded JSON of a successful answer, and that answer as it came; raises :class:`Failed`.

        ``decode`` raises ValueError if an answer is not JSON. Times are those of :func:`send`.
        """
        answered = self._answered(call, seconds, read_seconds)
        try:
            content = self._secrets.redacted(decode(answered))
        except (ValueError, RecursionError):
            if answered.is_success:
                kind = self.short(answered.headers.get("content-type") or "nothing")
                message = f"{shown(call.url)} answered {answered.status}, but not with JSON: {kind}"
                raise Failed("not_json", message, answered=answered) from None
            content = None
        if answered.is_success:
            return content, answered
        reason = self.short(reason_in(content) or answered.reason or "no reason given")
        message = f"{shown(call.url)} answered {answered.status}: {reason}"
        raise Failed("http_error", message, answered=answered, content=content)

    def _answered(self, call: HttpCall, seconds: float, read_seconds: float | None) -> HttpAnswer:
        try:
            return send(
                self._session,
                call,
                seconds=seconds,
                connect_seconds=self._connect_seconds,
                read_seconds=read_seconds,
                redirects=self._redirects,
            )
        except Unanswered as error:
            more = "; --timeout allows more" if error.kind == "read_timeout" else ""
            raise Failed(error.kind, f"{shown(call.url)}: {error}{more}", unsent=error.unsent) from None
        except OSError as error:
            message = f"{shown(call.url)}: cannot be called from this machine: {visible(str(error))}"
            raise Failed("machine", message, unsent=True) from None

    def short(self, text: str) -> str:
        """Return a text of an answer for a message."""
        return shorten(visible(self._secrets.redacted(text)), bounds.SERVICE_REASON)


def may_succeed_later(status: int) -> bool:
    """Return whether the same call may be accepted later."""
    return status in AGAIN_STATUSES or 500 <= status < 600  # noqa: PLR2004


def reason_in(content: Any) -> str:
    """Return the reason in the content of a failure, if it has a common form; empty if there is none."""
    for name in ("error", "message", "detail", "error_description", "title"):
        reason = content.get(name) if isinstance(content, dict) else None
        if isinstance(reason, dict):
            reason = reason_in(reason)
        if isinstance(reason, str) and reason:
            return reason
    return ""


def header(text: Any) -> bytes:
    """Return the value of a header; characters that would end it become blanks."""
    return re.sub(r"[\x00-\x1f\x7f]+", " ", str(text)).strip().encode()


def header_problems(at: str, headers: Mapping[str, str]) -> list[str]:
    """Return the problems with the names of headers."""
    wrong = [name for name in headers if not HEADER_NAME.fullmatch(name)]
    return [f"{at}: {shorten(name, bounds.NAME)!r} is not the name of a header" for name in wrong]


def url_problems(at: str, url: str) -> list[str]:
    """Return the problems with an address, which is shown in messages, and which a question must not change."""
    if not is_url(url):
        address = re.sub("//[^/]*@", "//", url).partition("?")[0]
        value = shorten(address, bounds.VALUE)
        return [f"{at}: expected an address such as https://search.example/api, found {value!r}"]
    if has_credentials(url):
        return [f"{at}: has a user name or a password in it; give them as a header with ${{secret:NAME}}"]
    if "{" in url:
        return [f"{at}: has no placeholders; write them under `query`, `json`, `form` or `headers`"]
    return []


def is_url(url: str) -> bool:
    """Return whether a text is an address that can be called."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    return usable and not re.search(r"[\x00-\x20\x7f]", url)


def has_credentials(url: str) -> bool:
    """Return whether an address has a user name or a password in it."""
    parts = urlsplit(url)
    return parts.username is not None or parts.password is not None


def shown(url: str) -> str:
    """Return an address for messages, without credentials and query."""
    parts = urlsplit(url)
    return visible(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}")
