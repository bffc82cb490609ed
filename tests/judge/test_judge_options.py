"""Options of a judging: what is wrong with them, and what they mean."""

import pytest

from ragcontract.judge.judging_run import JudgeOptions


def wrong(**options: object) -> dict[str, str]:
    return dict(JudgeOptions(**{"model": "toy", **options}).wrong())  # type: ignore[arg-type]


def test_all_that_is_wrong_is_said_at_once() -> None:
    found = wrong(model=" ", votes=2, max_calls=-1, deadline="soon", max_usd=1, timeout=float("nan"))
    assert set(found) == {"model", "votes", "max_calls", "deadline", "max_usd", "timeout"}
    assert found["votes"] == "expected an odd number, so that a majority decides, found 2"
    assert found["deadline"] == "expected a time such as 90s, 20m or 2h, found 'soon'"


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("votes", 2.5),
        ("votes", 3.0),
        ("votes", "3"),
        ("votes", True),
        ("retries", None),
        ("timeout", "1"),
        ("timeout", float("inf")),
        ("confirm", "some"),
        ("model", None),
        ("deadline", 20),
    ],
)
def test_what_python_can_pass_and_a_command_line_cannot_is_refused_too(option: str, value: object) -> None:
    assert list(wrong(**{option: value})) == [option]


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("20m", 1_200), ("1.5min", 90), ("2h", 7_200)])
def test_a_deadline_is_a_time_with_its_unit(text: str, seconds: float) -> None:
    assert JudgeOptions(model="toy", deadline=text).budget.deadline == seconds


@pytest.mark.parametrize("text", ["", "0s", "20", "-1m", "m", "8d", "1000h"])
def test_what_is_no_time_is_refused(text: str) -> None:
    assert "deadline" in wrong(deadline=text)


def test_money_needs_both_prices() -> None:
    assert "max_usd" in wrong(max_usd=1, price_in=1)
    assert not wrong(max_usd=1, price_in=1, price_out=0)


def test_options_are_handed_on() -> None:
    options = JudgeOptions(model="toy", votes=5, max_reply=9, max_calls=7, timeout=3, concurrency=2)
    assert (options.settings.votes, options.settings.max_tokens) == (5, 9)
    assert (options.budget.max_calls, options.limits.seconds, options.limits.concurrency) == (7, 3, 2)
