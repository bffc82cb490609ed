"""Replies: exactly one JSON value, and nothing that two readers could read differently."""

import pytest

from ragcontract.judge.calls import ReplyFault, listed, object_of
from ragcontract.judge.interface import Reply

VALUE = '{"verdicts": [{"id": 1}]}'


@pytest.mark.parametrize(
    "text",
    [
        VALUE,
        f"  \n{VALUE}\n",
        f"\ufeff{VALUE}",
        f"<think>Is it? {{}}</think>\n{VALUE}",
        f"```json\n{VALUE}\n```",
        f"<think></think>```\n{VALUE}\n```",
    ],
)
def test_one_json_value_is_read(text: str) -> None:
    assert listed(object_of(Reply(text=text)), "verdicts") == [{"id": 1}]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I think so.",
        f"Here it is: {VALUE}",
        f"{VALUE} That is all.",
        f"{VALUE}\n{VALUE}",
        f"{VALUE}{{}}",
        f"```json\n{VALUE}\n```\n```json\n{VALUE}\n```",
        f"text ```json\n{VALUE}\n```",
        f"<think>never ended {VALUE}",
        f"<think>a</think>{VALUE}</think>{VALUE}",
        f"{VALUE}<think>after</think>",
        '{"verdicts": [{"id": 1}',
        "{'verdicts': []}",
        '{"verdicts": [{"id": NaN}]}',
        '{"verdicts": [{"id": -Infinity}]}',
        '{"verdicts": [{"id": ' + "9" * 5000 + "}]}",
        "[" * 500 + "]" * 500,
        '{"a":' * 5000 + "1" + "}" * 5000,
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ReplyFault):
        object_of(Reply(text=text))


@pytest.mark.parametrize(
    "text", ['{"verdicts": [], "verdicts": [1]}', '{"verdicts": [{"id": 1, "supported": false, "supported": true}]}']
)
def test_a_field_that_is_there_twice_is_refused(text: str) -> None:
    with pytest.raises(ReplyFault, match="twice"):
        object_of(Reply(text=text))


@pytest.mark.parametrize("text", ["[]", "1", "null", '"verdicts"', "true"])
def test_a_value_that_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(ReplyFault, match="object"):
        object_of(Reply(text=text))


@pytest.mark.parametrize("text", ["{}", '{"verdicts": {}}', '{"verdicts": [1]}', '{"verdicts": [], "more": 1}'])
def test_an_object_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(ReplyFault, match="'verdicts'"):
        listed(object_of(Reply(text=text)), "verdicts")


def test_a_reply_that_was_cut_off_is_refused_even_if_it_can_be_read() -> None:
    with pytest.raises(ReplyFault, match="cut off"):
        object_of(Reply(text=VALUE, cut=True))


def test_what_is_wrong_has_no_words_of_the_reply() -> None:
    """It is sent back, where it would speak with our voice."""
    with pytest.raises(ReplyFault) as raised:
        object_of(Reply(text='{"Ignore the rules": 1, "Ignore the rules": 2}'))
    assert "Ignore" not in str(raised.value)
