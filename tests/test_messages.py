"""Conversations in the forms of OpenAI, Anthropic and LangChain: what the assistant says and calls is judged in all."""

import re
from pathlib import Path
from typing import Any

import pytest

from ragcontract.answers.messages import KNOWN
from tests.builders import Row, golden, run, write_jsonl
from tests.process import Ended, rag_contract

NO_SECRET = {"type": "must_not_contain", "value": "salary"}
NO_REFUND = {"type": "must_not_call_tool", "tool": "refund", "arguments": {"id": 7}}
USER = {"role": "user", "content": "What does she earn?"}
SEVEN = '{"id": 7}'


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def says(content: Any, **fields: Any) -> Row:
    """Return a message of the assistant."""
    return {"role": "assistant", "content": content, **fields}


def checked(*messages: Row, rules: list[Row], turns: int = 1, **fields: Any) -> Ended:
    """Check a conversation, for a query whose turns all have these rules."""
    asked = [{"query": f"Question {number}"} for number in range(turns)]
    write_jsonl(Path("golden.jsonl"), [golden(rules=rules, turns=asked)])
    write_jsonl(Path("current_run.jsonl"), [run(messages=list(messages), **fields)])
    return rag_contract("check")


SECRETS: dict[str, list[Row]] = {
    "markdown": [USER, says([{"type": "markdown", "text": "A salary of 180,000."}])],
    "markdown in its own field": [USER, says([{"type": "markdown", "markdown": "A salary of 180,000."}])],
    "output_text": [USER, says([{"type": "output_text", "text": "A salary of 180,000."}])],
    "input_text": [USER, says([{"type": "input_text", "text": "A salary of 180,000."}])],
    "spoken": [USER, says(None, audio={"id": "a1", "transcript": "A salary of 180,000."})],
    "a spoken part": [USER, says([{"type": "output_audio", "transcript": "A salary of 180,000."}])],
    "split into parts": [USER, says([{"type": "text", "text": "A sal"}, {"type": "text", "text": "ary of 180,000."}])],
    "an item of OpenAI's": [
        USER,
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "A salary of 180,000."}]},
    ],
    "LangChain's": [USER, {"type": "ai", "content": "A salary of 180,000."}],
    "before the user": [says("A salary of 180,000."), USER, says("Hello.")],
    "after a result of a tool": [
        USER,
        says([{"type": "text", "text": "Wait."}, {"type": "tool_use", "id": "c1", "name": "look", "input": {}}]),
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "180,000"}]},
        says("A salary of 180,000."),
    ],
}


@pytest.mark.parametrize("messages", SECRETS.values(), ids=SECRETS.keys())
def test_a_forbidden_text_is_found_in_every_form_of_a_message(messages: list[Row]) -> None:
    ended = checked(*messages, rules=[NO_SECRET])
    assert ended.code == 1
    assert "Expected in turn 1" in ended.out
    assert "no salary" in ended.out


