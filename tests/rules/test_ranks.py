"""The rules of single queries, one by one and together."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.phrase import Name, render
from ragcontract.core.rule import RuleSettings, Violation
from ragcontract.decision.input_problems import input_problems
from ragcontract.rules.ranks import (
    ABSENT,
    ForbiddenDocs,
    MustInclude,
    MustRankAtMost,
    RankRules,
    located,
    within,
)
from ragcontract.statistics.means import averaged
from tests.records import evaluate, query, score_query
from tests.toys import MustSay


def broken(asked: GoldenQuery, results: str, k: int = 5, **switches: Any) -> list[Violation]:
    """Judge a query that returned one document a letter, ``x`` being any other document."""
    doc_ids = [f"x{rank}" if doc == "x" else doc for rank, doc in enumerate(results)]
    evaluation = evaluate([asked], {asked.id: doc_ids}, config={"k": k, "per_query": switches})
    return list(evaluation.violations.get(asked.id, ()))


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
    assert [violation.doc_ids for violation in found] == ([tuple(missing)] if missing else [])


@pytest.mark.parametrize(("results", "holds"), [("xxxxB", True), ("ABxxx", True), ("xxxxxB", False), ("xxxxx", False)])
def test_must_include_any_is_content_with_one_in_the_top_k(results: str, *, holds: bool) -> None:
    found = broken(query("q", "A", "B", must_include_any=True), results)
    assert names(found) == ([] if holds else ["must_include_any"])
    assert all(violation.doc_ids == ("A", "B") for violation in found)


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
    assert all((violation.doc_ids, violation.limit) == (("F",), within) for violation in found)


def test_only_the_forbidden_documents_that_are_too_near_are_named() -> None:
    (found,) = broken(query("q", forbidden_doc_ids=("F", "G", "H")), "FxxGxH", forbidden_within=4)
    assert found.doc_ids == ("F", "G")
    assert render(found.actual) == "F rank 1, G rank 4"


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
def test_what_is_expected_and_found_is_said(
    asked: GoldenQuery, results: str, expected: tuple[str, int | None, str, str]
) -> None:
    (violation,) = broken(asked, results)
    said = (render(violation.expected), render(violation.actual))
    assert (violation.rule, violation.limit, *said) == expected


def test_a_query_that_wants_more_than_fits_is_warned_about() -> None:
    queries = [
        query("fits", "A", "B"),
        query("any", "A", "B", "C", must_include_any=True),
        query("never", "A", "B", "C", location="golden.jsonl:3"),
    ]
    run = {one.id: ["A", "B", "C"] for one in queries}
    (warning,) = input_problems(evaluate(queries, run, config={"k": 2})).warnings
    assert warning.startswith("golden.jsonl:3: 'never' wants all 3 relevant documents in the top 2")
    assert input_problems(evaluate(queries, run, config={"k": 3})).warnings == ()
    off = {"k": 2, "per_query": {"enforce_must_include": False}}
    assert input_problems(evaluate(queries, run, config=off)).warnings == ()


ranked = st.lists(st.sampled_from("ABCFxyz"), max_size=6, unique=True)


@given(
    st.tuples(st.integers(0, 3), st.one_of(st.none(), st.integers(1, 3)), st.booleans(), st.booleans()),
    st.lists(ranked, min_size=1, max_size=3),
    st.integers(1, 4),
    st.one_of(st.none(), st.integers(1, 2)),
)
def test_no_query_that_breaks_a_rule_looks_as_if_it_held(
    wants: tuple[int, int | None, bool, bool], rows: list[list[str]], k: int, forbidden_within: int | None
) -> None:
    relevant, at_most, one_is_enough, forbids = wants
    asked = query(
        "q",
        *"ABC"[:relevant],
        must_rank_at_most=at_most if relevant else None,
        must_include_any=one_is_enough,
        forbidden_doc_ids=("F",) if forbids else (),
    )
    scores = [score_query(asked, row, k) for row in rows]
    contract = evaluate([asked], {}, config={"k": k, "per_query": {"forbidden_within": forbidden_within}}).contract
    rules = RankRules(contract.rules, contract.settings)
    for score in (*scores, averaged(scores)):
        if any(rules.violations(asked, score)):
            assert rules.may_be_violated(asked, score)


def test_queries_whose_documents_are_all_where_they_should_be_need_no_second_look() -> None:
    good, low = query("good", "A", must_rank_at_most=2), query("low", "A", must_rank_at_most=1)
    rules = RankRules((ForbiddenDocs, MustRankAtMost, MustInclude), RuleSettings(k=5))
    assert not rules.may_be_violated(good, score_query(good, ["x", "A"]))
    assert rules.may_be_violated(low, score_query(low, ["x", "A"]))
    own = query("own", "A", rules=(MustInclude(k=5),))
    assert rules.may_be_violated(own, score_query(own, ["A"]))
    answered = query("answered", "A", rules=(MustSay(phrase="A"),))
    assert not rules.may_be_violated(answered, score_query(answered, ["A"]))


def test_a_query_has_the_rules_that_its_fields_ask_for() -> None:
    settings = RuleSettings(k=7, forbidden_within=3)
    assert ForbiddenDocs.of(query("q", forbidden_doc_ids=("F",)), settings) == [ForbiddenDocs(k=7, within=3)]
    assert MustInclude.of(query("q", "A", must_include_any=True), settings) == [MustInclude(k=7, any=True)]
    nothing = query("q")
    assert [list(rule.of(nothing, settings)) for rule in (ForbiddenDocs, MustInclude)] == [[], []]


def test_a_limit_on_ranks_is_a_number_of_results_or_all_of_them() -> None:
    assert within(3) == "in top 3"
    assert within(None) == "in the results"


def test_one_document_is_not_named_again() -> None:
    assert located("A", {"A": 2}, 5) == ("rank 2",)
    assert located("A", {"A": None}, 5) == ("missing from top 5",)
    assert located("A", {}, 5) == ("missing from top 5",)


def test_where_a_document_was() -> None:
    assert located("A", {}, 5, before={"A": 1}) == ("missing from top 5 (was rank 1)",)
    assert located("A", {"A": 4}, 5, before={"A": 1}) == ("rank 4 (was rank 1)",)
    assert located("A", {"A": 4}, 5, before={"A": None}) == ("rank 4 (was missing)",)
    assert located("A", {}, 5, before={}) == ("missing from top 5 (was missing too)",)
    assert located("F", {"F": 2}, 5, before={}, absent=ABSENT["forbidden"]) == ("rank 2 (was not there)",)


def test_several_documents_are_named() -> None:
    assert located("AB", {"B": 7}, 5) == (Name("A"), " missing from top 5", ", ", Name("B"), " rank 7")
    assert located("AB", {}, 5) == ("all missing from top 5",)
    assert render(located("AB", {}, 5, before={"A": 1})) == (
        "A missing from top 5 (was rank 1), B missing from top 5 (was missing too)"
    )
    ranks = {doc: rank for rank, doc in enumerate("ABCDEFG", start=1)}
    assert render(located("ABCDEFG", ranks, 5), str.lower) == (
        "a rank 1, b rank 2, c rank 3, d rank 4, e rank 5, 2 more"
    )
