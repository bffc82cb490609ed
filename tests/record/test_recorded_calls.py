"""An application that stopped calling its tool is recorded as one that called none, and fails its contract."""

import json
from pathlib import Path

import pytest

from tests.builders import golden, write_jsonl
from tests.net.service import Reply, Service
from tests.process import Ended, rag_contract

OBJECTS = """
class Object:
    def __init__(self, **fields):
        self.__dict__.update(fields)

class AIMessage:  # as LangChain's
    model_fields = dict.fromkeys(("content", "type", "tool_calls", "invalid_tool_calls", "additional_kwargs"))
    def __init__(self, content, tool_calls=(), invalid_tool_calls=(), additional_kwargs=None):
        self.content, self.type, self.tool_calls = content, "ai", list(tool_calls)
        self.invalid_tool_calls, self.additional_kwargs = list(invalid_tool_calls), additional_kwargs or {}

class Item(Object):  # as OpenAI's
    model_fields = dict.fromkeys(("type", "call_id", "name", "arguments", "role", "content"))

def completion(**message):
    return {"choices": [{"message": {"role": "assistant", "content": "Done.", **message}}]}

def as_object(**message):
    return Object(choices=[Object(message=Object(role="assistant", **{"content": "Done.", **message}))])

HUMAN = {"role": "user", "content": "?"}
EARLIER = [HUMAN, {"role": "assistant", "content": None, "tool_calls": [{"name": "get_order", "arguments": {}}]}]
"""
WITHOUT_CALLS = {
    "a completion without the field": "completion()",
    "a completion with null": "completion(tool_calls=None)",
    "a completion with none": "completion(tool_calls=[])",
    "OpenAI's object": "as_object(tool_calls=None, function_call=None)",
    "a message": '{"role": "assistant", "content": "Done."}',
    "LangChain's message": 'AIMessage("Done.")',
    "LangChain's message in parts": 'AIMessage(["Do", {"type": "text", "text": "ne."}])',
    "a chain's message": '{"answer": AIMessage("Done.")}',
    "an agent's state": '{"messages": [HUMAN, AIMessage("Done.")]}',
    "messages": '[HUMAN, AIMessage("Done.")]',
}
WITH_A_CALL = {
    "a completion": 'completion(tool_calls=[{"function": {"name": "get_order", "arguments": "{}"}}])',
    "the older form": 'completion(content=None, function_call={"name": "get_order", "arguments": "{}"})',
    "OpenAI's object": 'as_object(tool_calls=[{"function": {"name": "get_order", "arguments": "{}"}}])',
    "LangChain's message": 'AIMessage("", [{"name": "get_order", "args": {}}])',
    "LangChain's older form": 'AIMessage("", (), (), {"function_call": {"name": "get_order", "arguments": "{}"}})',
    "Anthropic's message": 'AIMessage([{"type": "tool_use", "name": "get_order", "input": {}}])',
    "a chain's message": '{"answer": AIMessage("", [{"name": "get_order", "args": {}}])}',
    "an agent's state": (
        '{"messages": [HUMAN, {"role": "assistant", "content": None, "function_call": {"name": "get_order"}},'
        ' {"role": "user", "content": [{"type": "tool_result", "content": "shipped"}]}, AIMessage("Done.")]}'
    ),
    "an item with a role": (
        '[HUMAN, {"type": "function_call", "role": "assistant", "name": "get_order", "arguments": "{}"}, '
        'AIMessage("Done.")]'
    ),
    "an item of Anthropic's with a role and a text": (
        '{"messages": [HUMAN, {"type": "tool_use", "role": "assistant", "name": "get_order", "input": {}, '
        '"content": "Wait."}, AIMessage("Done.")]}'
    ),
    "items of OpenAI's Responses API": (
        '[HUMAN, {"type": "function_call", "call_id": "c1", "name": "get_order", "arguments": "{}"}, '
        '{"type": "function_call_output", "call_id": "c1", "output": "shipped"}, AIMessage("Done.")]'
    ),
    "items as objects in an agent's state": (
        '{"messages": [HUMAN, Item(type="function_call", call_id="c1", name="get_order", arguments="{}"), '
        'Item(type="message", role="assistant", content=[{"type": "output_text", "text": "Done."}])]}'
    ),
}


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    row = golden("q1", rules=[{"type": "must_call_tool", "tool": "get_order"}])
    write_jsonl(Path("golden.jsonl"), [{name: row[name] for name in ("id", "query", "rules")}])