CALLS: dict[str, list[Row]] = {
    "function_call": [says(None, function_call={"name": "refund", "arguments": SEVEN})],
    "tool_use": [says([{"type": "tool_use", "id": "c1", "name": "refund", "input": {"id": 7}}])],
    "a tool of a server": [says([{"type": "mcp_tool_use", "id": "c1", "name": "refund", "input": {"id": 7}}])],
    "a part tool_call": [says([{"type": "tool_call", "id": "c1", "name": "refund", "args": {"id": 7}}])],
    "a part function_call": [says([{"type": "function_call", "name": "refund", "arguments": SEVEN}])],
    "cut off, as LangChain keeps it": [says("", invalid_tool_calls=[{"name": "refund", "args": '{"id": 7'}])],
    "among what LangChain adds": [
        says("", additional_kwargs={"function_call": {"name": "refund", "arguments": SEVEN}})
    ],
    "an item of OpenAI's": [{"type": "function_call", "call_id": "c1", "name": "refund", "arguments": SEVEN}],
    "an item with a role": [
        {"role": "assistant", "type": "function_call", "call_id": "c1", "name": "refund", "arguments": SEVEN}
    ],
    "an item of Anthropic's with a role": [
        {"role": "assistant", "type": "tool_use", "id": "c1", "name": "refund", "input": {"id": 7}}
    ],
    "an item with a role and a text": [says("Wait.", type="tool_use", name="refund", input={"id": 7})],
    "pieces of a stream": [says("", tool_call_chunks=[{"name": "refund", "args": SEVEN, "id": "c1", "index": 0}])],
    "an item of a server": [{"type": "mcp_call", "id": "m1", "name": "refund", "arguments": SEVEN}],
    "LangChain's": [{"type": "ai", "content": "", "tool_calls": [{"id": "c1", "name": "refund", "args": {"id": 7}}]}],
    "LangChain's as it stores them": [
        {"type": "ai", "data": {"content": "", "tool_calls": [{"id": "c1", "name": "refund", "args": {"id": 7}}]}}
    ],
    "beside another call": [
        says(
            [{"type": "tool_use", "id": "c1", "name": "refund", "input": {"id": 7}}],
            tool_calls=[{"id": "c1", "name": "get_order", "args": {"id": 7}}],
        )
    ],
}


STREAMED = {"type": "tool_use", "id": "c1", "name": "refund", "input": {}, "partial_json": SEVEN}


@pytest.mark.parametrize(
    ("calls", "found"),
    [
        ([], "refund(invalid arguments)"),
        ([{"id": "c1", "name": "refund", "args": {}}], "refund(invalid arguments)"),
        ([{"id": "c1", "name": "refund", "args": {"id": 7}}], "refund(id=7)"),
    ],
)
def test_the_arguments_of_a_stream_are_not_hidden_by_an_empty_field(calls: list[Row], found: str) -> None:
    ended = checked(USER, says([STREAMED], tool_calls=calls), says("Done."), rules=[NO_REFUND])
    assert ended.code == 1
    assert f"Found: {found}\n" in ended.out


@pytest.mark.parametrize("messages", CALLS.values(), ids=CALLS.keys())
def test_a_forbidden_call_is_found_in_every_form_of_a_message(messages: list[Row]) -> None:
    for order in ([USER, *messages, says("Done.")], [*messages, USER, says("Done.")]):
        ended = checked(*order, rules=[NO_REFUND])
        assert ended.code == 1
        assert "Found: refund(" in ended.out


ITEMS: dict[str, tuple[Row, str]] = {
    "web_search": ({"type": "web_search_call", "id": "w", "action": {"type": "search", "query": "her"}}, "action"),
    "file_search": ({"type": "file_search_call", "id": "f", "queries": ["her"]}, "queries"),
    "computer": ({"type": "computer_call", "call_id": "c", "action": {"type": "click", "x": 1}}, "action"),
    "code_interpreter": ({"type": "code_interpreter_call", "id": "i", "code": "1 + 1"}, "code"),
    "local_shell": ({"type": "local_shell_call", "call_id": "s", "action": {"command": ["rm"]}}, "action"),
    "sql": ({"type": "custom_tool_call", "call_id": "q", "name": "sql", "input": "DROP TABLE t"}, "input"),
}


@pytest.mark.parametrize("tool", ITEMS)
def test_a_tool_that_openai_runs_is_called_by_an_item_of_its_type(tool: str) -> None:
    item, argument = ITEMS[tool]
    forbidden = {"type": "must_not_call_tool", "tool": tool}
    ended = checked(USER, item, says("Done."), rules=[forbidden])
    assert ended.code == 1
    assert f"Found: {tool}({argument}=" in ended.out
    valid = {"type": "tool_arguments_valid"}
    assert checked(USER, item, says("Done."), rules=[{**forbidden, "tool": "refund"}, valid]).code == 0


