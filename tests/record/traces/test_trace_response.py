"""One trace as one response: answer, tool calls, models; and whose trace it is."""

import json
from typing import Any

import pytest
from msgspec import UNSET

from ragcontract.record.interface import Response
from ragcontract.record.traces.retrievals import Span
from ragcontract.record.traces.trace_response import embedding_model, query_id_of, questions_of, response_of_trace
from tests.record.traces.spans import reading, retriever, span, trace


def response(*spans: Span) -> Response:
    return response_of_trace(trace(*spans), reading())


def output(value: Any, mime: str | None = "application/json") -> dict[str, Any]:
    text = value if isinstance(value, str) else json.dumps(value)
    return {"output.value": text} | ({"output.mime_type": mime} if mime else {})


def said(text: str) -> dict[str, Any]:
    return {"llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": text}


def test_a_retriever_alone_answers_nothing() -> None:
    found = response(retriever(1, "doc1"))
    assert (found.response, found.tool_calls, found.error) == (UNSET, None, None)


@pytest.mark.parametrize(
    "attributes",
    [
        output("30 days.", None),
        output("30 days.", "text/plain"),
        output({"answer": "30 days."}),
        output({"input": "Why?", "context": [], "response": "30 days."}),
        output({"answer": {"type": "ai", "data": {"content": "30 days."}}}),
        output({"type": "ai", "data": {"content": "30 days."}}),
        output({"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "30 days."}]}),
        output({"messages": [["human", "?"], ["ai", "30 days."]]}),
    ],
)
def test_the_answer_is_the_output_of_the_outermost_span(attributes: dict[str, Any]) -> None:
    inner = span(2, "LLM", 1, attributes=said("Draft."))
    assert response(span(1, "CHAIN", attributes=attributes), inner).response == "30 days."


def test_an_answer_that_looks_like_json_stays_text() -> None:
    assert response(span(1, "CHAIN", attributes=output('["a"]', None))).response == '["a"]'


def test_a_model_answers_if_nothing_around_it_does() -> None:
    server = span(1, name="POST /")
    chain = span(2, "CHAIN", 1, attributes=output({"documents": []}))
    assert response(server, chain, span(3, "LLM", 2, attributes=said("30 days."))).response == "30 days."


def test_of_several_outermost_spans_the_last_one_answers() -> None:
    rewriting, answering = (span(number, "LLM", 9, attributes=said(text)) for number, text in ((1, "Q"), (2, "A")))
    assert response(rewriting, answering, span(9)).response == "A"


def test_opentelemetrys_messages_have_parts() -> None:
    messages = [
        {"role": "assistant", "parts": [{"type": "text", "content": "30 "}, {"type": "text", "content": "days."}]}
    ]
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": json.dumps(messages)}
    assert response(span(1, attributes=attributes)).response == "30 days."


def test_a_trace_that_failed_has_its_error_and_no_answer() -> None:
    found = response(span(1, "CHAIN", error="the index is down", attributes=output("half", None)))
    assert (found.response, found.error) == (None, "the index is down")
    assert response(span(1, "CHAIN"), span(2, "LLM", 1, error="tried again")).error is None


def asks(*names: str) -> dict[str, Any]:
    call = "llm.output_messages.0.message.tool_calls.{}.tool_call.function.{}"
    return {call.format(number, "name"): name for number, name in enumerate(names)} | {
        call.format(number, "arguments"): json.dumps({"of": name}) for number, name in enumerate(names)
    }


def test_tool_calls_are_what_the_model_asked_for() -> None:
    found = response(
        span(1, "LLM", attributes=asks("search", "erase")), span(2, "TOOL", attributes={"tool.name": "search"})
    )
    assert found.tool_calls == [
        {"name": "search", "arguments": {"of": "search"}},
        {"name": "erase", "arguments": {"of": "erase"}},
    ]


def test_tools_that_no_model_asked_for_count_as_called() -> None:
    tools = [
        span(1, "TOOL", attributes={"tool.name": "search", "input.value": '{"q": "refund"}'}),
        span(2, "TOOL", attributes={"tool.name": "look", "input.value": "refund"}),
        span(3, "TOOL", attributes={"tool.name": "now", "input.value": ""}),
        span(5, "TOOL", attributes={"tool.name": "refund", "input.value": '{"id": 7'}),
    ]
    assert response(*tools).tool_calls == [
        {"name": "search", "arguments": {"q": "refund"}},
        {"name": "look", "arguments": {"input": "refund"}},
        {"name": "now", "arguments": {}},
        {"name": "refund", "arguments": '{"id": 7'},
    ]


def test_opentelemetrys_tools_are_parts_and_spans() -> None:
    part = {"type": "tool_call", "id": "1", "name": "search", "arguments": {"q": "refund"}}
    chat = {
        "gen_ai.operation.name": "chat",
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [part]}]),
    }
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search", "gen_ai.tool.call.arguments": "{}"}
    expected = [{"name": "search", "arguments": {"q": "refund"}}]
    assert response(span(1, attributes=chat), span(2, attributes=tool)).tool_calls == expected
    assert response(span(2, attributes=tool)).tool_calls == [{"name": "search", "arguments": {}}]


def test_a_model_that_asked_for_no_tool_is_known_to_have_called_none() -> None:
    assert response(span(1, "LLM", attributes=said("A"))).tool_calls == []


def test_models_are_those_that_were_used_last() -> None:
    spans = [
        span(1, "LLM", attributes={"llm.model_name": "small"}),
        span(
            2, attributes={"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.response.model": "m-7"}
        ),
        span(3, "LLM", attributes={"llm.model_name": "unknown"}),
        span(4, "EMBEDDING", attributes={"embedding.model_name": "e5"}),
    ]
    assert (response(*spans).llm_model, embedding_model(trace(*spans))) == ("m-7", "e5")
    assert embedding_model(trace(spans[0])) is None


@pytest.mark.parametrize(
    "attributes",
    [
        {"rag_contract.query_id": "q7"},
        {"metadata": '{"rag_contract.query_id": "q7"}'},
        {"rag_contract": {"query_id": "q7"}},
    ],
)
def test_a_trace_names_its_query_by_an_attribute(attributes: dict[str, Any]) -> None:
    assert query_id_of(trace(span(1), span(2, parent=1, attributes=attributes))) == "q7"
    assert query_id_of(trace(span(1))) is None


@pytest.mark.parametrize(
    "attributes",
    [
        {"input.value": " Why? "},
        {"input.value": '{"question": "Why?"}'},
        {"input.value": '{"message": "Why?"}'},
        {"input.value": '{"messages": [["user", "Why?"]]}'},
        {"input.value": '{"messages": [{"role": "system", "content": "-"}, {"role": "user", "content": "Why?"}]}'},
        {"gen_ai.retrieval.query.text": "Why?"},
        {"reranker.query": "Why?"},
    ],
)
def test_a_trace_has_its_question_in_an_input(attributes: dict[str, Any]) -> None:
    assert "Why?" in list(questions_of(trace(span(1, "RETRIEVER", attributes=attributes))))


def test_a_trace_takes_as_long_as_its_outermost_span() -> None:
    assert trace(span(1), span(2, parent=1)).ms == 100 / 1e6
    assert trace(Span(trace="a", id="b")).ms is None


def test_a_span_that_was_sent_twice_is_one() -> None:
    assert len(trace(span(1), span(1)).spans) == 1
