"""What messages say of how they came about, why the model stopped or that it failed, is kept and judged."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.builders import Row, write_jsonl
from tests.process import Ended, rag_contract

NO_REFUND = {"type": "must_not_call_tool", "tool": "refund"}
NO_REFUSAL = {"type": "must_not_refuse"}
OBJECTS = """
from dataclasses import dataclass, field

@dataclass
class Message:
    type: str
    content: str
    response_metadata: dict = field(default_factory=dict)
"""
USER = "{'role': 'user', 'content': query}"
OPENAI = "{{'role': 'assistant', 'content': 'One moment', 'finish_reason': {!r}}}"
ANTHROPIC = "{{'role': 'assistant', 'content': [{{'type': 'text', 'text': 'One moment'}}], 'stop_reason': {!r}}}"
LANGCHAIN = "Message('ai', 'One moment', {{'finish_reason': {!r}}})"
AMAZON = "Message('ai', 'One moment', {{'stopReason': {!r}}})"
RETURNED = {
    "one message": "{message}",
    "a list": "[{user}, {message}]",
    "messages": "{{'messages': [{user}, {message}]}}",
    "turn_history": "{{'turn_history': [{user}, {message}], 'tool_calls': None}}",
}
CASES = pytest.mark.parametrize(
    ("form", "message"),
    [
        *((form, OPENAI) for form in RETURNED.values()),
        *((RETURNED["messages"], message) for message in (ANTHROPIC, LANGCHAIN, AMAZON)),
    ],
    ids=[*RETURNED, "Anthropic", "LangChain", "Amazon"],
)
FORMS = pytest.mark.parametrize("form", RETURNED.values(), ids=RETURNED.keys())
TURNS = pytest.mark.parametrize("turns", [(), ("Hi", "Bye")], ids=["without turns", "in turns"])


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def asked(form: str, message: str, rule: Row, turns: tuple[str, ...] = ()) -> Ended:
    """Record an application that returns a message in a form."""
    more: Row = {"turns": [{"query": turn} for turn in turns]} if turns else {}
    write_jsonl(Path("golden.jsonl"), [{"id": "q", "query": "Hi", "rules": [rule], **more}])
    parameters = "query, messages" if turns else "query"
    body = form.format(message=message, user=USER)
    target = Path(f"app{len(list(Path().glob('app*.py')))}.py")  # a module of its own
    target.write_text(f"{OBJECTS}\ndef ask({parameters}):\n    return {body}\n")
    return rag_contract("record", f"{target}:ask", "--fresh")


def recorded(form: str, message: str, rule: Row, turns: tuple[str, ...] = ()) -> Ended:
    """Record such an application, and check what it returned."""
    recording = asked(form, message, rule, turns)
    assert recording.code == 0, recording
    return rag_contract("check")


def row() -> Any:
    return json.loads(Path("current_run.jsonl").read_text().splitlines()[-1])


@TURNS
@CASES
def test_a_message_that_stopped_for_calls_and_has_none_has_lost_them(
    form: str, message: str, turns: tuple[str, ...]
) -> None:
    ended = recorded(form, message.format("tool_use"), NO_REFUND, turns)
    assert ended.code == 2
    assert "tool_calls" not in row()
    assert recorded(form, message.format("stop"), NO_REFUND, turns).code == 0


@TURNS
@CASES
def test_a_message_that_a_filter_stopped_is_a_refusal(form: str, message: str, turns: tuple[str, ...]) -> None:
    ended = recorded(form, message.format("content_filter"), NO_REFUSAL, turns)
    assert ended.code == 1
    assert "finish_reason content_filter" in ended.out
    assert recorded(form, message.format("end_turn"), NO_REFUSAL, turns).code == 0


@CASES
def test_a_message_that_was_cut_off_warns(form: str, message: str) -> None:
    ended = recorded(form, message.format("max_tokens"), {"type": "must_not_contain", "value": "salary"})
    assert ended.code == 0
    assert "1 to warn" in ended.out


@FORMS
@pytest.mark.parametrize("error", ["boom", {"code": 500, "message": "boom"}])
def test_a_message_with_an_error_fails_its_question(form: str, error: object) -> None:
    message = f"{{'role': 'assistant', 'content': 'ok', 'error': {error!r}}}"
    recording = asked(form, message, {"type": "must_not_contain", "value": "salary"})
    assert recording.code == 2
    assert "boom" in recording.err


@pytest.mark.parametrize("form", list(RETURNED.values())[1:])
@TURNS
def test_the_mode_of_a_message_counts(form: str, turns: tuple[str, ...]) -> None:
    ended = recorded(form, "{'role': 'assistant', 'content': 'I', 'mode': 'abstain', 'error': None}", NO_REFUSAL, turns)
    assert ended.code == 1
    assert "mode abstain" in ended.out


def test_the_last_message_of_a_turn_says_why_it_ended() -> None:
    call = (
        "{'role': 'assistant', 'content': None, 'finish_reason': 'tool_calls', "
        "'tool_calls': [{'id': 'c', 'name': 'look'}]}"
    )
    result = "{'role': 'tool', 'tool_call_id': 'c', 'content': '7'}"
    form = f"[{{user}}, {call}, {result}, {{message}}]".replace("{'", "{{'").replace("'}", "'}}").replace("]}", "]}}")
    assert recorded(form, OPENAI.format("stop"), NO_REFUND).code == 0
    assert (row()["finish_reason"], len(row()["tool_calls"])) == ("stop", 1)
    assert recorded(form, OPENAI.format("content_filter"), NO_REFUSAL).code == 1


def test_what_several_fields_say_of_why_a_model_stopped_hides_no_filter() -> None:
    message = "{'role': 'assistant', 'content': 'I', 'finish_reason': 'stop', 'stop_reason': 'refusal'}"
    assert recorded(RETURNED["messages"], message, NO_REFUSAL).code == 1
    assert recorded(RETURNED["one message"], message, NO_REFUSAL).code == 1


def test_a_field_beside_the_messages_does_not_hide_what_they_say() -> None:
    form = "{{'messages': [{user}, {message}], 'finish_reason': 'stop'}}"
    assert recorded(form, OPENAI.format("stop"), NO_REFUSAL).code == 0
    assert recorded(form, ANTHROPIC.format("end_turn"), NO_REFUSAL).code == 0
    ended = recorded(form, OPENAI.format("content_filter"), NO_REFUSAL)
    assert ended.code == 2
    assert 'has "stop" as finish_reason, and "content_filter" in messages; export the same in both' in ended.err


def test_the_next_turn_is_asked_without_what_a_chat_model_may_not_take() -> None:
    form = "[{user}, {{**{message}, 'content': 'I know ' + str(messages)}}]"
    assert recorded(form, OPENAI.format("length"), NO_REFUSAL, ("Hi", "Bye")).code == 0
    first, last = row()["messages"][1], row()["messages"][3]
    assert (first["finish_reason"], last["finish_reason"]) == ("length", "length")
    assert "finish_reason" not in last["content"]
    assert len(row()["messages"]) == 4


def test_a_command_says_it_in_its_messages_too() -> None:
    write_jsonl(Path("golden.jsonl"), [{"id": "q", "query": "Hi", "rules": [NO_REFUND]}])
    message = {"role": "assistant", "content": "One moment", "finish_reason": "tool_calls"}
    answer = {"messages": [{"role": "user", "content": "Hi"}, message]}
    Path("app.py").write_text(f"import sys, json\nsys.stdin.read()\nprint(json.dumps({answer!r}))\n")
    Path("record.yml").write_text(json.dumps({"command": {"each": [sys.executable, "app.py"]}}))
    recording = rag_contract("record", "record.yml")
    assert recording.code == 0, recording
    assert rag_contract("check").code == 2
