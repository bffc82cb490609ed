"""Ask a search or a chatbot that answers over HTTP: with JSON, or with a stream of events.

Streams (text/event-stream, section 9.2 of the HTML standard) are read after their end.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any

from jmespath.exceptions import JMESPathError
from msgspec import UNSET, Meta, Struct
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.safe_text import shorten
from ragcontract.net.sending import HttpAnswer, HttpCall, header, header_problems, reason_in, shown, url_problems
from ragcontract.record.adapters.process_serve import response_in
from ragcontract.record.adapters.service_client import (
    AnswerMapping,
    EmptyResults,
    Fields,
    ProxyOption,
    ServiceClient,
    Text,
    keys_in,
    searching,
)
from ragcontract.record.adapters.templates import SAME, Template, values_of
from ragcontract.record.interface import CallFailed, Context, DocIdExpression, Response, Surroundings, System
from ragcontract.record.returned.result_forms import DocumentIds
from ragcontract.record.returned.returned_messages import decoded_json

CONCURRENCY = 8
METHODS = {"GET", "POST", "PUT", "PATCH"}


class HttpOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A service that gets one call a question; texts may have placeholders such as `{query}` and `{top}`."""

    url: Annotated[Text, Meta(description="The address, without placeholders.")]
    method: Annotated[str | None, Meta(description="GET, or POST where there is a body, unless it says so.")] = None
    headers: Annotated[dict[str, Text], Meta(description="Headers; the place for secrets.")] = {}
    query: Annotated[dict[str, Any], Meta(description="What goes behind the address: `?name=value`.")] = {}
    json: Annotated[Any, Meta(description="The body, as JSON.")] = None
    form: Annotated[dict[str, Any] | None, Meta(description="The body, as a form.")] = None
    response: Annotated[
        Fields | None, Meta(description="Where the fields of a row are in the answer; without it, it is a row itself.")
    ] = None
    empty_results: Annotated[
        EmptyResults,
        Meta(description="What null or absent results mean: an error, or none found."),
    ] = "error"
    sse: Annotated[
        str | None,
        Meta(description="Where the text is in each event of a streamed answer; `response` finds `text` and `events`."),
    ] = None
    sse_end: Annotated[
        str | None,
        Meta(
            description="The data of the last event, as `[DONE]`; a streamed answer without it was cut off, and fails."
        ),
    ] = None
    trust_env: ProxyOption = "auto"
    doc_id: DocIdExpression = None


OPTIONS = HttpOptions


def system(options: HttpOptions, surroundings: Surroundings) -> "HttpService":
    """Return the service; raises InputError with everything that is wrong with the options."""
    return HttpService(options, surroundings)


class HttpService(System):
    """A service that is asked with one call per question."""

    concurrency = CONCURRENCY

    def __init__(self, options: HttpOptions, surroundings: Surroundings) -> None:
        self._url = options.url
        self._method = (options.method or ("GET" if options.json is None and options.form is None else "POST")).upper()
        sent = {name: getattr(options, name) for name in ("headers", "query", "json", "form")}
        self._sent = Template(sent, surroundings.secrets, at="http")
        self._ids = DocumentIds(surroundings.doc_id or options.doc_id)
        self._empty = options.empty_results
        self._text_of = None if options.sse is None else searching(options.sse)
        self._end = options.sse_end
        fields = Fields(answer="text") if options.response is None and options.sse is not None else options.response
        self._mapping = None if fields is None else AnswerMapping(fields, doc_ids=self._ids, empty=self._empty)
        problems = [
            *url_problems("http.url", options.url),
            *self._problems(options),
            *self._sent.problems,
            *([f"http: {SAME}"] if self._sent.is_the_same else []),
            *([f"http.sse: {self._text_of}"] if isinstance(self._text_of, str) else []),
            *([] if self._mapping is None else [f"http.{problem}" for problem in self._mapping.problems]),
        ]
        if problems:
            raise InputError(problems)
        self._service = ServiceClient(options.url, trust_env=options.trust_env, surroundings=surroundings)

    def _problems(self, options: HttpOptions) -> list[str]:
        problems = header_problems("http.headers", options.headers)
        if self._method not in METHODS:
            problems.append(f"http.method: expected one of {', '.join(sorted(METHODS))}, found {options.method!r}")
        if options.sse_end is not None and options.sse is None:
            problems.append("http.sse_end: is for `sse`, which is missing; add it, or remove this")
        if options.json is not None and options.form is not None:
            problems.append("http: `json` and `form` are both the body; remove one of them")
        return problems

    def setup(self) -> None:
        """Do nothing: a connection is made with the first question."""

    def ask(self, query: str, context: Context) -> Response:
        sent = self._sent.filled(values_of(query, context))
        headers = {name: header(text) for name, text in sent["headers"].items()}
        if context.traceparent and "traceparent" not in {name.lower() for name in headers}:
            headers["traceparent"] = context.traceparent.encode()
        call = HttpCall(
            method=self._method,
            url=self._url,
            headers=headers,
            query=_fields(sent["query"]),
            json=sent["json"],
            form=None if sent["form"] is None else _fields(sent["form"]),
        )
        content, answered = self._service.json(call, context.seconds, decode=self._decoded)
        try:
            return self._as_row(content) if self._mapping is None else self._mapping.response(content)
        except CallFailed as failure:
            raise CallFailed(failure.kind, str(failure), detail=self._service.detail(answered)) from None

    def _as_row(self, content: Any) -> Response:
        """Return the response for an answer in any of the forms that a function may return."""
        try:
            response = response_in(content, self._ids)
        except InputError as error:
            problem = f"{'; '.join(error.problems)}; if fields have other names, say so under `response`"
            raise CallFailed("bad_answer", problem) from None
        if response.results is None and response.response is UNSET and response.messages is None:
            if self._empty == "error":
                raise CallFailed(
                    "no_results", f"there are neither results nor a response; there are: {keys_in(content)}"
                )
            return replace(response, results=[])
        return response

    def _decoded(self, answered: HttpAnswer) -> Any:
        if self._text_of is None or isinstance(self._text_of, str):
            return decoded_json(answered.content)
        return read_stream(answered, self._text_of, self._end)

    def facts(self) -> Mapping[str, Any]:
        return {"url": shown(self._url), "method": self._method}

    def teardown(self) -> None:
        self._service.close()