def recorded_and_checked(returned: str) -> Ended:
    """Record a function that returns this, and check what was recorded."""
    Path("app.py").write_text(f"{OBJECTS}\n\ndef ask(query):\n    return {returned}\n")
    recorded = rag_contract("record", "app.py:ask")
    assert recorded.code == 0, recorded.err
    return rag_contract("check")


@pytest.mark.parametrize("returned", WITHOUT_CALLS.values(), ids=WITHOUT_CALLS.keys())
def test_a_form_that_can_carry_calls_and_has_none_breaks_the_contract(returned: str) -> None:
    ended = recorded_and_checked(returned)
    assert ended.code == 1
    assert "Expected a call of get_order\n  Found: no tool was called" in ended.out


@pytest.mark.parametrize("returned", WITH_A_CALL.values(), ids=WITH_A_CALL.keys())
def test_a_call_is_recorded_in_every_form(returned: str) -> None:
    assert recorded_and_checked(returned).code == 0


def test_a_call_that_langchain_could_not_parse_is_recorded_with_arguments_that_cannot_be_read() -> None:
    ended = recorded_and_checked('AIMessage("", (), [{"name": "get_order", "args": "{"}])')
    assert ended.code == 1
    assert "Expected a call of get_order\n  Found: get_order(invalid arguments)" in ended.out


@pytest.mark.parametrize("returned", ['"Done."', '{"answer": "Done."}'])
def test_of_a_form_that_carries_no_calls_nobody_knows_whether_there_were_any(returned: str) -> None:
    ended = recorded_and_checked(returned)
    assert ended.code == 2
    assert "has no tool_calls, which must_call_tool needs" in ended.err


TEXT = {"type": "must_contain", "value": "Done"}
NO_REFUND = {"type": "must_not_call_tool", "tool": "refund"}
UNKNOWN = "has no tool_calls, which must_not_call_tool needs; export them ([] if no tool was called)"


def conversation_checked(rules: list[object], returned: str, **fields: object) -> Ended:
    """Record a conversation of two turns with a function that returns this in each, and check it."""
    turns = [{"query": "How long?"}, {"query": "And now?"}]
    write_jsonl(Path("golden.jsonl"), [{"id": "q1", "query": "Chat", "turns": turns, "rules": rules, **fields}])
    return recorded_and_checked(returned)


@pytest.mark.parametrize(
    "returned",
    [
        '"Done."',
        '{"response": "Done."}',
        '{"response": "Done.", "tool_calls": None}',
        '{"response": "Done.", "mode": "answer", "refusal": None}',
        '"Done." if query == "How long?" else {"response": "Done.", "tool_calls": []}',
    ],
)
def test_of_a_turn_whose_answer_carries_no_calls_nobody_knows_whether_there_were_any(returned: str) -> None:
    ended = conversation_checked([NO_REFUND], returned)
    assert ended.code == 2
    assert f"{UNKNOWN} (in turn 1)" in ended.err


def test_the_calls_of_a_service_s_answer_to_a_turn_are_unknown_where_it_says_nothing_of_them() -> None:
    turns = [{"query": "How long?"}, {"query": "And now?"}]
    write_jsonl(Path("golden.jsonl"), [{"id": "q1", "query": "Chat", "turns": turns, "rules": [NO_REFUND]}])
    with Service(Reply(content={"answer": "Done.", "error": None})) as service:
        http = {"url": service.url, "json": {"q": "{query}"}, "response": {"answer": "answer", "error": "error"}}
        Path("record.yml").write_text(json.dumps({"http": http}))
        recorded = rag_contract("record", "record.yml")
    assert recorded.code == 0, recorded.err
    ended = rag_contract("check")
    assert ended.code == 2
    assert f"{UNKNOWN} (in turn 1)" in ended.err


