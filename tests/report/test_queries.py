"""Which queries a report lists."""

import json

import pytest

from ragcontract.core import bounds
from ragcontract.decision.decide import decide
from ragcontract.evaluation.source import Local
from ragcontract.pipeline import Outcome
from ragcontract.report import markdown
from ragcontract.report.formats import FORMATS
from ragcontract.report.record import Detail
from tests.records import NOW, Rows, evaluate, query, report_on

QUERIES = [
    query("same", "A"),
    query("worse", "A"),
    query("better", "A"),
    query("new", "A"),
    query("broken", "A"),
    query("to-warn", "A", severity="warn"),
    query("forbidden-moved", "A", forbidden_doc_ids=("F",)),
]
BEFORE = {
    "same": ["A"],
    "worse": ["A"],
    "better": ["x", "A"],
    "broken": ["x"],
    "to-warn": ["x"],
    "forbidden-moved": ["A", "F"],
}
NOW_FOUND = {
    "same": ["A", "y"],
    "worse": ["x", "A"],
    "better": ["A"],
    "new": ["A"],
    "broken": ["x"],
    "to-warn": ["x"],
    "forbidden-moved": ["A", "x", "F"],
}
RULES = {"per_query": {"forbidden_within": 1}}
LISTED: dict[Detail, list[str]] = {
    "failed": ["broken", "to-warn"],
    "changed": ["worse", "better", "broken", "to-warn", "forbidden-moved"],
    "all": [one.id for one in QUERIES],
}


def made(detail: Detail | None, *, more: int = 0, compared: bool = True) -> Outcome:
    """Check, with so many ``more`` queries that did not move."""
    others = [query(f"q{number}", "A") for number in range(more)]
    found = {one.id: ["A"] for one in others}
    evaluation = evaluate([*QUERIES, *others], NOW_FOUND | found, BEFORE | found if compared else None, RULES)
    report = report_on(evaluation)
    decision = decide(evaluation, NOW)
    return Outcome(
        report=report,
        evaluation=evaluation,
        decision=decision,
        detail=detail or report.detail,
        run=Local(Rows(docs={}, name="run.jsonl")),
        baseline=None,
        shows_answers=True,
    )


def as_json(one: Outcome) -> dict[str, object]:
    form = next(form for form in FORMATS if form.name == "report-json")
    loaded: dict[str, object] = json.loads(b"".join(form.render(one)))
    return loaded


@pytest.mark.parametrize("detail", LISTED)
def test_the_json_report_lists_the_queries_of_its_detail(detail: Detail) -> None:
    report = as_json(made(detail))
    assert report["detail"] == detail
    assert [one["id"] for one in report["queries"]] == LISTED[detail]  # type: ignore[attr-defined]


def test_ten_thousand_queries_are_all_listed_and_of_more_those_that_changed() -> None:
    few, many = (made(None, more=more - len(QUERIES)) for more in (bounds.ALL_QUERIES, bounds.ALL_QUERIES + 1))
    assert (few.detail, len(few.report.queries)) == ("all", 10_000)
    assert (many.detail, [one.id for one in many.report.queries]) == ("changed", LISTED["changed"])


def test_all_of_many_queries_are_listed_where_that_is_asked_for() -> None:
    one = made("all", more=bounds.ALL_QUERIES)
    assert (one.detail, one.report.detail) == ("all", "changed")
    assert len(list(one.queries())) == bounds.ALL_QUERIES + len(QUERIES)
    report = as_json(one)
    assert (report["detail"], len(report["queries"])) == ("all", bounds.ALL_QUERIES + len(QUERIES))  # type: ignore[arg-type]


@pytest.mark.parametrize("more", [0, bounds.ALL_QUERIES])
def test_what_people_read_counts_all_queries_whatever_is_listed(more: int) -> None:
    text = markdown.render(made("failed", more=more).report)
    assert f"1 of {len(QUERIES) + more:,} queries broken, already in the baseline; 1 to warn" in text
    assert f"Rank changes: 1 worse, 2 better, {3 + more:,} the same, 1 new" in text


def test_a_run_without_a_baseline_has_nothing_that_changed() -> None:
    assert [one.id for one in made("changed", compared=False).queries()] == LISTED["failed"]