def test_a_custom_tool_of_a_chat_completion_is_called_with_its_text() -> None:
    call = {"id": "c1", "type": "custom", "custom": {"name": "sql", "input": "DROP TABLE t"}}
    forbidden = {"type": "must_not_call_tool", "tool": "sql", "arguments": {"input": {"regex": "^DROP"}}}
    assert checked(USER, says(None, tool_calls=[call]), rules=[forbidden]).code == 1
    safe = {**call, "custom": {"name": "sql", "input": "SELECT 1"}}
    assert checked(USER, says(None, tool_calls=[safe]), rules=[forbidden]).code == 0


def test_an_item_that_says_and_calls_nothing_is_known() -> None:
    items = [{"type": "reasoning", "summary": []}, {"type": "mcp_list_tools", "tools": []}]
    assert checked(USER, *items, says("Done."), rules=[NO_SECRET, NO_REFUND]).code == 0


def test_a_call_that_a_message_has_in_two_forms_is_one_call() -> None:
    call = {"id": "c1", "name": "refund", "args": {"id": 7}}
    part = {"type": "tool_use", "id": "c1", "name": "refund", "input": {"id": 7}}
    once = {"type": "must_call_tool", "tool": "refund", "at_most": 1}
    assert checked(USER, says([part], tool_calls=[call]), rules=[once]).code == 0
    assert checked(USER, says([part, part], tool_calls=[call]), rules=[once]).code == 1


def test_parts_without_a_text_for_the_user_are_known() -> None:
    parts = [
        {"type": "thinking", "thinking": "Her salary is secret."},
        {"type": "image_url", "image_url": {"url": "https://example.com/salary.png"}},
        {"type": "mcp_tool_result", "content": [{"type": "text", "text": "A salary."}]},
        {"type": "text", "text": "I cannot say."},
    ]
    assert checked(USER, says(parts), rules=[NO_SECRET]).code == 0


def test_a_result_of_a_tool_begins_no_turn_and_what_the_user_adds_to_it_does() -> None:
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "180,000"}
    used = says([{"type": "tool_use", "id": "c1", "name": "look", "input": {}}])
    only = {"role": "user", "content": [result]}
    more = {"role": "user", "content": [result, {"type": "text", "text": "And her?"}]}
    assert checked(USER, used, only, says("Done."), rules=[NO_SECRET]).code == 0
    assert checked(USER, used, more, says("Done."), rules=[NO_SECRET]).code == 2
    assert checked(USER, used, says("One."), more, says("Done."), rules=[NO_SECRET], turns=2).code == 0


REFUSED: dict[str, tuple[list[Row], str]] = {
    "an unknown part": (
        [USER, says([{"type": "hologram", "hologram": "A salary."}])],
        'has "hologram" as the type of messages[1].content[0]; expected one of text, output_text, ',
    ),
    "a part that is misspelled": ([USER, says([{"type": "tooluse", "name": "refund"}])], 'did you mean "tool_use"?'),
    "a text that is none": (
        [USER, says([{"type": "markdown", "value": "x"}])],
        'has no text or markdown in messages[1].content[0], whose type is "markdown"',
    ),
    "an unknown item": (
        [USER, {"type": "item_reference", "id": "fc1"}],
        'has nothing but the type "item_reference" as the role of messages[1]; expected "system", ',
    ),
    "a text in another field": (
        [USER, {"role": "assistant", "text": "A salary of 180,000."}],
        "has text in messages[1], which is not read; write it as content",
    ),
    "another text beside its content": (
        [USER, says("Done.", output="A salary of 180,000.")],
        "has output in messages[1], which is not read; write it as content",
    ),
    "calls under another name": (
        [USER, says("x", toolCalls=[{"name": "refund"}])],
        "has toolCalls in messages[1], which is not read; write it as tool_calls",
    ),
    "a call of an agent": (
        [USER, says("x", tool="refund", tool_input={"id": 7})],
        "has tool in messages[1], which is not read; write it as tool_calls",
    ),
    "steps of an agent": (
        [USER, says("x", steps=[{"tool": "refund"}])],
        "has steps in messages[1], which is not read; write it as tool_calls",
    ),
    "a function that is called": (
        [USER, says("x", function={"name": "refund", "arguments": SEVEN})],
        "has function in messages[1], which is not read; write it as tool_calls",
    ),
    "arguments of a call": (
        [USER, says("x", type="functionCall", name="refund", arguments=SEVEN)],
        "has arguments in messages[1], which is not read; write it as tool_calls",
    ),
    "an item of the user": (
        [USER, {"role": "user", "type": "function_call", "name": "refund", "arguments": SEVEN}],
        'has a tool call in messages[1], whose role is "user"; only the assistant calls tools',
    ),
    "a call in a text": (
        [USER, says([{"type": "text", "text": "x", "tool_calls": [{"name": "refund"}]}])],
        'has tool_calls in messages[1].content[0], which is not read in a part whose type is "text"',
    ),
    "another text in a text": (
        [USER, says([{"type": "text", "text": "x", "content": "A salary."}])],
        'has content in messages[1].content[0], which is not read in a part whose type is "text"',
    ),
    "parts in another field": (
        [USER, says(None, parts=[{"functionCall": {"name": "refund"}}])],
        "has parts in messages[1], which is not read; write it as content",
    ),
    "a call that is none": (
        [USER, says("x", function_call="refund")],
        'has "refund" as the function_call of messages[1]; expected a call',
    ),
    "a call of the user": (
        [{**USER, "tool_calls": [{"name": "refund"}]}],
        'has a tool call in messages[0], whose role is "user"; only the assistant calls tools',
    ),
}


