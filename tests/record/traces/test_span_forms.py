"""The same spans in every form that they are sent and written in."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.record.traces import span_receiver, trace_files
from ragcontract.record.traces.retrievals import SpanError, ancestors, at, listed_at, parsed
from ragcontract.record.traces.trace_files import span_of
from tests.record.traces.spans import KIND, TRACE, of, otlp, protobuf, retriever, sdk, span

ATTRIBUTES = {"text": "a", "yes": True, "number": -7, "share": 0.5, "list": ["a", 1], "inner": {"a": {"b": 1}}}
SPANS = [
    span(1, "CHAIN", attributes=ATTRIBUTES, name="chain"),
    span(2, "LLM", 1, error="no answer"),
    retriever(3, "doc1", parent=1),
]


def test_spans_are_read_from_json_as_exporters_send_it() -> None:
    assert trace_files.spans_of(json.dumps(otlp(*SPANS)).encode()) == SPANS


def test_spans_are_read_from_protobuf() -> None:
    assert span_receiver.spans_of(protobuf(*SPANS)) == SPANS


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"{", "is not OTLP as JSON"),
        (b"[" * 10_000, "is not OTLP as JSON"),
        (b'{"resourceSpans": 7}', "is not OTLP as JSON"),
        (b'{"resourceSpans": [{"scopeSpans": [{"spans": [{}]}]}]}', "has a span without traceId or spanId"),
        (
            json.dumps(otlp(span(1))).replace('"101"', '"x"').encode(),
            "has a time or a count that is not a number: 'x'",
        ),
    ],
)
def test_what_is_no_otlp_as_json_is_refused(data: bytes, problem: str) -> None:
    with pytest.raises(SpanError, match=problem):
        trace_files.spans_of(data)


@pytest.mark.parametrize("data", [b"\xff\xff\xff", b"{}", b"\x0a\xff\xff\xff\xff\x0f"])
def test_what_is_no_otlp_as_protobuf_is_refused(data: bytes) -> None:
    with pytest.raises(SpanError, match="is not OTLP as protobuf"):
        span_receiver.spans_of(data)


def test_a_span_without_ids_is_refused_in_protobuf_too() -> None:
    with pytest.raises(SpanError, match="without trace_id or span_id"):
        span_receiver.spans_of(protobuf(replace(span(1), trace="")))


def test_spans_are_read_as_the_sdk_prints_them() -> None:
    found = span_of(sdk(SPANS[1]))
    assert (found.trace, found.id, found.parent, found.error) == (TRACE, f"{2:016x}", f"{1:016x}", "no answer")
    assert (found.end - found.start) / 1e6 == 250
    assert found.attributes == {KIND: "LLM"}


def test_spans_are_read_as_phoenix_answers_them() -> None:
    given = {
        "id": "U3Bhbjox",
        "name": "retrieve",
        "context": {"trace_id": TRACE, "span_id": "00000000000000aa"},
        "span_kind": "RETRIEVER",
        "parent_id": None,
        "status_code": "ERROR",
        "status_message": "down",
        "attributes": {"retrieval": {"documents": [{"document": {"content": "text"}}]}},
    }
    found = span_of(given)
    assert (found.id, found.parent, found.error, at(found.attributes, KIND)) == (
        "00000000000000aa",
        "",
        "down",
        "RETRIEVER",
    )
    assert listed_at(found.attributes, "retrieval.documents") == [{"document": {"content": "text"}}]


def test_spans_are_read_as_rows_of_phoenixs_data_frame() -> None:
    given = {
        "context.trace_id": TRACE,
        "context.span_id": "aa",
        "parent_id": "bb",
        "start_time": 1_000,
        "end_time": 1_250,
        "attributes.input.value": "Why?",
        "attributes.retrieval.documents": [{"document.content": "text"}],
    }
    found = span_of(given)
    assert (found.parent, (found.end - found.start) / 1e6, at(found.attributes, "input.value")) == ("bb", 250, "Why?")


@pytest.mark.parametrize(
    "given", [{"trace_id": 7, "span_id": "a"}, {"trace_id": "a"}, {"trace_id": "0x", "span_id": "a"}]
)
def test_an_object_without_ids_is_no_span(given: dict[str, Any]) -> None:
    with pytest.raises(SpanError, match="expected an id"):
        span_of(given)


@pytest.mark.parametrize(
    "attributes",
    [
        {"a.b.c": 1},
        {"a": {"b": {"c": 1}}},
        {"a.b": {"c": 1}},
        {"a": {"b.c": 1}},
        {"a": "no object", "a.b": {"c": 1}},
    ],
)
def test_an_attribute_is_found_however_it_is_split(attributes: dict[str, Any]) -> None:
    assert at(attributes, "a.b.c") == 1
    assert at(attributes, "a.b.d") is None


def test_flat_documents_are_in_the_order_of_their_numbers() -> None:
    flat = {f"list.{number}.name": number for number in (10, 2, 0)} | {"list.x.name": 7, "list.1": 7}
    assert listed_at(flat, "list") == [{"name": 0}, {"name": 2}, {"name": 10}]
    assert listed_at({"lists.0.name": 0}, "list") is None
    assert listed_at({f"list.{'9' * 4000}.name": 0}, "list") is None
    assert listed_at({"list": '[{"name": 0}, 7]'}, "list") == [{"name": 0}]


def test_a_list_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "RETURNED", 2)
    for given in ({"list": [of("a")] * 3}, {f"list.{number}.name": 0 for number in range(3)}):
        with pytest.raises(SpanError, match="more than 2 items"):
            listed_at(given, "list")


def test_only_lists_and_objects_are_parsed() -> None:
    assert [parsed(one) for one in ("[1]", ' {"a": 1}', "7", "[1", "[" * 9_999, 7, None)] == [
        [1],
        {"a": 1},
        "7",
        "[1",
        "[" * 9_999,
        7,
        None,
    ]


def test_spans_that_are_within_each_other_have_an_end() -> None:
    one, two = span(1, parent=2), span(2, parent=1)
    assert list(ancestors(one, {one.id: one, two.id: two})) == [two]
