"""The rules of single queries, one by one and together."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcontract.contract.config import PerQuery
from ragcontract.judging.repeats import broken_in_any
from ragcontract.metrics.formulas import metrics_at
from ragcontract.metrics.ranking import Scorer, score_rows
from ragcontract.model import GoldenQuery, Violation
from ragcontract.rules.ranks import broken_rules, never_satisfiable, suspects
from tests.records import query, score_query


def broken(asked: GoldenQuery, results: str, k: int = 5, **switches: Any) -> list[Violation]:
    """Judge a query that returned one document a letter, ``x`` being any other document."""
    score = score_query(asked, [f"x{rank}" if doc == "x" else doc for rank, doc in enumerate(results)], metrics_at(k))
    return broken_rules(asked, score, k, PerQuery(**switches))


def names(violations: list[Violation]) -> list[str]:
    return [violation.rule for violation in violations]


def test_a_query_that_gets_what_it_wants_breaks_nothing() -> None:
    assert broken(query("q", "A", must_rank_at_most=1, forbidden_doc_ids=("F",)), "Axxxx") == []


@pytest.mark.parametrize(
    ("results", "holds"), [("xxAxx", True), ("xxxAx", False), ("xxx", False), ("", False), ("ABxxx", True)]
)
def test_must_rank_at_most_holds_up_to_its_rank(results: str, *, holds: bool) -> None:
    found = broken(query("q", "A", must_rank_at_most=3), results, enforce_must_include=False)
    assert names(found) == ([] if holds else ["must_rank_at_most"])


def test_must_rank_at_most_is_content_with_any_relevant_document() -> None:
    asked = query("q", "A", "B", must_rank_at_most=2)
    assert broken(asked, "xBxxA") == []
    assert names(broken(asked, "xxBAx")) == ["must_rank_at_most"]


def test_must_rank_at_most_looks_below_k() -> None:
    asked = query("q", "A", must_rank_at_most=8)
    assert broken(asked, "xxxxxxxA", enforce_must_include=False) == []
    assert names(broken(asked, "xxxxxxxxA", enforce_must_include=False)) == ["must_rank_at_most"]


@pytest.mark.parametrize(
    ("results", "missing"),
    [("AxxxB", []), ("AxxxxB", ["B"]), ("Axxxx", ["B"]), ("xxxxx", ["A", "B"]), ("xxxxxAB", ["A", "B"])],
)
def test_must_include_wants_all_in_the_top_k(results: str, missing: list[str]) -> None:
    found = broken(query("q", "A", "B"), results)
    assert names(found) == (["must_include"] if missing else [])
    assert [violation.doc_ids for violation in found] == ([missing] if missing else [])


@pytest.mark.parametrize(("results", "holds"), [("xxxxB", True), ("ABxxx", True), ("xxxxxB", False), ("xxxxx", False)])
def test_must_include_any_is_content_with_one_in_the_top_k(results: str, *, holds: bool) -> None:
    found = broken(query("q", "A", "B", must_include_any=True), results)
    assert names(found) == ([] if holds else ["must_include_any"])
    assert all(violation.doc_ids == ["A", "B"] for violation in found)


@pytest.mark.parametrize(
    ("within", "results", "holds"),
    [
        (None, "xxxxxxxxxF", False),
        (None, "xxxxx", True),
        (3, "xxF", False),
        (3, "xxxF", True),
        (1, "Fxx", False),
        (10, "xxxxxxxF", False),
    ],
)
def test_forbidden_documents_are_looked_for_in_all_results_or_the_first(
    within: int | None, results: str, *, holds: bool
) -> None:
    found = broken(query("q", forbidden_doc_ids=("F", "G")), results, forbidden_within=within)
    assert names(found) == ([] if holds else ["forbidden_docs"])
    assert all((violation.doc_ids, violation.limit) == (["F"], within) for violation in found)


def test_only_the_forbidden_documents_that_are_too_near_are_named() -> None:
    (found,) = broken(query("q", forbidden_doc_ids=("F", "G", "H")), "FxxGxH", forbidden_within=4)
    assert found.doc_ids == ["F", "G"]
    assert found.found == "F rank 1, G rank 4"


def test_an_unanswerable_query_is_judged_by_its_forbidden_documents_alone() -> None:
    assert broken(query("q"), "xxxxx") == []
    assert names(broken(query("q", forbidden_doc_ids=("F",)), "xF")) == ["forbidden_docs"]


def test_each_rule_can_be_switched_off() -> None:
    asked = query("q", "A", must_rank_at_most=1, forbidden_doc_ids=("F",))
    assert names(broken(asked, "F")) == ["forbidden_docs", "must_rank_at_most", "must_include"]
    assert names(broken(asked, "F", enforce_forbidden_docs=False)) == ["must_rank_at_most", "must_include"]
    assert names(broken(asked, "F", enforce_must_rank_at_most=False)) == ["forbidden_docs", "must_include"]
    assert names(broken(asked, "F", enforce_must_include=False)) == ["forbidden_docs", "must_rank_at_most"]


@pytest.mark.parametrize(
    ("asked", "results", "expected"),
    [
        (query("q", "A"), "x", ("must_include", 5, "A in top 5", "missing from top 5")),
        (query("q", "A"), "xxxxxxA", ("must_include", 5, "A in top 5", "rank 7")),
        (query("q", "A", "B"), "x", ("must_include", 5, "A and B in top 5", "all missing from top 5")),
        (
            query("q", "A", "B", "C"),
            "BxxxxxC",
            ("must_include", 5, "A and C in top 5", "A missing from top 5, C rank 7"),
        ),
        (
            query("q", "A", "B", must_include_any=True),
            "xxxxxB",
            ("must_include_any", 5, "A or B in top 5", "A missing from top 5, B rank 6"),
        ),
        (
            query("q", "A", "B", "C", must_rank_at_most=1),
            "xABC",
            ("must_rank_at_most", 1, "A, B or C in top 1", "A rank 2, B rank 3, C rank 4"),
        ),
        (query("q", forbidden_doc_ids=("F",)), "xF", ("forbidden_docs", None, "no F in the results", "rank 2")),
        (
            query("q", *"ABCDEFG"),
            "",
            ("must_include", 5, "A, B, C, D, E and 2 more in top 5", "all missing from top 5"),
        ),
        (
            query("q", *"ABCDEFG", must_include_any=True, must_rank_at_most=1),
            "xABCDEFG",
            (
                "must_rank_at_most",
                1,
                "A, B, C, D, E or 2 more in top 1",
                "A rank 2, B rank 3, C rank 4, D rank 5, E rank 6, 2 more",
            ),
        ),
    ],
)
def test_the_words(asked: GoldenQuery, results: str, expected: tuple[str, int | None, str, str]) -> None:
    (violation,) = broken(asked, results)
    assert (violation.rule, violation.limit, violation.expected, violation.found) == expected
    assert violation.message == f"expected {expected[2]}; found: {expected[3]}"


def test_a_query_that_wants_more_than_fits_is_warned_about() -> None:
    queries = [
        query("fits", "A", "B"),
        query("any", "A", "B", "C", must_include_any=True),
        query("never", "A", "B", "C", location="golden.jsonl:3"),
    ]
    (warning,) = never_satisfiable(queries, 2)
    assert warning.startswith("golden.jsonl:3: 'never' wants all 3 relevant documents in the top 2")
    assert list(never_satisfiable(queries, 3)) == []


ranked = st.lists(st.sampled_from("ABCFxyz"), max_size=6, unique=True)


@given(
    st.tuples(st.integers(0, 3), st.one_of(st.none(), st.integers(1, 3)), st.booleans(), st.booleans()),
    st.lists(ranked, min_size=1, max_size=3),
    st.integers(1, 4),
    st.builds(PerQuery, forbidden_within=st.one_of(st.none(), st.integers(1, 2))),
)
def test_no_query_that_breaks_a_rule_is_beyond_suspicion(
    wants: tuple[int, int | None, bool, bool], rows: list[list[str]], k: int, rules: PerQuery
) -> None:
    relevant, at_most, one_is_enough, forbids = wants
    asked = query(
        "q",
        *"ABC"[:relevant],
        must_rank_at_most=at_most if relevant else None,
        must_include_any=one_is_enough,
        forbidden_doc_ids=("F",) if forbids else (),
    )
    scores = score_rows([("q", row) for row in rows], {"q": asked}, Scorer(metrics_at(k)))[0]
    if broken_in_any(asked, scores["q"], k, rules):
        assert suspects([asked], scores, k) == [asked]


def test_queries_whose_documents_are_all_where_they_should_be_are_beyond_suspicion() -> None:
    good, low = query("good", "A", must_rank_at_most=2), query("low", "A", must_rank_at_most=1)
    scores = score_rows([("good", ["x", "A"]), ("low", ["x", "A"])], {"good": good, "low": low}, Scorer(metrics_at(5)))[
        0
    ]
    assert suspects([good, low], scores, 5) == [low]
