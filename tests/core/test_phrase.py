"""Sentences with names in them."""

import pytest

from ragcontract.core.phrase import Name, joined, listed, render


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