def test_a_metric_of_tools_refuses_a_conversation_with_a_turn_whose_calls_are_unknown() -> None:
    Path("ragcontract.yml").write_text("minimums: {tool_f1: 0.5}\n")
    known = '{"response": "Done.", "tool_calls": []}'
    ended = conversation_checked([TEXT], f'"Done." if query == "How long?" else {known}', reference_tool_calls=[])
    assert ended.code == 2
    assert "has no tool_calls, which the tool metrics need" in ended.err


@pytest.mark.parametrize("returned", [*WITHOUT_CALLS.values(), '{"response": "Done.", "tool_calls": []}'])
def test_a_turn_in_a_form_that_can_carry_calls_has_none(returned: str) -> None:
    assert conversation_checked([NO_REFUND], returned).code == 0


def test_rules_on_texts_do_not_need_the_calls_of_a_turn() -> None:
    assert conversation_checked([TEXT], '"Done."').code == 0


def test_a_mark_of_unknown_calls_is_true_or_false() -> None:
    turns = [{"query": "How long?"}]
    write_jsonl(Path("golden.jsonl"), [{"id": "q1", "query": "Chat", "turns": turns, "rules": [NO_REFUND]}])
    for mark, code in ((True, 2), ("yes", 2), (False, 0), (None, 0)):
        said = {"role": "assistant", "content": "Done.", "calls_unknown": mark}
        asked = {"role": "user", "content": "How long?"}
        write_jsonl(Path("current_run.jsonl"), [{"query_id": "q1", "messages": [asked, said]}])
        ended = rag_contract("check")
        assert ended.code == code
        assert ('has "yes" as the calls_unknown of messages[1]; expected true or false' in ended.err) == (mark == "yes")


def test_calls_of_an_earlier_question_are_not_taken_for_those_of_this_one() -> None:
    ended = recorded_and_checked('{"messages": [*EARLIER, HUMAN, AIMessage("Done.")]}')
    assert ended.code == 2
    assert "has [] as tool_calls, and a call in messages[1]; export all calls, and only the messages" in ended.err


NARRATED = '[HUMAN, AIMessage("Her salary is 180,000.", [{"name": "get_order", "args": {}}]), AIMessage("Done.")]'


@pytest.mark.parametrize("returned", [NARRATED, f'{{"messages": {NARRATED}}}'], ids=["messages", "a state"])
def test_what_an_agent_says_before_it_calls_a_tool_is_part_of_the_answer(returned: str) -> None:
    forbidden = {"type": "must_not_contain", "value": "salary"}
    write_jsonl(Path("golden.jsonl"), [{"id": "q1", "query": "What does she earn?", "rules": [forbidden]}])
    ended = recorded_and_checked(returned)
    assert ended.code == 1
    assert 'Found: "Her salary is' in ended.out


def test_two_answers_that_differ_are_refused_because_only_one_would_be_judged() -> None:
    Path("app.py").write_text('def ask(query):\n    return {"answer": "I cannot say.", "response": "180,000."}\n')
    ended = rag_contract("record", "app.py:ask")
    assert ended.code == 2
    assert "the target returned two answers that differ, as 'answer' and 'response'; return only one" in ended.err
    assert not Path("current_run.jsonl").exists()


def test_an_answer_that_is_returned_under_two_names_is_one() -> None:
    same = '{"answer": "Done.", "output": "Done.\\n", "response": None, "tool_calls": [{"name": "get_order"}]}'
    assert recorded_and_checked(same).code == 0


LOST = "has [] as tool_calls, and 'tool_use' as finish_reason; export the calls of the model, too"


@pytest.mark.parametrize("name", ["finish_reason", "stop_reason", "stopReason", "finishReason", "done_reason"])
@pytest.mark.parametrize("beside", ["", '"finish_reason": "stop", '])
def test_why_a_model_stopped_is_recorded_under_each_of_its_names(name: str, beside: str) -> None:
    ended = recorded_and_checked(f'{{"response": "Let me look.", "tool_calls": [], {beside}"{name}": "tool_use"}}')
    assert ended.code == 2
    assert LOST in ended.err


