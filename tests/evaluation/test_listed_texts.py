"""What reports show of what was said and seen: cut, and lenient where no rule reads it."""

import json
from typing import Any

import msgspec
import pytest

from ragcontract.core import bounds
from ragcontract.core.finding import Message, Said, ToolCall
from ragcontract.core.run import SAID, RunRow, row_type
from ragcontract.evaluation.listed import said_in


def read(needs: frozenset[str] = frozenset(), **fields: Any) -> Said:
    """Return what is shown of a row of a file, of which rules need some fields."""
    line = json.dumps({"query_id": "q", "results": [], **fields})
    return said_in(msgspec.json.decode(line, type=row_type(needs, unparsed=SAID - needs)), 2)


TEXTS: dict[str, Any] = {
    "response": "Yes.",
    "error": "TimeoutError",
    "mode": "abstain",
    "label": "billing",
    "refusal": "No.",
    "finish_reason": "length",
}


@pytest.mark.parametrize("needs", [frozenset[str](), frozenset(TEXTS)], ids=["not read", "read by rules"])
def test_a_row_says_the_same_whether_rules_read_it_or_not(needs: frozenset[str]) -> None:
    assert read(needs, **TEXTS) == Said(**TEXTS)


def test_a_row_that_says_nothing_has_nothing() -> None:
    assert read() == Said()
    assert read(response=None, tool_calls=None, retrieved_contexts=None) == Said()


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        ({"type": "function", "function": {"name": "find", "arguments": '{"id": 7}'}}, '{"id": 7}'),
        ({"function": {"name": "find", "arguments": {"id": 7}}}, '{"id":7}'),
        ({"name": "find", "args": {"id": 7}}, '{"id":7}'),
        ({"tool": "find", "input_parameters": {"id": 7}}, '{"id":7}'),
        ({"name": "find", "arguments": None, "args": {"id": 7}}, '{"id":7}'),
        ({"name": "find", "arguments": None}, ""),
        ({"name": "find"}, ""),
        ({"function": {"tool": "find", "args": {"id": 7}}}, '{"id":7}'),
        ({"function": None, "name": "find", "arguments": {"id": 7}}, '{"id":7}'),
    ],
)
@pytest.mark.parametrize("needs", [frozenset[str](), frozenset({"tool_calls"})], ids=["not read", "read by rules"])
def test_tool_calls_are_read_as_others_write_them(call: dict[str, Any], shown: str, needs: frozenset[str]) -> None:
    (found,) = read(needs, tool_calls=[call]).tool_calls or ()
    assert found == ToolCall(name="find", arguments=shown)


def test_a_call_without_a_name_is_shown_without_one() -> None:
    (found,) = read(tool_calls=[{"function": "find", "name": "find"}]).tool_calls or ()
    assert found == ToolCall(name="")


def test_no_tool_call_is_something_else_than_an_unknown_number_of_them() -> None:
    assert read(tool_calls=[]).tool_calls == ()
    assert read().tool_calls is None


@pytest.mark.parametrize("field", sorted(SAID - {"results.text"}))
def test_a_field_that_no_rule_reads_may_hold_anything(field: str) -> None:
    values: list[Any] = [{"unexpected": [1]}, [[[7]]], 7]
    for value in values:
        given: dict[str, Any] = {field: value}
        assert read(**given) == Said()


def test_the_contexts_are_those_that_the_model_saw_or_else_the_texts_of_the_first_results() -> None:
    results = [{"doc_id": name, "text": f"About {name}."} for name in "abc"]
    assert read(results=results).contexts == ("About a.", "About b.")
    assert read(results=results, retrieved_contexts=["Seen."]).contexts == ("Seen.",)
    assert read(results=results, retrieved_contexts=[]).contexts == ()
    assert read(results=[{"doc_id": "a"}]).contexts is None


CONVERSATION: list[dict[str, Any]] = [
    {"role": "user", "content": [{"type": "text", "text": "Can I"}, {"type": "text", "text": "return it?"}]},
    {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "find", "arguments": '{"id": 7}'}}]},
    {"role": "tool", "content": "sold"},
    {"role": "assistant", "content": "No.", "refusal": "I cannot."},
]


@pytest.mark.parametrize("needs", [frozenset[str](), frozenset({"messages"})], ids=["not read", "read by rules"])
def test_a_conversation_is_listed_message_by_message_with_the_tools_that_are_called(needs: frozenset[str]) -> None:
    assert read(needs, messages=CONVERSATION).messages == (
        Message(role="user", text="Can I\nreturn it?"),
        Message(role="assistant", text='find {"id": 7}'),
        Message(role="tool", text="sold"),
        Message(role="assistant", text="No.\nI cannot."),
    )


def test_a_long_conversation_is_cut_and_counted() -> None:
    said = read(messages=[{"role": "user", "content": "x" * 5_000}] * (bounds.SAID_MESSAGES + 2))
    assert (len(said.messages or ()), said.more_messages) == (bounds.SAID_MESSAGES, 2)
    assert {len(message.text) for message in said.messages or ()} == {bounds.SAID_MESSAGE}


def test_long_texts_are_cut_and_long_lists_counted() -> None:
    calls = [{"name": "n" * 1_000, "arguments": {"x": "y" * 1_000}}] * (bounds.SAID_CALLS + 3)
    said = read(response="x" * 5_000, retrieved_contexts=["c" * 1_000] * (bounds.SAID_CONTEXTS + 2), tool_calls=calls)
    assert said.response == "x" * (bounds.SAID - 1) + "…"
    assert (len(said.contexts or ()), said.more_contexts) == (bounds.SAID_CONTEXTS, 2)
    assert (len(said.tool_calls or ()), said.more_tool_calls) == (bounds.SAID_CALLS, 3)
    assert {len(text) for text in said.contexts or ()} == {bounds.SAID_CONTEXT}
    assert (said.tool_calls or ())[0] == ToolCall(
        name="n" * (bounds.SAID_ARGUMENTS - 1) + "…", arguments='{"x":"' + "y" * (bounds.SAID_ARGUMENTS - 7) + "…"
    )


def test_the_size_of_a_row_is_that_of_all_its_texts() -> None:
    said = Said(response="12", error="3", tool_calls=(ToolCall(name="45", arguments="6"),), contexts=("789", "0"))
    assert said.size == 10
    assert Said(messages=(Message(role="12", text="345"),)).size == 5


def test_a_row_in_memory_says_what_it_has() -> None:
    assert said_in(RunRow(query_id="q", results=[], response="Yes."), 5) == Said(response="Yes.")
