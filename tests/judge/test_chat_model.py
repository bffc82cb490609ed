"""What all endpoints have in common."""

import pytest

from ragcontract.judge.chat_model import estimated_tokens, text_in, whole_number
from tests.judge.lab import Judge, an_ask
from tests.judge_server import Fault, JudgeServer


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("abc", 1), ("abcd", 2), ("a b", 1), ("123", 3), ("語語", 2), ("Ab, 1", 3), ("é", 1)]
)
def test_tokens_are_estimated_as_rather_too_many(text: str, tokens: int) -> None:
    assert estimated_tokens(an_ask(system="", user=text)) == tokens


@pytest.mark.parametrize("value", [-1, 1.5, True, "3", None, 10**30])
def test_what_is_no_number_of_tokens_is_none(value: object) -> None:
    assert whole_number(value) is None


def test_texts_are_taken_out_of_what_may_hold_them() -> None:
    assert text_in([{"text": "a"}, 7, {"text": None}, {"text": "b"}]) == "ab"
    assert (text_in(7), text_in(None)) == ("", "")


def test_half_a_character_in_a_reply_can_be_written() -> None:
    content = b'{"choices": [{"message": {"content": "a\\ud800b"}}], "model": "m\\udfff"}'
    with JudgeServer(faults=[Fault(status=200, content=content)]) as server:
        reply = Judge(server.openai).model.ask(an_ask())
    assert (reply.text, reply.model) == ("a?b", "m?")