def _fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a form: a list repeats the field, an object becomes JSON, and null is left out."""

    def text(value: Any) -> str:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    return {
        name: [text(item) for item in value] if isinstance(value, list) and _flat(value) else text(value)
        for name, value in values.items()
        if value is not None
    }


def _flat(values: list[Any]) -> bool:
    return not any(isinstance(value, list | dict) for value in values)


EVENT_STREAM = "text/event-stream"
LAST = "[DONE]"  # what OpenAI's API sends last
KINDS = ("type", "event")  # where the data of an event says what kind of event it is
ERRORS = {"error", "failed", "response.failed", "run_error", "thread.run.failed"}


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
    events: list[Any] = []
    for event in sent:
        is_read = event.data.strip() not in {"", LAST, end}
        if _names_error(event.name):
            raise _error(event.data if is_read else "", _content(event))
        if is_read:
            content = decoded_json(event.data)
            if _is_error(content):
                raise _error(event.data, content)
            events.append(content)
    if end is not None and not any(event.data.strip() == end for event in sent):
        raise CallFailed("bad_answer", f"http.sse_end: the stream ended without {end!r}, so the answer was cut off")
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


def _names_error(name: Any) -> bool:
    return isinstance(name, str) and name.casefold() in ERRORS


def _is_error(content: Any) -> bool:
    """Return whether the data of an event says an error, by its kind or a field ``error``."""
    fields = content if isinstance(content, Mapping) else {}
    inner = fields.get("response")  # as in OpenAI's Responses API
    is_failed = isinstance(inner, Mapping) and bool(inner.get("error"))
    return is_failed or bool(fields.get("error")) or any(_names_error(fields.get(name)) for name in KINDS)


def _content(event: _Event) -> Any:
    try:
        return decoded_json(event.data)
    except ValueError:
        return None


def _error(data: str, content: Any) -> CallFailed:
    inner = content.get("response") if isinstance(content, Mapping) else None
    reason = reason_in(content) or reason_in(inner) or data.strip() or "it gives no reason"
    return CallFailed("service_error", f"the service answered with an error: {reason}")


def _is_nothing(value: Any) -> bool:
    """Return whether a value is what an expression finds in an event without text."""
    return value is None or value is False or value in ([], {})


def _events(stream: str) -> Iterator[_Event]:
    """Yield the events that have a name, or data, which is in the lines that begin with ``data:``."""
    for event in re.split(r"\r\n\r\n|\n\n|\r\r", stream):
        lines = [line.partition(":") for line in re.split(r"\r\n|\n|\r", event)]
        if strange := next((field for field, _, _ in lines if field.lstrip().startswith("{")), ""):
            line = shorten(strange, bounds.VALUE)
            raise CallFailed("bad_answer", f"the stream has JSON in a line that is not `data:`, which begins {line!r}")
        data = "\n".join(value.removeprefix(" ") for field, colon, value in lines if field == "data" and colon)
        names = [value.strip() for field, _, value in lines if field == "event"]
        if data.strip() or names:
            yield _Event(name=names[-1] if names else "", data=data)
