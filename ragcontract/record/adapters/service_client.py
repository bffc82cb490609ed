"""Call a recorded service, and read its answers: JSON, or a stream of events.

A failed call says whether another attempt may succeed, and when. Streams (text/event-stream, section 9.2 of the HTML
standard) are read after their end.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any

from jmespath.exceptions import JMESPathError
from msgspec import Meta, Struct

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.safe_text import shorten, visible
from ragcontract.net.pacing import Timing
from ragcontract.net.sending import Failed, HttpAnswer, HttpCall, Service, reason_in, shown
from ragcontract.net.sessions import TrustEnv
from ragcontract.record.interface import CallFailed, Surroundings
from ragcontract.record.returned.returned_messages import decoded_json

KEPT_OPEN = 128
# The types of options of targets that are services.
Text = Annotated[str, Meta(title="text; quote numbers")]
ProxyOption = Annotated[
    TrustEnv, Meta(description="Whether proxies of the environment are used; auto: except for this machine.")
]


def _decoded(answered: HttpAnswer) -> Any:
    return decoded_json(answered.content)


class ServiceClient:
    """Calls a service on one host. Its answers are returned without secrets, in case it echoes them."""

    def __init__(
        self, url: str, *, trust_env: TrustEnv, surroundings: Surroundings, timing: Timing | None = None
    ) -> None:
        self._secrets = surroundings.secrets
        self._timing = timing or Timing()
        self._service = Service(
            url,
            secrets=surroundings.secrets,
            connect_seconds=surroundings.connect_seconds,
            at_once=KEPT_OPEN,
            trust_env=trust_env,
            redirects=bounds.SERVICE_REDIRECTS,
        )
        self.close = self._service.close

    def json(
        self, call: HttpCall, seconds: float, *, decode: Callable[[HttpAnswer], Any] = _decoded
    ) -> tuple[Any, HttpAnswer]:
        """Return the decoded JSON of a successful answer, and that answer as it came; raises CallFailed.

        ``decode`` reads answers that are not plain JSON; it raises CallFailed, or ValueError if it cannot read one.
        """
        if seconds <= 0:
            raise CallFailed("read_timeout", f"{shown(call.url)}: the time of the attempt was over before this call")

        def decoded(answered: HttpAnswer) -> Any:
            try:
                return decode(answered)
            except CallFailed as failure:
                if not answered.is_success:
                    return None
                message = f"{shown(call.url)}: {self._service.short(str(failure))}"
                raise CallFailed(failure.kind, message, detail=self.detail(answered)) from None

        try:
            return self._service.json(call, seconds, decode=decoded)
        except Failed as failed:
            if failed.kind == "machine":
                raise InputError([str(failed)]) from failed
            raise CallFailed(
                failed.kind,
                str(failed),
                again=failed.may_succeed_later,
                pause=failed.pause(self._timing),
                detail=None if failed.answered is None else self.detail(failed.answered),
            ) from None

    def detail(self, answered: HttpAnswer) -> dict[str, Any]:
        text = answered.content[: 4 * bounds.SERVICE_SNIPPET].decode(errors="replace")
        return {
            "status_code": answered.status,
            "content_type": self._secrets.redacted(answered.headers.get("content-type")),
            "response_snippet": shorten(self._secrets.redacted(text), bounds.SERVICE_SNIPPET),
        }


def keys_in(content: Any) -> str:
    """Return the keys of a decoded object for a message, or say that it is not an object."""
    if not isinstance(content, dict):
        return f"no keys, because it is {'a list' if isinstance(content, list) else 'not an object'}"
    names = [shorten(visible(name), bounds.NAME) for name in sorted(content)[: bounds.SERVICE_NAMES]]
    return ", ".join(names) or "no keys"


EVENT_STREAM = "text/event-stream"
LAST = "[DONE]"  # what OpenAI's API sends last


class _Event(Struct, frozen=True):
    name: str
    data: str


def read_stream(answered: HttpAnswer, text_of: Callable[[Any], Any], end: str | None = None) -> Any:
    """Return the decoded JSON of an answer, or the ``events`` of a stream and their ``text``.

    ``text_of`` returns the text in the data of an event, ``end`` is the data of the last event. Raises ValueError for
    anything but JSON, and CallFailed for a stream that has an error, is cut off, or has something other than text.
    """
    if not answered.headers.get("content-type", "").lower().startswith(EVENT_STREAM):
        return decoded_json(answered.content)
    sent = list(_events(answered.content.decode("utf-8-sig", errors="replace")))
    if end is not None and not any(event.data.strip() == end for event in sent):
        raise CallFailed("bad_answer", f"http.sse_end: the stream ended without {end!r}, so the answer was cut off")
    read = [(event, decoded_json(event.data)) for event in sent if event.data.strip() not in {"", LAST, end}]
    for event, content in read:
        _refuse_error(event, content)
    events = [content for _, content in read]
    try:
        texts = [text_of(content) for content in events]
    except JMESPathError as error:
        raise ValueError(str(error)) from error
    for number, text in enumerate(texts):
        if not isinstance(text, str) and not _is_nothing(text):
            raise CallFailed(
                "bad_answer", f"http.sse: expected text, found {shorten(repr(text), bounds.VALUE)} in events[{number}]"
            )
    return {"text": "".join(text for text in texts if isinstance(text, str)), "events": events}


def _refuse_error(event: _Event, content: Any) -> None:
    """Raise CallFailed for an event that is an error by its name, its type or a field ``error``."""
    fields = content if isinstance(content, Mapping) else {}
    if "error" in (event.name, fields.get("type")) or fields.get("error"):
        reason = reason_in(content) or event.data
        raise CallFailed("service_error", f"the service answered with an error: {reason}")


def _is_nothing(value: Any) -> bool:
    """Return whether a value is what an expression finds in an event without text."""
    return value is None or value is False or value in ([], {})


def _events(stream: str) -> Iterator[_Event]:
    """Yield the events that have data, which is in the lines that begin with ``data:``."""
    for event in re.split(r"\r\n\r\n|\n\n|\r\r", stream):
        lines = [line.partition(":") for line in re.split(r"\r\n|\n|\r", event)]
        data = "\n".join(value.removeprefix(" ") for field, colon, value in lines if field == "data" and colon)
        names = [value.strip() for field, _, value in lines if field == "event"]
        if data.strip():
            yield _Event(name=names[-1] if names else "", data=data)
