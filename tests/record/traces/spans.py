"""Traces in small: spans by their attributes, and the forms in which they are sent and written."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ragcontract.record.returned.result_forms import DocumentIds
from ragcontract.record.traces.retrievals import Reading, Span
from ragcontract.record.traces.trace_response import Trace, trace_of

TRACE = "0af7651916cd43dd8448eb211c80319c"
KIND = "openinference.span.kind"
Documents = Sequence[Mapping[str, Any]]


def reading(**options: Any) -> Reading:
    """Return how traces are read by default, but for options."""
    return Reading(ids=DocumentIds(options.pop("doc_id", None)), **options)


def span(number: int, kind: str = "", parent: int = 0, *, start: int | None = None, **fields: Any) -> Span:
    """Return a span of an OpenInference kind; it starts at its number unless it is said."""
    attributes = ({KIND: kind} if kind else {}) | fields.pop("attributes", {})
    begins = number if start is None else start
    return Span(
        trace=TRACE,
        id=f"{number:016x}",
        parent=f"{parent:016x}" if parent else "",
        name=fields.pop("name", f"span {number}"),
        start=begins,
        end=begins + 100,
        attributes=attributes,
        **fields,
    )


def documents(*found: Mapping[str, Any], within: str = "retrieval.documents") -> dict[str, Any]:
    """Return the flat attributes for documents, as OpenInference has them; metadata becomes JSON."""
    return {
        f"{within}.{number}.document.{name}": json.dumps(value) if name == "metadata" else value
        for number, one in enumerate(found)
        for name, value in one.items()
    }


def of(source: str, **fields: Any) -> dict[str, Any]:
    """Return a document whose metadata names its source."""
    return {"content": f"text of {source}", "metadata": {"source": source}, **fields}


def retriever(number: int, *sources: str, parent: int = 0, **fields: Any) -> Span:
    """Return a span of a retriever that found documents of these sources."""
    attributes = documents(*map(of, sources)) | fields.pop("attributes", {})
    return span(number, "RETRIEVER", parent, attributes=attributes, **fields)


def trace(*spans: Span) -> Trace:
    """Return spans as a trace."""
    return trace_of(spans)


def value(given: Any) -> dict[str, Any]:
    """Return a value of an attribute as OTLP's JSON has it."""
    match given:
        case bool():
            return {"boolValue": given}
        case int():
            return {"intValue": str(given)}
        case float():
            return {"doubleValue": given}
        case list():
            return {"arrayValue": {"values": [value(one) for one in given]}}
        case dict():
            return {"kvlistValue": {"values": [{"key": key, "value": value(one)} for key, one in given.items()]}}
        case _:
            return {"stringValue": given}


def otlp(*spans: Span) -> dict[str, Any]:
    """Return a request of OTLP as JSON."""
    made = [
        {
            "traceId": one.trace,
            "spanId": one.id,
            "parentSpanId": one.parent,
            "name": one.name,
            "startTimeUnixNano": str(one.start),
            "endTimeUnixNano": str(one.end),
            "attributes": [{"key": key, "value": value(given)} for key, given in one.attributes.items()],
            "droppedAttributesCount": one.dropped,
            "status": {} if one.error is None else {"code": 2, "message": one.error},
        }
        for one in spans
    ]
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {"name": "any"}, "spans": made}]}]}


def protobuf(*spans: Span) -> bytes:
    """Return a request of OTLP as protobuf."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
    from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Status
    from opentelemetry.proto.trace.v1.trace_pb2 import Span as Sent

    def any_value(given: Any) -> AnyValue:
        match given:
            case bool():
                return AnyValue(bool_value=given)
            case int():
                return AnyValue(int_value=given)
            case float():
                return AnyValue(double_value=given)
            case list():
                return AnyValue(array_value=ArrayValue(values=[any_value(one) for one in given]))
            case dict():
                pairs = [KeyValue(key=key, value=any_value(one)) for key, one in given.items()]
                return AnyValue(kvlist_value=KeyValueList(values=pairs))
            case _:
                return AnyValue(string_value=given)

    sent = [
        Sent(
            trace_id=bytes.fromhex(one.trace),
            span_id=bytes.fromhex(one.id),
            parent_span_id=bytes.fromhex(one.parent),
            name=one.name,
            start_time_unix_nano=one.start,
            end_time_unix_nano=one.end,
            attributes=[KeyValue(key=key, value=any_value(given)) for key, given in one.attributes.items()],
            dropped_attributes_count=one.dropped,
            status=Status() if one.error is None else Status(code=Status.STATUS_CODE_ERROR, message=one.error),
        )
        for one in spans
    ]
    return ExportTraceServiceRequest(
        resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=sent)])]
    ).SerializeToString()


def sdk(one: Span) -> dict[str, Any]:
    """Return a span as OpenTelemetry's SDK for Python prints it."""
    return {
        "name": one.name,
        "context": {"trace_id": f"0x{one.trace}", "span_id": f"0x{one.id}", "trace_state": "[]"},
        "kind": "SpanKind.INTERNAL",
        "parent_id": f"0x{one.parent}" if one.parent else None,
        "start_time": "2026-11-22T12:00:00.000000Z",
        "end_time": "2026-11-22T12:00:00.250000Z",
        "status": {"status_code": "OK"} if one.error is None else {"status_code": "ERROR", "description": one.error},
        "attributes": dict(one.attributes),
    }
