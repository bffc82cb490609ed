"""What instrumentations leave out of their spans is missing in the run: no rule passes because of it."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ragcontract.record.traces.retrievals import Span
from tests.builders import write_jsonl
from tests.process import Ended, rag_contract
from tests.record.traces.spans import otlp, retriever, span

NO_REFUND = {"type": "must_not_call_tool", "tool": "refund"}
NO_REFUND_OF_7 = {**NO_REFUND, "arguments": {"id": 7}}
NO_SALARY = {"type": "must_not_contain", "value": "salary"}
MESSAGE = "llm.output_messages.0.message."
ROOT = span(1, "CHAIN", attributes={"input.value": "Why?", "output.value": "Done."})
SILENT_ROOT = span(1, "CHAIN", attributes={"input.value": "Why?"})


@pytest.fixture(autouse=True)
def _workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def checked(*spans: Span, rule: dict[str, Any] | None = None, **fields: Any) -> Ended:
    """Convert a trace, and check it against a rule; of a conversion that fails, return how it ended."""
    write_jsonl(Path("golden.jsonl"), [{"id": "q", "query": "Why?", **({"rules": [rule]} if rule else {}), **fields}])
    Path("traces.jsonl").write_text(json.dumps(otlp(*spans)))
    files = ("--traces", "traces.jsonl", "--golden", "golden.jsonl", "--run-out", "current_run.jsonl", "--force")
    converted = rag_contract("convert", "--from", "otel", *files)
    return converted if converted.code else rag_contract("check")


def row() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path("current_run.jsonl").read_text())
    return found


def model(number: Any = 2, **attributes: Any) -> Span:
    return span(number, "LLM", 1, attributes=attributes)


def asks(*names: str, arguments: str | None = '{"id": 7}') -> Span:
    call = MESSAGE + "tool_calls.{}.tool_call.function.{}"
    asked = {call.format(number, "name"): name for number, name in enumerate(names)}
    given = {call.format(number, "arguments"): arguments for number in range(len(names)) if arguments is not None}
    return model(**asked, **given)


def tool(name: str, number: Any = 5, **attributes: Any) -> Span:
    return span(number, "TOOL", 1, attributes={"tool.name": name, **attributes})


def chat(number: Any = 2, messages: Any = None, **attributes: Any) -> Span:
    """Return a model's span with OpenTelemetry's attributes."""
    text = messages if isinstance(messages, str) else json.dumps(messages)
    said = {} if messages is None else {"gen_ai.output.messages": text}
    return span(number, "", 1, attributes={"gen_ai.operation.name": "chat", **said, **attributes})


def parts(*found: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "assistant", "parts": list(found)}]


CALL = {"type": "tool_call", "id": "1", "name": "refund", "arguments": {"id": 7}}
ANSWER = {"type": "text", "content": "Done."}
OF_OPENAI = [{"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "refund", "arguments": "{}"}}]}]
BESIDE, FUNCTION_CALL = "llm.function_call", '{"name": "refund", "arguments": {"id": 7}}'
OF_OPENAI_OLD = [{"role": "assistant", "content": None, "function_call": {"name": "refund", "arguments": "{}"}}]


@pytest.mark.parametrize(
    "spans",
    [
        pytest.param([asks("call_tool"), tool("refund")], id="a model asked for another tool"),
        pytest.param([asks("look", "search"), tool("refund")], id="a model asked for more others"),
        pytest.param([asks("refund"), tool("look"), tool("look", 6)], id="others were called more often"),
        pytest.param([asks("look"), replace(tool("refund"), start=0)], id="called before a model asked"),
        pytest.param(
            [chat(messages=parts(ANSWER)), span(3, "", 1, attributes={
                "gen_ai.operation.name": "invoke_agent", "gen_ai.output.messages": json.dumps(parts(CALL))})],
            id="only the agent's span says it"),
        pytest.param([model(**{MESSAGE + "function_call_name": "refund"})], id="one call, as in older versions"),
        pytest.param([model(**{BESIDE: FUNCTION_CALL})], id="one call beside no messages"),
        pytest.param([model(**{MESSAGE + "content": "A", BESIDE: FUNCTION_CALL})], id="one call beside a message"),
        pytest.param([model(**{MESSAGE + "content": "A", BESIDE: f"[{FUNCTION_CALL}]"})], id="a list of calls"),
        pytest.param([replace(asks("look"), attributes={**asks("look").attributes, BESIDE: FUNCTION_CALL})],
            id="one call beside another"),
        pytest.param([chat(messages=parts({"type": "server_tool_call", "name": "refund"}))], id="a provider's tool"),
        pytest.param([chat(messages=parts({"type": "tool_use", "name": "refund", "input": {}}))], id="Anthropic's"),
        pytest.param([chat(messages=OF_OPENAI)], id="OpenAI's"),
        pytest.param([chat(messages=OF_OPENAI_OLD)], id="OpenAI's older"),
    ],
)  # fmt: skip
def test_a_call_that_any_span_says_is_a_call(spans: list[Span]) -> None:
    ended = checked(ROOT, *spans, rule=NO_REFUND)
    assert (ended.code, "refund(" in ended.out) == (1, True), ended


@pytest.mark.parametrize(
    "spans",
    [
        pytest.param([chat()], id="no messages"),
        pytest.param([chat(**{"gen_ai.response.finish_reasons": ["tool_calls"]})], id="no messages, but a reason"),
        pytest.param(
            [chat(messages=parts(ANSWER), **{"gen_ai.response.finish_reasons": ["tool_calls"]})], id="no call"),
        pytest.param([model(**{MESSAGE + "content": "A", "llm.finish_reason": "tool_use"})], id="OpenInference"),
        pytest.param([span(2, "", 1, attributes={"gen_ai.operation.name": "invoke_agent"})], id="an agent only"),
        pytest.param([chat(messages=json.dumps(parts(CALL))[:-5])], id="JSON that is cut off"),
        pytest.param([chat(messages=["text"])], id="messages that are none"),
        pytest.param([chat(messages=[{"role": "assistant"}])], id="a message without content"),
        pytest.param([chat(messages=parts({"type": "tool_call"}))], id="a call without a name"),
        pytest.param([chat(messages=parts({"type": "mcp_invocation", "what": "refund"}))], id="an unknown part"),
        pytest.param([chat(**{"gen_ai.completion.0.tool_calls.0.name": "refund"})], id="OpenLLMetry"),
        pytest.param(
            [chat(messages=parts(ANSWER)), span(3, "", 1, attributes={
                "llm.request.type": "chat", "gen_ai.completion.0.tool_calls.0.name": "refund"})],
            id="OpenLLMetry without an operation"),
        pytest.param([model(**{MESSAGE + "role": "assistant"})], id="a message of OpenInference without content"),
        pytest.param([model(**{MESSAGE + "content": "__REDACTED__"})], id="a message that is hidden"),
        pytest.param(
            [model(**{"output.value": '{"tool_calls": []}', "output.mime_type": "application/json"})], id="an output"),
        pytest.param([model(**{"llm.prompts": ["Why?"], "llm.tools.0.tool.json_schema": "{}"})], id="tools offered"),
        pytest.param([span(2, "TOOL", 1, attributes={"tool.id": "refund"})], id="a tool without a name"),
        pytest.param(
            [asks("look"), span(5, "", 1, attributes={"gen_ai.operation.name": "execute_tool"})], id="a nameless tool"),
        pytest.param([replace(asks("look"), dropped=40)], id="attributes were dropped"),
        pytest.param([replace(model(), dropped=40)], id="all attributes were dropped"),
        pytest.param([asks("look"), model(3)], id="another model says nothing"),
        pytest.param([model(**{MESSAGE + "content": "A", BESIDE: FUNCTION_CALL[:20]})], id="a call that is cut off"),
        pytest.param([model(**{MESSAGE + "content": "A", BESIDE: '{"arguments": {}}'})], id="one call without a name"),
        pytest.param([replace(model(**{BESIDE: '{"name": "look"}'}), dropped=1)], id="a call, and more were dropped"),
    ],
)  # fmt: skip
def test_tool_calls_that_are_not_captured_are_missing(spans: list[Span]) -> None:
    ended = checked(ROOT, *spans, rule=NO_REFUND)
    assert (ended.code, "tool_calls" in ended.err) == (2, True), ended
    assert "tool_calls" not in row()


LOOKED = '{"name": "look", "arguments": {"id": 7}}'
LOOK_ARGUMENTS = {MESSAGE + "function_call_arguments_json": '{"id": 7}'}


@pytest.mark.parametrize(
    ("spans", "names"),
    [
        ([chat(messages=parts({"type": "reasoning", "content": "Hm."}, ANSWER))], []),
        ([asks("look"), tool("look")], ["look"]),
        ([asks("look", "look"), tool("look")], ["look", "look"]),
        ([tool("look"), tool("search", 6)], ["look", "search"]),
        ([model(**{BESIDE: LOOKED}), tool("look")], ["look"]),
        ([model(**{MESSAGE + "function_call_name": "look", BESIDE: LOOKED})], ["look"]),
        ([model(**{MESSAGE + "function_call_name": "look", **LOOK_ARGUMENTS, BESIDE: LOOKED})], ["look"]),
        ([model(**{MESSAGE + "content": "A", BESIDE: "null"}), model(3, **{MESSAGE + "content": "A", BESIDE: ""})], []),
        ([replace(model(), error="rate limit"), model(3, **{MESSAGE + "content": "A"})], []),
        ([model(**{"llm.prompts": ["Why?"], "output.value": "A"})], []),
        ([span(2, "", 1, attributes={"gen_ai.operation.name": "text_completion"})], []),
        ([asks("look"), replace(model(3), parent=f"{2:016x}")], ["look"]),
        ([model(), replace(model(3, **{MESSAGE + "content": "A"}), parent=f"{2:016x}")], []),
    ],
)
def test_what_spans_say_as_a_whole_is_judged(spans: list[Span], names: list[str]) -> None:
    assert checked(ROOT, *spans, rule=NO_REFUND).code == 0
    assert [call["name"] for call in row()["tool_calls"]] == names


@pytest.mark.parametrize(
    "spans",
    [
        [tool("refund")],
        [asks("refund", arguments=None)],
        [asks("refund", arguments=None), tool("refund", **{"input.value": '{"id": 7}'})],
        [asks("refund", arguments=None), tool("refund", **{"input.value": '{"kwargs": {"id": 7}}'})],
        [tool("refund", **{"tool.parameters": '{"id": {"type": "integer"}}'})],
        [tool("refund", **{"input.value": '{"args": [], "kwargs": {"id": 7}}'})],
        [tool("refund", **{"input.value": "__REDACTED__"})],
        [chat(messages=parts({"type": "tool_call", "name": "refund"}))],
    ],
)
def test_a_call_whose_arguments_are_not_captured_may_be_the_forbidden_one(spans: list[Span]) -> None:
    assert checked(ROOT, *spans, rule=NO_REFUND_OF_7).code == 1


def test_the_span_of_a_tool_has_the_arguments_that_the_model_span_lacks() -> None:
    spans = (asks("refund", arguments=None), tool("refund", **{"input.value": '{"id": 8}'}))
    assert checked(ROOT, *spans, rule=NO_REFUND_OF_7).code == 0
    assert row()["tool_calls"] == [{"name": "refund", "arguments": {"id": 8}}]


REWRITING = model(2, **{MESSAGE + "content": "Why, in other words?"})
IN_PARTS = {
    MESSAGE + "contents.0.message_content.text": "A salary",
    MESSAGE + "contents.0.message_content.type": "text",
}


@pytest.mark.parametrize(
    "spans",
    [
        [span(1, "AGENT", attributes={
            "input.value": "Why?", MESSAGE + "content": "A salary", "llm.output_messages.1.message.content": "More?"})],
        [SILENT_ROOT, REWRITING, model(3, **IN_PARTS)],
        [SILENT_ROOT, model(3, **IN_PARTS, **{MESSAGE + "content": "Done."})],
        [SILENT_ROOT, chat(messages=[*parts({"type": "text", "content": "A salary"}), *parts(ANSWER)])],
        [SILENT_ROOT, chat(messages=[{"role": "assistant", "content": "A salary"}])],
    ],
)  # fmt: skip
def test_all_that_a_model_wrote_is_the_answer(spans: list[Span]) -> None:
    assert checked(*spans, rule=NO_SALARY).code == 1


@pytest.mark.parametrize(
    "spans",
    [
        [SILENT_ROOT, REWRITING, chat(3)],
        [span(9, attributes={"input.value": "Why?"}), REWRITING, chat(3)],
        [SILENT_ROOT, REWRITING, replace(model(3, **{MESSAGE + "content": "Done."}), dropped=3)],
        [SILENT_ROOT, REWRITING, chat(3, messages=json.dumps(parts(ANSWER))[:-3])],
        [replace(ROOT, attributes={**ROOT.attributes, "output.value": "__REDACTED__"})],
        [replace(ROOT, id="a"), replace(SILENT_ROOT, start=50)],
    ],
)
def test_an_earlier_text_is_not_taken_for_an_answer_that_is_not_captured(spans: list[Span]) -> None:
    ended = checked(*spans, retriever(7, "doc1", parent=1), rule=NO_SALARY)
    assert (ended.code, "response" in ended.err) == (2, True), ended
    assert "response" not in row()


CONTENT = MESSAGE + "contents.{}."
USE = {CONTENT.format(0) + "message_content.type": "tool_use"}
NAMED = {CONTENT.format(0) + "tool_call.function.name": "refund"}
AS_PART = {**USE, **NAMED, CONTENT.format(0) + "tool_call.function.arguments": '{"id": 7}'}
OF_JAVASCRIPT = {
    **USE,
    CONTENT.format(0) + "message_content.tool_use.name": "refund",
    CONTENT.format(0) + "message_content.tool_use.input": '{"id": 7}',
}


@pytest.mark.parametrize(
    "attributes",
    [AS_PART, OF_JAVASCRIPT, NAMED, {**NAMED, CONTENT.format(0) + "message_content.type": "mystery"}],
    ids=["of the specification", "of instrumentations for JavaScript", "without a type", "of an unknown type"],
)
def test_a_call_in_a_part_of_the_content_is_a_call(attributes: dict[str, Any]) -> None:
    assert checked(ROOT, model(**attributes), rule=NO_REFUND).code == 1
    assert [call["name"] for call in row()["tool_calls"]] == ["refund"]


def test_a_call_that_a_message_says_as_a_part_and_beside_it_is_one() -> None:
    beside = MESSAGE + "tool_calls.0.tool_call."
    both = {**AS_PART, beside + "function.name": "refund", beside + "function.arguments": '{"id":7}'}
    at_most_one = {"type": "must_call_tool", "tool": "refund", "at_most": 1}
    assert checked(ROOT, model(**both), rule=at_most_one).code == 0
    other = {**both, beside + "function.arguments": '{"id": 8}'}
    assert checked(ROOT, model(**other), rule=at_most_one).code == 1
    with_ids = {**other, beside + "id": "call_1", CONTENT.format(0) + "tool_call.id": "call_1"}
    assert checked(ROOT, model(**with_ids), rule=at_most_one).code == 0


@pytest.mark.parametrize(
    "attributes",
    [
        USE,
        {CONTENT.format(0) + "message_content.type": "mystery"},
        {CONTENT.format(0) + "message_content.type": "mystery", CONTENT.format(0) + "message_content.text": "Done."},
        {**IN_PARTS, CONTENT.format(1) + "message_content.type": "mcp_call"},
        {MESSAGE + "contents": '[{"message_content.type": "tool_use", "tool_'},
        {MESSAGE + "content": "Done.", MESSAGE + "tool_calls": '[{"tool_call.function.na'},
    ],
    ids=["no name", "unknown", "unknown with a text", "unknown beside a text", "cut off", "calls that are cut off"],
)
def test_calls_are_missing_if_a_part_of_the_content_may_be_one(attributes: dict[str, Any]) -> None:
    ended = checked(ROOT, model(**attributes), rule=NO_REFUND)
    assert (ended.code, "tool_calls" in ended.err) == (2, True), ended
    assert "tool_calls" not in row()


@pytest.mark.parametrize("kind", ["text", "reasoning", "image", "audio", "video"])
def test_parts_of_the_content_that_are_known_have_no_call(kind: str) -> None:
    typed = {**IN_PARTS, CONTENT.format(1) + "message_content.type": kind}
    assert checked(ROOT, model(**typed), rule=NO_REFUND).code == 0
    assert row()["tool_calls"] == []


NO_SECRET: dict[str, Any] = {"relevant_doc_ids": [], "forbidden_doc_ids": ["secret"]}
EMPTY = {"output.value": "[]"}


def silent(number: int, parent: int = 1, **fields: Any) -> Span:
    return span(number, "RETRIEVER", parent, name="search", **fields)


@pytest.mark.parametrize(
    ("spans", "problem"),
    [
        ([retriever(2, "doc1", parent=1, dropped=40)], "lost 40 attributes, maybe documents; set OTEL_SPAN_ATTRIBUTE"),
        ([retriever(2, "doc1", parent=1), silent(3)], "the retrieval span 'search' says nothing of documents"),
        ([silent(2), retriever(3, "doc1", parent=1)], "the retrieval span 'search' says nothing of documents"),
        ([silent(2, attributes=EMPTY, error="timeout")], "the retrieval span 'search' failed: timeout"),
        ([silent(2, error="timeout"), silent(3, attributes=EMPTY)], "the retrieval span 'search' failed: timeout"),
    ],
)
def test_documents_that_are_not_captured_are_a_problem(spans: list[Span], problem: str) -> None:
    ended = checked(ROOT, *spans, **NO_SECRET)
    assert (ended.code, problem in ended.err) == (2, True), ended


@pytest.mark.parametrize(
    "spans",
    [
        [silent(2, error="timeout"), retriever(3, "doc1", parent=1)],
        [silent(2), retriever(3, "doc1", parent=2)],
        [retriever(2, "doc1", parent=1), silent(3, parent=2)],
        [replace(silent(2), attributes={
            **silent(2).attributes, "retrieval.documents": '[{"document.id": "doc1"}]'}, dropped=3)],
    ],
)  # fmt: skip
def test_spans_of_one_retrieval_say_its_documents_together(spans: list[Span]) -> None:
    assert checked(ROOT, *spans, **NO_SECRET).code == 0
    assert [result["doc_id"] for result in row()["results"]] == ["doc1"]


def stopped(*reasons: str, number: Any = 2, **attributes: Any) -> Span:
    return chat(number, messages=parts(ANSWER), **{"gen_ai.response.finish_reasons": list(reasons), **attributes})


FILTERED = [
    pytest.param([stopped("content_filter")], id="reasons"),
    pytest.param([stopped("stop", **{"llm.finish_reason": "CONTENT_FILTER"})], id="OpenInference"),
    pytest.param([chat(messages=[{**parts(ANSWER)[0], "finish_reason": "content_filter"}])], id="a message"),
    pytest.param([stopped("stop", number=3), stopped("content_filter", number=4)], id="the last of several"),
    pytest.param(
        [stopped("content_filter"), chat(3, parts({"type": "text", "content": "A title"}))], id="not the last"),
]  # fmt: skip


@pytest.mark.parametrize("spans", FILTERED)
def test_an_answer_that_a_filter_stopped_is_a_refusal(spans: list[Span]) -> None:
    ended = checked(ROOT, *spans, rule={"type": "must_not_refuse"})
    assert (ended.code, row()["finish_reason"]) == (1, "content_filter"), ended


@pytest.mark.parametrize("spans", [[stopped("stop")], [chat(messages=parts(ANSWER))], [stopped("stop", number=3)]])
def test_an_answer_that_a_model_ended_is_none(spans: list[Span]) -> None:
    earlier = chat(messages=parts({"type": "text", "content": "Hm."}), **{"llm.finish_reason": "content_filter"})
    spans = [earlier, *spans] if spans[0].id != earlier.id else spans
    assert checked(ROOT, *spans, rule={"type": "must_not_refuse"}).code == 0


def test_an_answer_that_a_model_was_cut_off_in_is_a_warning() -> None:
    ended = checked(ROOT, stopped("length"), rule={"type": "must_contain", "value": "Done"})
    assert (ended.code, "answered only warns" in ended.out) == (0, True), ended


def output(**value: Any) -> Span:
    fields = {"output.value": json.dumps(value), "output.mime_type": "application/json"}
    return span(1, "CHAIN", attributes={"input.value": "Why?", **fields})


HUMAN = {"type": "human", "content": "Why?"}


def ai(content: str) -> dict[str, Any]:
    return {"type": "ai", "content": content}


@pytest.mark.parametrize(
    "value",
    [
        {"messages": [HUMAN, ai("Her salary is 7."), ai("Done.")]},
        {"messages": [["human", "Why?"], ["ai", "Her salary is 7."], ["ai", "Done."]]},
        {"messages": [HUMAN, ai("Her salary is 7."), ai("Done.")], "answer": "Done."},
        {"output": {"messages": [HUMAN, ai("Her salary is 7."), ai("Done.")]}},
        {"messages": [HUMAN, {"type": "ai", "data": {"content": "Her salary is 7."}}, ai("Done.")]},
    ],
)
def test_all_that_an_application_says_in_its_last_turn_is_its_answer(value: dict[str, Any]) -> None:
    ended = checked(output(**value), rule=NO_SALARY)
    assert (ended.code, 'Found: "Her salary' in ended.out) == (1, True), ended


@pytest.mark.parametrize(
    "value",
    [
        {"answer": "Done.", "output": "Done."},
        {"answer": "Done.", "content": "Her salary is 7.", "error": None},
        {
            "messages": [["human", "?"], ["ai", "Her salary is 7."], ["human", "Why?"], ["ai", "Done."]],
            "answer": "Done.",
        },
        {"answer": {"content": "Done."}, "text": "Her salary is 7."},
    ],
)
def test_an_application_that_says_one_thing_is_read(value: dict[str, Any]) -> None:
    ended = checked(output(**value), rule=NO_SALARY)
    assert (ended.code, row()["response"]) == (0, "Done."), ended


@pytest.mark.parametrize(
    "value",
    [
        {"answer": "Done.", "output": "Her salary is 7."},
        {"output": "Her salary is 7.", "result": {"content": "Done."}},
        {"messages": [HUMAN, ai("Done.")], "output": "Her salary is 7."},
    ],
)
def test_two_answers_that_differ_in_an_output_are_refused(value: dict[str, Any]) -> None:
    ended = checked(output(**value), rule=NO_SALARY)
    assert (ended.code, "its output has two answers that differ, as" in ended.err) == (2, True), ended


def test_an_error_in_an_output_is_that_of_the_application() -> None:
    ended = checked(output(answer="Done.", error="boom"), rule=NO_SALARY)
    assert (ended.code, row()["error"], row()["response"]) == (1, "boom", None), ended