def test_a_number_is_no_reason_why_a_model_stopped() -> None:
    numbered = '{"response": "Done.", "tool_calls": [{"name": "get_order"}], "stop_reason": 128001}'
    assert recorded_and_checked(numbered).code == 0


def test_a_call_that_is_returned_alone_is_a_call() -> None:
    alone = '{"answer": "Done.", "function_call": {"name": "get_order", "arguments": "{}"}}'
    assert recorded_and_checked(alone).code == 0


def test_a_call_beside_other_calls_is_refused() -> None:
    returned = '{"answer": "x", "tool_calls": [], "function_call": {"name": "refund"}}'
    Path("app.py").write_text(f"def ask(query):\n    return {returned}\n")
    ended = rag_contract("record", "app.py:ask")
    assert ended.code == 2
    assert "the target returned two lists of tool calls that differ, as 'tool_calls' and 'function_call'" in ended.err


def test_a_model_behind_a_retriever_that_calls_no_tool_breaks_the_contract() -> None:
    found = Reply(content={"results": [{"doc_id": "doc1", "text": "A text."}]})
    said = Reply(content={"choices": [{"message": {"role": "assistant", "content": "Done."}}]})
    with Service(at={"/ask": found, "/v1/chat/completions": said}) as service:
        Path("record.yml").write_text(
            f'http: {{url: {service.url}/ask, json: {{question: "{{query}}"}}}}\n'
            f"chat: {{base_url: {service.url}/v1, model: m}}\n"
        )
        assert rag_contract("record", "record.yml").code == 0
    ended = rag_contract("check")
    assert ended.code == 1
    assert "Expected a call of get_order\n  Found: no tool was called" in ended.out


@pytest.mark.parametrize("mapping", ["", ", response: {answer: answer}"])
def test_an_error_beside_the_answer_of_a_service_fails_the_question(mapping: str) -> None:
    with Service(at={"/ask": Reply(content={"answer": "x", "error": "timeout"})}) as service:
        Path("record.yml").write_text(f'http: {{url: {service.url}/ask, json: {{question: "{{query}}"}}{mapping}}}\n')
        ended = rag_contract("record", "record.yml")
    assert ended.code == 2
    assert "timeout" in ended.err
    assert not Path("current_run.jsonl").exists()


ANSWER = '{"role": "assistant", "content": "A salary of 1"}'
CALLING = '{"role": "assistant", "content": "Done.", "tool_calls": [{"name": "refund", "args": {}}]}'


@pytest.mark.parametrize(
    ("returned", "code", "said"),
    [
        (f'{{"answer": "Done.", "output": {ANSWER}}}', 2, "two answers that differ, as 'answer' and 'output'"),
        (f'{{"response": {CALLING}, "tool_calls": []}}', 2, "a message, and other calls beside it"),
        ('{"results": ["a"], "documents": ["secret"]}', 2, "two lists of results that differ"),
        (
            '{"type": "error", "content": "Internal"}',
            2,
            "no_answer: 1, such as query 'q1': a message whose role or type",
        ),
        ('{"role": "assistant", "content": "partial", "error": "boom"}', 2, "boom"),
        ('{"role": "assistant", "content": "Hi", "refusal": "A salary"}', 1, ""),
    ],
)
def test_nothing_that_is_returned_beside_an_answer_is_dropped(returned: str, code: int, said: str) -> None:
    write_jsonl(
        Path("golden.jsonl"), [{"id": "q1", "query": "?", "rules": [{"type": "must_not_contain", "value": "salary"}]}]
    )
    Path("app.py").write_text(f"{OBJECTS}\n\ndef ask(query):\n    return {returned}\n")
    recorded = rag_contract("record", "app.py:ask")
    assert said in recorded.err
    assert recorded.code == (2 if code == 2 else 0)
    assert rag_contract("check").code == code
