"""Keys: equal for equal texts and judges, on every machine, and different if anything differs that was asked."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ragcontract.judgments.items import AskedJudge, Item, JudgeCase, is_failure, keys_of, label_of
from tests.runs.judgment_lines import JUDGE

CASE = JudgeCase(
    task="criteria",
    query_id="q1",
    question="How long?",
    items=(Item(name="claim:1", text="a", why="b"), Item(name="claim:2", text="c")),
    contexts=("first", "second"),
    response="30 days",
    reference="a month",
)


def keys(case: JudgeCase = CASE, judge: AskedJudge = JUDGE) -> tuple[str, ...]:
    (of_judge,) = keys_of(case, [judge])
    return of_judge


def test_keys_are_what_they_were() -> None:
    """A change here makes everybody ask everything again."""
    assert [key[:16] for key in keys()] == ["f4e1b1573ee0150b", "116433f0c2a5c803"]


@pytest.mark.parametrize(
    "change",
    [
        {"task": "confirmation"},
        {"question": "How long? "},
        {"contexts": ("second", "first")},
        {"contexts": ("firstsecond",)},
        {"contexts": ()},
        {"response": None},
        {"response": ""},
        {"reference": None},
        {"items": (Item(name="claim:1", text="a"), Item(name="claim:2", text="c"))},
        {"items": (Item(name="claim:1", text="a", why="b"), Item(name="claim:2", text="d"))},
        {"items": tuple(reversed(CASE.items))},
    ],
)
def test_any_change_of_what_is_asked_changes_all_keys(change: dict[str, Any]) -> None:
    assert set(keys(replace(CASE, **change))).isdisjoint(keys())


def test_names_that_change_places_take_no_verdict_with_them() -> None:
    """Who swaps the ids of two criteria must not have the verdict on one count for the other."""
    first, second = CASE.items
    swapped = replace(CASE, items=(replace(first, name=second.name), replace(second, name=first.name)))
    assert set(keys(swapped)).isdisjoint(keys())


def test_a_text_that_moves_from_one_field_to_another_changes_the_key() -> None:
    moved = replace(CASE, response=CASE.reference, reference=CASE.response)
    assert set(keys(moved)).isdisjoint(keys())


def test_the_id_of_the_query_is_not_part_of_a_key() -> None:
    assert keys(replace(CASE, query_id="q2")) == keys()


@pytest.mark.parametrize(
    "change",
    [{"protocol": 2}, {"instructions": "x"}, {"model": "n"}, {"host": "h"}, {"votes": 1}, {"confirm": "all"}],
)
def test_another_judge_makes_other_keys(change: dict[str, Any]) -> None:
    assert set(keys(CASE, replace(JUDGE, **change))).isdisjoint(keys())


@given(st.lists(st.text(), min_size=2, max_size=2, unique=True))
def test_different_texts_have_different_keys(texts: list[str]) -> None:
    one, other = (replace(CASE, response=text) for text in texts)
    assert set(keys(one)).isdisjoint(keys(other))


def test_text_that_is_no_unicode_has_a_key_too() -> None:
    assert keys(replace(CASE, response="\ud800")) != keys(replace(CASE, response="\udbff"))


@pytest.mark.parametrize(
    ("verdict", "failure", "label"),
    [
        (True, False, True),
        (False, True, False),
        ("asserts_unsupported", True, True),
        ("denies_or_reports_absence", False, False),
        ("supported_by_context", False, False),
    ],
)
def test_a_verdict_speaks_for_or_against_and_is_yes_or_no(verdict: Any, failure: bool, label: bool) -> None:
    assert (is_failure(verdict), label_of(verdict)) == (failure, label)
