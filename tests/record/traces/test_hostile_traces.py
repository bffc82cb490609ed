"""Whatever the attributes of spans are, reading them ends, and fails only in ways that are reported."""

import contextlib
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ragcontract.record.interface import CallFailed
from ragcontract.record.returned.result_forms import DocumentIds
from ragcontract.record.traces.retrievals import Reading, Span, SpanError
from ragcontract.record.traces.trace_response import (
    embedding_model,
    query_id_of,
    questions_of,
    response_of_trace,
    trace_of,
)
from tests.record.traces.spans import TRACE

KINDS = ["", "RETRIEVER", "RERANKER", "LLM", "CHAIN", "TOOL", "EMBEDDING", "retrieval", "chat", "execute_tool"]
NAMES = [
    *(
        "openinference.span.kind",
        "gen_ai.operation.name",
        "input.value",
        "output.value",
        "output.mime_type",
        "metadata",
    ),
    *("retrieval.documents", "retrieval.documents.0.document.id", "retrieval.documents.0.document.metadata"),
    *("retrieval.documents.0.document", "retrieval.documents.0.document.score", "gen_ai.retrieval.documents"),
    *("retrieval.documents.0.document.content", "reranker.output_documents", "reranker.output_documents.0.document.id"),
    *("reranker.query", "llm.output_messages.0.message.content", "llm.output_messages.0.message.tool_calls"),
    *("gen_ai.output.messages", "llm.output_messages.0.message.tool_calls.0.tool_call.function.name", "tool.name"),
    *("gen_ai.tool.call.arguments", "embedding.model_name", "llm.model_name", "rag_contract.query_id", "retrieval"),
]
INNER = [
    *(
        "document",
        "id",
        "content",
        "metadata",
        "score",
        "source",
        "role",
        "type",
        "parts",
        "data",
        "messages",
        "answer",
    ),
    *("text", "name", "arguments", "page_content", "documents", "message", "tool_call"),
]
JSON = [
    *(
        "[]",
        "{",
        '{"documents": [{"id": []}]}',
        '[{"id": {}, "score": "x"}]',
        '[{"role": [], "parts": [{"type": {}}]}]',
    ),
    *('{"messages": [{"role": {}}, [[], 1], []]}', '{"source": ["a"]}', '{"answer": {"data": {"content": 7}}}'),
]
TEXTS = st.sampled_from([*KINDS, *JSON, "application/json", "assistant", "text"])
VALUES = st.recursive(
    TEXTS | st.none() | st.booleans() | st.integers() | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(INNER), inner, max_size=3),
    max_leaves=8,
)
ATTRIBUTES = st.builds(
    lambda kind, further: {"openinference.span.kind": kind, **further},
    st.sampled_from(KINDS),
    st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=5),
)
TIMES = st.integers(0, 1 << 80)
READINGS = [
    Reading(ids=DocumentIds(None)),
    Reading(ids=DocumentIds("join('/', [metadata.source])"), retrieved="last", use="retriever"),
]


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 4), TIMES, TIMES, ATTRIBUTES), max_size=5),
    st.sampled_from(READINGS),
)
def test_traces_of_any_attributes_are_read_or_refused(
    given: Sequence[tuple[int, int, int, int, dict[str, Any]]], reading: Reading
) -> None:
    spans = [
        Span(trace=TRACE, id=f"{own}", parent=f"{parent}", start=start, end=end, attributes=attributes)
        for own, parent, start, end, attributes in given
    ]
    trace = trace_of(spans)
    with contextlib.suppress(CallFailed, SpanError):
        response_of_trace(trace, reading)
    with contextlib.suppress(SpanError):
        assert all(isinstance(one, str) and one for one in questions_of(trace))
    assert query_id_of(trace) is None or query_id_of(trace)
    assert embedding_model(trace) is None or embedding_model(trace)
    assert trace.ms is None or trace.ms > 0
