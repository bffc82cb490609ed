"""Sentences with names in them."""

import pytest

from ragcontract.core.phrase import Location, Message, Name, cut, joined, listed, private, render, without_values
from ragcontract.files.problems import Collector


@pytest.mark.parametrize(
    ("docs", "expected"),
    [
        ("A", "A"),
        ("AB", "A and B"),
        ("ABC", "A, B and C"),
        ("ABCDE", "A, B, C, D and E"),
        ("ABCDEFG", "A, B, C, D, E and 2 more"),
    ],
)
def test_names_are_listed(docs: str, expected: str) -> None:
    assert render(listed(docs, "and")) == expected
    assert render(listed(docs, "or"), lambda doc: f"<{doc}>").startswith("<A>")


def test_names_and_the_text_around_them_are_written_each_in_its_own_way() -> None:
    phrase = ("no ", Name("a_b"), " or ", Name("c"), " in top 5")
    assert render(phrase) == "no a_b or c in top 5"
    assert render(phrase, lambda name: f"`{name}`", str.upper) == "NO `a_b` OR `c` IN TOP 5"


def test_a_count_of_further_names_is_no_name() -> None:
    assert [part.name for part in listed("ABCDEFG", "or") if isinstance(part, Name)] == list("ABCDE")
    assert listed([], "and") == ()


def test_phrases_are_joined_by_commas_and_others_counted() -> None:
    first, second = (Name("a"), " rank 1"), (Name("b"),)
    assert joined([]) == joined([], -2) == ()
    assert joined([first]) == first
    assert joined([first, second], 1_200) == (*first, ", ", *second, ", ", "1,200 more")


HAS = Message.quoting("has the mode ", private("secret"), ", expected abstain")


@pytest.mark.parametrize(
    ("message", "without"),
    [
        ("has no mode, found it", "has no mode, found it"),
        (HAS, "has the mode (not shown)"),
        (Message.of('query "q1" ', HAS, " (in turn 2)"), 'query "q1" has the mode (not shown)'),
        (str(ValueError(HAS)), "has the mode (not shown)"),
        (cut(HAS, 18), "has the mode (not shown)"),
        (cut(HAS, 8), "has the…"),
    ],
)
def test_a_message_can_be_shown_without_its_values(message: str, without: str) -> None:
    assert without_values(message) == without


def test_a_message_that_is_too_long_is_cut_like_any_text() -> None:
    assert cut(HAS, 18) == "has the mode secr…"
    assert cut(HAS, len(HAS)) == HAS


def test_problems_of_one_sort_are_one_message_without_its_value() -> None:
    problems = Collector()
    for line in range(1, 6):
        problems.problem(Location("run.jsonl", line), HAS)
    (problem,) = problems.collected().problems
    assert problem == f"run.jsonl:1: {HAS} (and 4 more like this, in lines 1 to 5)"
    assert without_values(problem) == "run.jsonl:1: has the mode (not shown)"
