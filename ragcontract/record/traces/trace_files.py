"""Read spans from files: OTLP's JSON, or spans that are JSON objects of their own.

OTLP's JSON is what the collector's file exporter writes line by line, and what exporters send. The format is that of
opentelemetry-proto, "OTLP/JSON": protobuf's JSON, with ids in hexadecimal.

Spans of their own are what OpenTelemetry's ``ReadableSpan.to_json`` returns and what Phoenix exports. Phoenix has three
forms: that of its REST API, with ``context`` and flat attributes; nested attributes; and the rows of its data frame,
with columns such as ``context.trace_id`` and ``attributes.input.value``.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct, field

from ragcontract.core import bounds
from ragcontract.core.phrase import Location
from ragcontract.files.json_lines import UNDECODABLE
from ragcontract.files.json_text import check_nesting, malformed
from ragcontract.files.opening import READ_ERRORS, Progress, read_problem, read_within
from ragcontract.files.problems import Collector
from ragcontract.record.traces.retrievals import Span, SpanError, at, text_at

OTHER_SIGNALS = ("resourceMetrics", "resourceLogs", "resourceProfiles")
EXPECTED = "expected OTLP as JSON lines (resourceSpans), as the collector's file exporter writes it, or spans as JSON"


def read_spans(paths: Sequence[str], problems: Collector, progress: Progress) -> Iterator[tuple[Location, Span]]:
    """Yield the spans of files, each with its location; ``problems`` collects what is wrong with the files."""
    left = bounds.CONVERTED_SPANS
    for path in paths:
        for location, value in _values(path, problems, progress):
            try:
                spans = _spans(value)
            except SpanError as error:
                problems.problem(location, str(error))
                continue
            left -= len(spans)
            if left < 0:
                problems.problem(location, f"there are more than {bounds.CONVERTED_SPANS:,} spans; convert fewer files")
                return
            for span in spans:
                yield location, span


def _values(path: str, problems: Collector, progress: Progress) -> Iterator[tuple[Location, Any]]:
    """Yield the JSON values of a file with their locations: its lines, or the items of its one document."""
    try:
        data, _ = read_within(bounds.RESULTS, path, progress, beyond="; convert it in several parts")
    except READ_ERRORS as error:
        problems.problem(path, read_problem(error))
        return
    lines = [(number, line) for number, line in enumerate(data.splitlines(), 1) if line and not line.isspace()]
    if not lines:
        problems.problem(path, f"is empty; {EXPECTED}")
        return
    if data.lstrip().startswith(b"[") or not _is_json(lines[0][1]):
        lines = [(1, data)]
    for number, line in lines:
        try:
            check_nesting(line)
            value = msgspec.json.decode(line)
        except UNDECODABLE as error:
            within, message = malformed(line, error)
            problems.problem(Location(path, number + within - 1), message)
        else:
            listed = value.get("data") if isinstance(value, dict) and "data" in value else value
            for item in listed if isinstance(listed, list) else [listed]:
                yield Location(path, number), item


def _is_json(line: bytes) -> bool:
    try:
        check_nesting(line)
        msgspec.json.decode(line)
    except UNDECODABLE:
        return False
    return True


def _spans(value: Any) -> list[Span]:
    """Return the spans in a JSON value; raises SpanError if it has an unknown form."""
    if isinstance(value, Mapping):
        if "resourceSpans" in value:
            try:
                return list(spans_in(msgspec.convert(value, ExportRequest)))
            except msgspec.ValidationError as error:
                raise SpanError(f"is not OTLP as JSON ({error})") from error
        if any(name in value for name in OTHER_SIGNALS):
            return []
        if is_span(value):
            return [span_of(value)]
    raise SpanError(f"has no spans; {EXPECTED}")


FAILED = 2  # the status code of a span that failed; also written as its name
FAILED_NAMES = {FAILED, str(FAILED), "STATUS_CODE_ERROR", "ERROR"}


class _Value(Struct, frozen=True, rename="camel"):
    string_value: str | None = None
    bool_value: bool | None = None
    int_value: int | str | None = None
    double_value: float | str | None = None
    array_value: "_Values | None" = None
    kvlist_value: "_Pairs | None" = None
    bytes_value: str | None = None


class _Values(Struct, frozen=True):
    values: list[_Value] = []


class _Pair(Struct, frozen=True):
    key: str = ""
    value: _Value | None = None


class _Pairs(Struct, frozen=True):
    values: list[_Pair] = []


class _Status(Struct, frozen=True):
    code: int | str | None = None
    message: str | None = None


class _Span(Struct, frozen=True, rename="camel"):
    trace_id: str = ""
    span_id: str = ""
    parent_span_id: str | None = None
    name: str = ""
    start_time_unix_nano: int | str | None = None
    end_time_unix_nano: int | str | None = None
    attributes: list[_Pair] = []
    dropped_attributes_count: int | str | None = None
    status: _Status = _Status()


class _Scope(Struct, frozen=True):
    spans: list[_Span] = []


class _Resource(Struct, frozen=True, rename="camel"):
    scope_spans: list[_Scope] = []


class ExportRequest(Struct, frozen=True, rename="camel"):
    """A request of OTLP: a line of a file, or the body of a request over HTTP."""

    resource_spans: list[_Resource] = field(default_factory=list)


def spans_of(data: bytes) -> list[Span]:
    """Return the spans in a request as JSON; raises SpanError if it cannot be read."""
    try:
        check_nesting(data)
        request = msgspec.json.decode(data, type=ExportRequest)
    except (ValueError, RecursionError) as error:
        raise SpanError(f"is not OTLP as JSON ({error})") from error
    return list(spans_in(request))


def spans_in(request: ExportRequest) -> Iterator[Span]:
    """Yield the spans of a request; raises SpanError if one has no ids."""
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            yield from map(_span, scope.spans)


def _span(span: _Span) -> Span:
    if not span.trace_id or not span.span_id:
        raise SpanError("has a span without traceId or spanId")
    failed = span.status.code in FAILED_NAMES
    return Span(
        trace=span.trace_id.lower(),
        id=span.span_id.lower(),
        parent=(span.parent_span_id or "").lower(),
        name=span.name,
        start=_number(span.start_time_unix_nano),
        end=_number(span.end_time_unix_nano),
        error=(span.status.message or "it failed") if failed else None,
        dropped=_number(span.dropped_attributes_count),
        attributes={pair.key: _plain(pair.value) for pair in span.attributes},
    )


def _number(value: int | str | None) -> int:
    try:
        return int(value or 0)
    except ValueError as error:
        raise SpanError(f"has a time or a count that is not a number: {str(value)[:40]!r}") from error


def _plain(value: _Value | None) -> Any:
    """Return the value, which is in one of the fields."""
    if value is None:
        return None
    if value.array_value is not None:
        return [_plain(item) for item in value.array_value.values]
    if value.kvlist_value is not None:
        return {pair.key: _plain(pair.value) for pair in value.kvlist_value.values}
    for scalar in (value.string_value, value.bool_value, value.bytes_value):
        if scalar is not None:
            return scalar
    if value.int_value is not None:
        return _number(value.int_value)
    try:
        return None if value.double_value is None else float(value.double_value)
    except ValueError:
        return None


KIND = "openinference.span.kind"
COLUMNS = "attributes."


def is_span(value: Mapping[str, Any]) -> bool:
    """Return whether an object looks like a span rather than a request of OTLP."""
    return at(value, "context.trace_id") is not None or "trace_id" in value


def span_of(value: Mapping[str, Any]) -> Span:
    """Return the span in an object; raises SpanError if it is not a span."""
    trace = _hexadecimal(at(value, "context.trace_id") or value.get("trace_id"), "context.trace_id")
    own = _hexadecimal(at(value, "context.span_id") or value.get("span_id"), "context.span_id")
    parent = value.get("parent_id") or value.get("parent_span_id")
    attributes = value.get("attributes")
    attributes = dict(attributes) if isinstance(attributes, Mapping) else {}
    attributes |= {
        name.removeprefix(COLUMNS): attribute for name, attribute in value.items() if name.startswith(COLUMNS)
    }
    if isinstance(kind := value.get("span_kind"), str):  # Phoenix takes it out of the attributes
        attributes.setdefault(KIND, kind)
    status = value.get("status_code") or at(value, "status.status_code") or at(value, "status.code")
    message = text_at(value, "status_message", "status.description", "status.message")
    return Span(
        trace=trace,
        id=own,
        parent=_hexadecimal(parent, "parent_id") if parent else "",
        name=text_at(value, "name") or "",
        start=_nanoseconds(value.get("start_time")),
        end=_nanoseconds(value.get("end_time")),
        error=(message or "it failed") if str(status).rpartition(".")[2] == "ERROR" else None,
        attributes=attributes,
    )


def _hexadecimal(value: Any, name: str) -> str:
    if not isinstance(value, str) or not value.removeprefix("0x"):
        raise SpanError(f"{name}: expected an id of a trace or a span, as hexadecimal digits")
    return value.removeprefix("0x").lower()


def _nanoseconds(value: Any) -> int:
    """Return a time in nanoseconds: from text in ISO 8601, or from milliseconds, as pandas writes it; otherwise 0."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value * 1_000_000
    try:
        return round(datetime.fromisoformat(value).timestamp() * 1e6) * 1000 if isinstance(value, str) else 0
    except (ValueError, OverflowError):
        return 0