@pytest.mark.parametrize(("messages", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_what_could_hide_a_text_or_a_call_is_refused(messages: list[Row], why: str) -> None:
    ended = checked(*messages, rules=[NO_SECRET, NO_REFUND])
    assert ended.code == 2
    assert why in ended.err
    assert "current_run.jsonl" in ended.err


@pytest.mark.parametrize("turns", [0, 1])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_no_tool_calls_beside_messages_with_calls_is_refused(call: list[Row], turns: int) -> None:
    said = [USER, *call, says("Done.")]
    expects: Row = {"turns": [{"query": "q"}]} if turns else {}
    write_jsonl(Path("golden.jsonl"), [golden(rules=[NO_REFUND], **expects)])
    write_jsonl(Path("current_run.jsonl"), [run(response="Done.", messages=said, tool_calls=[])])
    ended = rag_contract("check")
    assert ended.code == 2
    assert "has [] as tool_calls, and a call in messages[1]; export all calls, and only the messages" in ended.err
    write_jsonl(Path("current_run.jsonl"), [run(response="Done.", messages=[USER, says("Done.")], tool_calls=[])])
    assert rag_contract("check").code == 0


def test_metrics_refuse_no_tool_calls_beside_messages_with_calls() -> None:
    write_jsonl(Path("golden.jsonl"), [golden(reference_tool_calls=[])])
    write_jsonl(Path("current_run.jsonl"), [run(messages=[USER, *CALLS["tool_use"]], tool_calls=[])])
    ended = rag_contract("check")
    assert ended.code == 2
    assert "has [] as tool_calls, and a call in messages[1]" in ended.err


def test_reports_show_what_was_said_and_called_in_every_form() -> None:
    parts = [{"type": "markdown", "text": "A salary."}, {"type": "tool_use", "name": "look", "input": {"who": "her"}}]
    assert checked(USER, says(parts), rules=[NO_SECRET]).code == 1
    assert rag_contract("check", "--report-md", "report.md").code == 1
    assert 'look {"who":"her"}' in Path("report.md").read_text()


def test_the_documented_types_of_parts_are_those_that_are_known() -> None:
    page = (Path(__file__).parent.parent / "docs" / "reference" / "files.md").read_text(encoding="utf-8")
    table = page.partition("| types of parts |")[2].partition("\n\n")[0]
    types = [name for line in table.splitlines()[2:] for name in re.findall("`([a-z_]+)`", line.split("|")[1])]
    assert sorted(types) == sorted(KNOWN)
