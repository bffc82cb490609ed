"""Spans in OTLP's protobuf, as exporters send them by default; needs the extra ``traces``."""

from typing import Any

from ragcontract.core.errors import InputError
from ragcontract.record.traces.otlp_json import FAILED
from ragcontract.record.traces.spans import Span, SpanError


def ready() -> None:
    """Import what decodes; raises InputError if it is not installed."""
    try:
        from opentelemetry.proto.collector.trace.v1 import trace_service_pb2  # noqa: F401
    except ModuleNotFoundError as error:
        missing = "traces: decoding them needs opentelemetry-proto: pip install 'rag-contract[traces]'"
        raise InputError([missing]) from error


def spans_of(data: bytes) -> list[Span]:
    """Return the spans in a request; raises SpanError if it is none."""
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    request = ExportTraceServiceRequest()
    try:
        request.ParseFromString(data)
    except (DecodeError, RecursionError) as error:
        raise SpanError(f"is no OTLP as protobuf ({error})") from error
    scopes = [scope for resource in request.resource_spans for scope in resource.scope_spans]
    return [_span(span) for scope in scopes for span in scope.spans]


def _span(span: Any) -> Span:
    if not span.trace_id or not span.span_id:
        raise SpanError("has a span without trace_id or span_id")
    return Span(
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        name=span.name,
        start=span.start_time_unix_nano,
        end=span.end_time_unix_nano,
        error=(span.status.message or "it failed") if span.status.code == FAILED else None,
        dropped=span.dropped_attributes_count,
        attributes={pair.key: _plain(pair.value) for pair in span.attributes},
    )


def _plain(value: Any) -> Any:
    match value.WhichOneof("value"):
        case None:
            return None
        case "array_value":
            return [_plain(one) for one in value.array_value.values]
        case "kvlist_value":
            return {pair.key: _plain(pair.value) for pair in value.kvlist_value.values}
        case "bytes_value":
            return value.bytes_value.hex()
        case name:
            return getattr(value, name)
