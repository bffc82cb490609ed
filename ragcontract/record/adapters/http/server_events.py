"""Answers that a service streams as events (text/event-stream, section 9.2 of the HTML standard), read once whole."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jmespath.exceptions import JMESPathError
from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.text import shorten
from ragcontract.http.refusals import reason_in
from ragcontract.http.sending import Answered
from ragcontract.record.interface import CallFailed
from ragcontract.record.returned.decoded_json import decoded_json

EVENT_STREAM = "text/event-stream"
LAST = "[DONE]"  # what OpenAI's API sends last


class _Event(Struct, frozen=True):
    name: str
    data: str


def read_stream(answered: Answered, text_of: Callable[[Any], Any], end: str | None = None) -> Any:
    """Return the decoded JSON of an answer, or of a stream its ``events`` and their ``text``.

    ``text_of`` returns the text in the data of an event, ``end`` is the data of the last event. Raises ValueError for
    what is no JSON, and CallFailed for a stream that says an error, is cut off, or has something else than text.
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
    """Raise CallFailed for an event that says an error: by its name, its type, or a field ``error``."""
    fields = content if isinstance(content, Mapping) else {}
    if "error" in (event.name, fields.get("type")) or fields.get("error"):
        reason = reason_in(content) or event.data
        raise CallFailed("service_error", f"the service answered with an error: {reason}")


def _is_nothing(value: Any) -> bool:
    """Return whether a value is what an expression finds in an event that has no text."""
    return value is None or value is False or value in ([], {})


def _events(stream: str) -> Iterator[_Event]:
    """Yield the events that have data: the rest of its lines that begin with ``data:``."""
    for event in re.split(r"\r\n\r\n|\n\n|\r\r", stream):
        lines = [line.partition(":") for line in re.split(r"\r\n|\n|\r", event)]
        data = "\n".join(value.removeprefix(" ") for field, colon, value in lines if field == "data" and colon)
        names = [value.strip() for field, _, value in lines if field == "event"]
        if data.strip():
            yield _Event(name=names[-1] if names else "", data=data)
