"""Conversations that are split into turns."""

from typing import Any

import pytest

from ragcontract.answers.conversation import turns_of, unanswered, whole
from ragcontract.core import bounds
from ragcontract.core.rule import Turn
from ragcontract.core.run import RunRow

USER = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}
CALL = {"id": "1", "type": "function", "function": {"name": "get_order", "arguments": "{}"}}


def row(*messages: Any, **fields: Any) -> RunRow:
    """Return a row with these messages."""
    return RunRow(query_id="q1", messages=list(messages), **fields)


def said(content: Any, **fields: Any) -> dict[str, Any]:
    """Return a message of the assistant."""
    return {"role": "assistant", "content": content, **fields}


def split(*messages: Any, turns: int = 1, **fields: Any) -> tuple[Turn, ...]:
    """Return the turns of valid messages."""
    found = turns_of(row(*messages, **fields), turns)
    assert not isinstance(found, str), found
    return found


def test_a_turn_has_the_texts_and_the_calls_of_the_assistant() -> None:
    messages = [
        {"role": "system", "content": "Be kind."},
        said("Hello!"),
        USER,
        said(None, tool_calls=[CALL]),
        {"role": "tool", "content": "shipped", "tool_call_id": "1"},
        said("Shipped."),
        USER,
        said([{"type": "text", "text": "30"}, {"type": "output_text", "text": "days"}, {"type": "audio"}]),
    ]
    first, second = split(*messages, turns=2)
    assert (first.message, first.row.response, first.row.tool_calls) == (2, "Hello!\nShipped.", [CALL])
    assert (second.message, second.row.response, second.row.tool_calls) == (6, "30days", [])


@pytest.mark.parametrize("message", [None, said(None), said([]), {"role": "assistant"}])
def test_a_turn_without_text_has_no_response(message: Any) -> None:
    (turn,) = split(USER, *([message] if message else []))
    assert turn.row.response is None


@pytest.mark.parametrize("message", [said(None, refusal="No."), said([{"type": "refusal", "refusal": "No."}])])
def test_a_refusal_is_no_text_of_the_answer(message: Any) -> None:
    (turn,) = split(USER, message)
    assert (turn.row.response, turn.row.refusal) == (None, "No.")


WRONG: dict[str, tuple[list[Any], str]] = {
    "no role": ([{"content": "x"}], "has nothing as the role of messages[0]; expected "),
    "another role": (
        [USER, {"role": "bot"}],
        'has "bot" as the role of messages[1]; expected "system", ',
    ),
    "a role that is no text": ([{"role": ["user"]}], "as the role of messages[0]; expected "),
    "a number for text": (
        [USER, said(7)],
        "has 7 as the content of messages[1]; expected text, a list of parts, or null",
    ),
    "a part that is none": ([USER, said(["x"])], "has no type in messages[1].content[0]; expected "),
    "a part without its text": (
        [USER, said([{"type": "text"}])],
        'has no text in messages[1].content[0], whose type is "text"',
    ),
    "a refusal that is none": (
        [USER, said("x", refusal=1)],
        "has 1 as the refusal of messages[1]; expected text or null",
    ),
    "calls that are none": (
        [USER, said("x", tool_calls=[1])],
        "as the tool_calls of messages[1]; expected a list of calls",
    ),
    "a turn too few": (
        [USER],
        "has 1 turn in messages, and its golden row has 2; a turn begins at each message of the user",
    ),
    "a turn too many": ([USER] * 3, "has 3 turns in messages, and its golden row has 2; a turn begins at"),
    "none at all": ([], "has 0 turns in messages, and its golden row has 2"),
}


@pytest.mark.parametrize(("messages", "why"), WRONG.values(), ids=WRONG.keys())
def test_messages_that_are_no_such_conversation_are_refused(messages: list[Any], why: str) -> None:
    found = turns_of(row(*messages), 2)
    assert isinstance(found, str)
    assert why in found


def test_a_row_without_messages_is_refused() -> None:
    found = turns_of(RunRow(query_id="q1"), 1)
    assert isinstance(found, str)
    assert found.startswith("has no messages, which its turns need; export ")


def test_an_answer_is_as_long_as_that_of_a_row() -> None:
    assert split(USER, said("a" * bounds.ANSWER))
    found = turns_of(row(USER, said("a" * bounds.ANSWER), said("")), 1)
    assert found == f"has an answer of more than {bounds.ANSWER:,} characters in turn 1"


def test_turns_after_an_error_are_unanswered() -> None:
    turns = split(USER, said("Hi."), turns=3, error="timeout")
    assert [(turn.row.response, turn.row.error, turn.message) for turn in turns] == [
        ("Hi.", None, 0),
        (None, "timeout", None),
        (None, "timeout", None),
    ]
    (turn,) = split(USER, said("Hi."), error="timeout")
    assert turn.row.error == "timeout"
    assert len(unanswered(RunRow(query_id="q1"), 2)) == 2


def test_metrics_see_the_calls_of_all_turns_and_the_last_response() -> None:
    conversation = row(USER, said("a", tool_calls=[CALL]), USER, said("b", tool_calls=[CALL]))
    turns = turns_of(conversation, 2)
    assert not isinstance(turns, str)
    joined = whole(conversation, turns)
    assert (joined.response, joined.tool_calls) == ("b", [CALL, CALL])
    own = row(USER, said("a", tool_calls=[CALL]), response="own", tool_calls=[])
    assert whole(own, turns) == own


def test_an_error_before_the_first_turn_leaves_all_turns_without_an_answer() -> None:
    for messages in (None, list[dict[str, Any]]()):
        turns = turns_of(RunRow(query_id="q", results=[], messages=messages, error="down"), 2)
        assert [turn.row.error for turn in turns if not isinstance(turn, str)] == ["down", "down"]
