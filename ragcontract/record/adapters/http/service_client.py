"""Calls to a recorded service: what its answers mean for the attempt, and for the ones after it."""

from collections.abc import Callable
from typing import Any

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.text import shorten, visible
from ragcontract.http.pauses import asked_pause
from ragcontract.http.refusals import AGAIN, may_succeed_later, reason_in
from ragcontract.http.sending import Answered, Call, Unanswered, send
from ragcontract.http.sessions import TrustEnv, open_session
from ragcontract.http.timing import Timing
from ragcontract.http.urls_and_headers import shown
from ragcontract.record.interface import CallFailed, Surroundings
from ragcontract.record.returned.decoded_json import decoded_json

KEPT_OPEN = 128


def _decoded(answered: Answered) -> Any:
    return decoded_json(answered.content)


class ServiceClient:
    """A service on one host. What it answers is returned without secrets, whatever it echoes."""

    def __init__(
        self, url: str, *, trust_env: TrustEnv, surroundings: Surroundings, timing: Timing | None = None
    ) -> None:
        """Prepare for calls of addresses on the host of ``url``."""
        self._secrets = surroundings.secrets
        self._connect_seconds = surroundings.connect_seconds
        self._timing = timing or Timing()
        self._session = open_session(url, trust_env=trust_env, at_once=KEPT_OPEN)

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def json(self, call: Call, seconds: float, *, decode: Callable[[Answered], Any] = _decoded) -> tuple[Any, Answered]:
        """Return the decoded JSON of a successful answer, and that answer as it came; raises CallFailed.

        ``decode`` reads an answer that is more than JSON; it raises ValueError for what it cannot read, and CallFailed.
        """
        answered = self._answered(call, seconds)
        try:
            content = self._secrets.redacted(decode(answered))
        except CallFailed as failure:
            content = None
            if 200 <= answered.status < 300:  # noqa: PLR2004
                message = f"{shown(call.url)}: {self._short(str(failure))}"
                raise CallFailed(failure.kind, message, detail=self.detail(answered)) from None
        except (ValueError, RecursionError):
            content = None
            if 200 <= answered.status < 300:  # noqa: PLR2004
                kind = answered.headers.get("content-type") or "nothing"
                message = f"{shown(call.url)} answered {answered.status}, but not with JSON: {self._short(kind)}"
                raise CallFailed("not_json", message, detail=self.detail(answered)) from None
        if not 200 <= answered.status < 300:  # noqa: PLR2004
            raise self._refused(call, answered, content)
        return content, answered

    def detail(self, answered: Answered) -> dict[str, Any]:
        """Return what the details of a failure say of an answer."""
        text = answered.content[: 4 * bounds.SERVICE_SNIPPET].decode(errors="replace")
        return {
            "status_code": answered.status,
            "content_type": self._secrets.redacted(answered.headers.get("content-type")),
            "response_snippet": shorten(self._secrets.redacted(text), bounds.SERVICE_SNIPPET),
        }

    def _answered(self, call: Call, seconds: float) -> Answered:
        if seconds <= 0:
            raise CallFailed("read_timeout", f"{shown(call.url)}: the time of the attempt was over before this call")
        try:
            return send(
                self._session,
                call,
                seconds=seconds,
                connect_seconds=self._connect_seconds,
                redirects=bounds.SERVICE_REDIRECTS,
            )
        except Unanswered as error:
            more = "; --timeout allows more" if error.kind == "read_timeout" else ""
            raise CallFailed(error.kind, f"{shown(call.url)}: {error}{more}", again=error.kind in AGAIN) from None
        except OSError as error:
            raise InputError(
                [f"{shown(call.url)}: cannot be called from this machine: {visible(str(error))}"]
            ) from error

    def _refused(self, call: Call, answered: Answered, content: Any) -> CallFailed:
        status = answered.status
        again = may_succeed_later(status)
        pause = asked_pause(answered.headers, self._timing.now()) if again else None
        reason = reason_in(content) or answered.reason or "no reason given"
        return CallFailed(
            "http_error",
            f"{shown(call.url)} answered {status}: {self._short(reason)}",
            again=again,
            pause=pause,
            detail=self.detail(answered),
        )

    def _short(self, text: str) -> str:
        return shorten(visible(self._secrets.redacted(text)), bounds.SERVICE_REASON)


def keys_in(content: Any) -> str:
    """Return the keys of decoded JSON for a message, or what else it is."""
    if not isinstance(content, dict):
        return f"no keys, because it is {'a list' if isinstance(content, list) else 'not an object'}"
    names = [shorten(visible(name), bounds.NAME) for name in sorted(content)[: bounds.SERVICE_NAMES]]
    return ", ".join(names) or "no keys"
