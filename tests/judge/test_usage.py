"""What replies cost, shared out among the items that they were about: the shares add up to the whole."""

from ragcontract.judge.interface import Reply
from ragcontract.judge.judge_case import ItemUsage, Usage


def usage(*numbers: int) -> tuple[Usage, list[ItemUsage]]:
    made = Usage()
    return made, [made.of(number) for number in numbers]


def test_the_shares_of_calls_tokens_and_calls_that_were_sent_again_add_up() -> None:
    made, items = usage(0, 1, 2)
    made.add([0, 1, 2], Reply(text="", tokens_in=100, tokens_out=10, retried=1))
    made.add([1], Reply(text="", tokens_in=50, tokens_out=5))
    for field, total in (("calls", 3), ("retried", 1), ("tokens_in", 150), ("tokens_out", 15)):
        assert sum(getattr(item, field) for item in items) == total, field
    assert items[0].tokens_in == 33
    assert items[1].tokens_in == 33 + 50


def test_a_compromised_reply_is_counted_once_whatever_it_was_about() -> None:
    made, items = usage(0, 1, 2)
    made.add_compromised([0, 1, 2])
    made.add_compromised([0])
    assert sum(item.compromised for item in items) == 2
