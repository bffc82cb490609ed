"""Expectations and findings in words."""

import pytest

from ragcontract.judging.words import NOT_THERE, listed, whereabouts, within


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
    assert listed(docs, "and") == expected
    assert listed(docs, "or", lambda doc: f"<{doc}>").startswith("<A>")


def test_a_place_is_a_number_of_results_or_all_of_them() -> None:
    assert within(3) == "in top 3"
    assert within(None) == "in the results"


def test_one_document_is_not_named_again() -> None:
    assert whereabouts("A", {"A": 2}, 5) == "rank 2"
    assert whereabouts("A", {"A": None}, 5) == "missing from top 5"
    assert whereabouts("A", {}, 5) == "missing from top 5"


def test_where_a_document_was() -> None:
    assert whereabouts("A", {}, 5, before={"A": 1}) == "missing from top 5 (was rank 1)"
    assert whereabouts("A", {"A": 4}, 5, before={"A": 1}) == "rank 4 (was rank 1)"
    assert whereabouts("A", {"A": 4}, 5, before={"A": None}) == "rank 4 (was missing)"
    assert whereabouts("A", {}, 5, before={}) == "missing from top 5 (was missing too)"
    assert whereabouts("F", {"F": 2}, 5, before={}, absent=NOT_THERE) == "rank 2 (was not there)"


def test_several_documents_are_named() -> None:
    assert whereabouts("AB", {"B": 7}, 5) == "A missing from top 5, B rank 7"
    assert whereabouts("AB", {}, 5) == "all missing from top 5"
    before = {"A": 1}
    assert whereabouts("AB", {}, 5, before=before) == (
        "A missing from top 5 (was rank 1), B missing from top 5 (was missing too)"
    )
    ranks = {doc: rank for rank, doc in enumerate("ABCDEFG", start=1)}
    assert whereabouts("ABCDEFG", ranks, 5, quote=str.lower) == (
        "a rank 1, b rank 2, c rank 3, d rank 4, e rank 5, 2 more"
    )
