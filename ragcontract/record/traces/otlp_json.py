"""Spans in OTLP's JSON, as the collector's file exporter writes it line by line, and as exporters send it.

The format is that of opentelemetry-proto, "OTLP/JSON": protobuf's JSON, with ids in hexadecimal.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct, field

from ragcontract.files.nesting import check_nesting
from ragcontract.record.traces.spans import Span, SpanError

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


class Request(Struct, frozen=True, rename="camel"):
    """What is written at once: a line of a file, or the body of a request."""

    resource_spans: list[_Resource] = field(default_factory=list)


def spans_of(data: bytes) -> list[Span]:
    """Return the spans in a request as JSON; raises SpanError if it is none."""
    try:
        check_nesting(data)
        request = msgspec.json.decode(data, type=Request)
    except (ValueError, RecursionError) as error:
        raise SpanError(f"is no OTLP as JSON ({error})") from error
    return list(spans_in(request))


def spans_in(request: Request) -> Iterator[Span]:
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
        raise SpanError(f"has a time or a count that is no number: {str(value)[:40]!r}") from error


def _plain(value: _Value | None) -> Any:
    """Return the value that one of the fields has."""
    if value is None:
        return None
    if value.array_value is not None:
        return [_plain(one) for one in value.array_value.values]
    if value.kvlist_value is not None:
        return {pair.key: _plain(pair.value) for pair in value.kvlist_value.values}
    for found in (value.string_value, value.bool_value, value.bytes_value):
        if found is not None:
            return found
    if value.int_value is not None:
        return _number(value.int_value)
    try:
        return None if value.double_value is None else float(value.double_value)
    except ValueError:
        return None
