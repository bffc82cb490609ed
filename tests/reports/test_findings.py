"""Rules that one cause breaks are one finding."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from ragcontract.contract.config import Config, PerQuery
from ragcontract.reports.findings import Finding, findings, tolerated_findings
from tests.records import query, report


def found(
    results: str,
    *relevant: str,
    before: str | None = None,
    k: int = 5,
    rules: PerQuery | None = None,
    **fields: Any,
) -> list[Finding]:
    """Return the findings of a query that retrieved one document a letter."""
    docs = {"q": _docs(results)}
    baseline = None if before is None else {"q": _docs(before)}
    judged = report([query("q", *relevant, **fields)], docs, baseline, Config(k=k, per_query=rules or PerQuery()))
    return findings(judged.queries[0], k)


def _docs(letters: str) -> list[str]:
    return [f"x{rank}" if letter == "x" else letter for rank, letter in enumerate(letters)]


def lines(items: Sequence[Finding]) -> list[str]:
    return [f"{item.expected()} | {item.found()}" for item in items]


def test_nothing_is_wrong() -> None:
    assert found("A", "A", must_rank_at_most=1) == []


@pytest.mark.parametrize(
    ("n", "k", "expected"),
    [
        (3, 5, "A in top 3 | missing from top 5 (was rank 1)"),
        (5, 5, "A in top 5 | missing from top 5 (was rank 1)"),
        (8, 5, "A in top 5 | missing from top 8 (was rank 1)"),
    ],
)
def test_a_document_that_is_lost_is_missing_from_the_larger_of_k_and_n(n: int, k: int, expected: str) -> None:
    assert lines(found("xxxxx", "A", before="A", k=k, must_rank_at_most=n)) == [expected]


@pytest.mark.parametrize(
    ("results", "n", "expected"),
    [
        ("xxxxxxA", 3, "A in top 3 | rank 7"),  # out of both: one finding, and where it is
        ("xxxA", 3, "A in top 3 | rank 4"),  # in the top k and too low: must_rank_at_most alone
        ("xxxxxxA", 8, "A in top 5 | rank 7"),  # near enough for n, not for k: must_include alone
        ("xxxxxxxxxA", 8, "A in top 5 | rank 10"),
    ],
)
def test_a_document_that_is_too_low(results: str, n: int, expected: str) -> None:
    assert lines(found(results, "A", must_rank_at_most=n)) == [expected]


def test_where_every_document_is_out_it_is_one_finding() -> None:
    (finding,) = found("xxxxx", "A", "B", before="AB", must_rank_at_most=3)
    assert finding.expected() == "A and B in top 5, one of them in top 3"
    assert finding.found() == "A missing from top 5 (was rank 1), B missing from top 5 (was rank 2)"


def test_where_k_is_the_narrower_all_are_wanted_there() -> None:
    assert lines(found("xxxxx", "A", "B", k=2, must_rank_at_most=4)) == ["A and B in top 2 | all missing from top 4"]


def test_any_one_of_several_is_wanted_in_the_narrower_place() -> None:
    wide = found("xxxxx", "A", "B", must_include_any=True, must_rank_at_most=3)
    assert lines(wide) == ["A or B in top 3 | all missing from top 5"]
    narrow = found("xxxxxxA", "A", "B", k=2, must_include_any=True, must_rank_at_most=3)
    assert lines(narrow) == ["A or B in top 2 | A rank 7, B missing from top 3"]


def test_one_too_low_and_another_missing_are_two() -> None:
    assert lines(found("xxxA", "A", "B", must_rank_at_most=2)) == [
        "A or B in top 2 | A rank 4, B missing from top 5",
        "B in top 5 | missing from top 5",
    ]


def test_one_high_enough_and_another_missing_is_one() -> None:
    assert lines(found("A", "A", "B", "C", must_rank_at_most=1)) == ["B and C in top 5 | all missing from top 5"]


def test_must_rank_at_most_alone_is_missing_from_k_where_that_is_larger() -> None:
    rules = PerQuery(enforce_must_include=False)
    assert lines(found("xxxxx", "A", must_rank_at_most=3, rules=rules)) == ["A in top 3 | missing from top 5"]
    assert lines(found("xxxxx", "A", must_rank_at_most=9, rules=rules)) == ["A in top 9 | missing from top 9"]


def test_forbidden_documents_come_first_and_apart() -> None:
    items = found("xFG", "A", before="FA", must_rank_at_most=1, forbidden_doc_ids=("F", "G", "H"))
    assert lines(items) == [
        "no F or G in the results | F rank 2 (was rank 1), G rank 3 (was not there)",
        "A in top 1 | missing from top 5 (was rank 2)",
    ]
    rules = PerQuery(forbidden_within=2)
    assert lines(found("FxF", forbidden_doc_ids=("F",), rules=rules)) == ["no F in top 2 | rank 1"]


def test_without_a_baseline_nothing_is_said_of_before() -> None:
    (finding,) = found("xxxxx", "A")
    assert finding.before is None
    assert finding.found() == "missing from top 5"


def test_what_was_missing_before_is_no_news() -> None:
    (finding,) = found("xxxxx", "A", before="x")
    assert finding.found() == "missing from top 5 (was missing too)"
    assert finding.found(with_before=False) == "missing from top 5"


def test_names_are_quoted_for_their_place() -> None:
    (finding,) = found("xxxxx", "A", "B", before="A")
    assert finding.expected(lambda doc: f"<{doc}>") == "<A> and <B> in top 5"
    assert finding.found(lambda doc: f"<{doc}>") == (
        "<A> missing from top 5 (was rank 1), <B> missing from top 5 (was missing too)"
    )


def test_of_a_query_that_fails_what_is_waived_is_told_apart() -> None:
    asked = [query("q", "A", "B", forbidden_doc_ids=("F",))]
    (judged,) = report(asked, {"q": ["A", "F"]}, None, Config()).queries
    forbidden, included = judged.violations
    waived = msgspec.structs.replace(included, waived="until 2099-12-31, ann: known")
    partly = msgspec.structs.replace(judged, violations=[forbidden, waived])
    assert lines(findings(partly, 5)) == ["no F in the results | rank 2"]
    assert lines(tolerated_findings(partly, 5)) == ["B in top 5 | missing from top 5"]
    assert tolerated_findings(judged, 5) == []
    warned = msgspec.structs.replace(partly, status="warn")
    assert lines(tolerated_findings(warned, 5)) == ["no F in the results | rank 2", "B in top 5 | missing from top 5"]
