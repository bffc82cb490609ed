"""Spans as JSON objects of their own: OpenTelemetry's ``ReadableSpan.to_json``, and what Phoenix exports.

Phoenix has three forms: its REST API's, with ``context`` and flat attributes; nested attributes; and the rows of its
data frame, whose columns are ``context.trace_id`` and ``attributes.input.value``.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ragcontract.record.traces.spans import Span, SpanError, at, text_at

KIND = "openinference.span.kind"
COLUMNS = "attributes."


def is_span(value: Mapping[str, Any]) -> bool:
    """Return whether an object looks like a span, and not like a request of OTLP."""
    return at(value, "context.trace_id") is not None or "trace_id" in value


def span_of(value: Mapping[str, Any]) -> Span:
    """Return the span in an object; raises SpanError if it is none."""
    trace = _hexadecimal(at(value, "context.trace_id") or value.get("trace_id"), "context.trace_id")
    own = _hexadecimal(at(value, "context.span_id") or value.get("span_id"), "context.span_id")
    parent = value.get("parent_id") or value.get("parent_span_id")
    attributes = value.get("attributes")
    attributes = dict(attributes) if isinstance(attributes, Mapping) else {}
    attributes |= {name.removeprefix(COLUMNS): one for name, one in value.items() if name.startswith(COLUMNS)}
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
    """Return a time that is text as in ISO 8601, or a number of milliseconds, as pandas writes it; 0 for others."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value * 1_000_000
    try:
        return round(datetime.fromisoformat(value).timestamp() * 1e6) * 1000 if isinstance(value, str) else 0
    except (ValueError, OverflowError):
        return 0
