"""What is broken is new, or the baseline breaks it already: then the contract can let it pass."""

from datetime import UTC, datetime
from typing import Any

import click
import pytest

from ragcontract.core.golden import GoldenQuery
from ragcontract.decision.decide import Decision, decide
from ragcontract.report.headline import headline
from ragcontract.report.terminal import check_text
from tests.records import Docs, Rows, evaluate, query, report

TODAY = datetime(2026, 12, 31, tzinfo=UTC)
ONLY_NEW = {"per_query": {"fail_on": "new"}}
BOTH = query("q", "A", "B")
FIRST = query("q", "A", "B", must_rank_at_most=1, must_include_any=True)
NOTHING = ["x", "y", "z", "v", "w"]


def judged(asked: GoldenQuery, before: list[str] | None, now: list[str], config: Any = None) -> Decision:
    baseline: Docs | None = None if before is None else {asked.id: before}
    return decide(evaluate([asked], {asked.id: now}, baseline, config), TODAY)


def since(decision: Decision) -> dict[str, bool]:
    return {one.rule: one.in_baseline for found in decision.violations.values() for one in found}


@pytest.mark.parametrize(
    ("asked", "before", "now", "expected"),
    [
        pytest.param(BOTH, ["A"], ["A"], {"must_include": True}, id="the same document is missing"),
        pytest.param(BOTH, ["A"], ["B"], {"must_include": False}, id="another document is missing"),
        pytest.param(BOTH, ["A"], ["x"], {"must_include": False}, id="one more document is missing"),
        pytest.param(BOTH, ["x"], ["A"], {"must_include": True}, id="one document is still missing"),
        pytest.param(BOTH, ["A", "B"], ["A"], {"must_include": False}, id="nothing was missing"),
        pytest.param(FIRST, ["x", "A"], ["x", "y", "A"], {"must_rank_at_most": True}, id="a lower rank is not worse"),
        pytest.param(
            FIRST,
            ["x", "A"],
            [*NOTHING, "A"],
            {"must_rank_at_most": False, "must_include_any": False},
            id="the last relevant document is lost",
        ),
        pytest.param(
            FIRST,
            [*NOTHING, "A"],
            NOTHING,
            {"must_rank_at_most": True, "must_include_any": True},
            id="what is not in the top k cannot be lost from it",
        ),
        pytest.param(
            query("q", "A", forbidden_doc_ids=("F", "G")),
            ["A", "F"],
            ["F", "A"],
            {"forbidden_docs": True},
            id="the same forbidden document is there, higher up",
        ),
        pytest.param(
            query("q", "A", forbidden_doc_ids=("F", "G")),
            ["A", "F"],
            ["A", "G"],
            {"forbidden_docs": False},
            id="another forbidden document is there",
        ),
    ],
)
def test_what_is_worse_than_in_the_baseline_is_new(
    asked: GoldenQuery, before: list[str], now: list[str], expected: dict[str, bool]
) -> None:
    assert since(judged(asked, before, now)) == expected
    every_one_known = all(expected.values())
    assert judged(asked, before, now).verdict == "fail"
    assert judged(asked, before, now, ONLY_NEW).verdict == ("pass" if every_one_known else "fail")


def test_without_a_baseline_everything_is_new() -> None:
    decision = judged(BOTH, None, ["A"], ONLY_NEW)
    assert since(decision) == {"must_include": False}
    assert decision.verdict == "fail"


@pytest.mark.parametrize(
    "baseline",
    [
        pytest.param({"other": ["A"]}, id="a new query"),
        pytest.param(
            Rows(docs={"q": ["A"]}, name="baseline.json", questions={"q": "Asked before"}), id="a changed one"
        ),
    ],
)
def test_of_a_query_that_cannot_be_compared_everything_is_new(baseline: Docs | Rows) -> None:
    decision = decide(evaluate([BOTH], {"q": ["A"]}, baseline, ONLY_NEW), TODAY)
    assert since(decision) == {"must_include": False}
    assert decision.verdict == "fail"


def test_the_baseline_is_judged_by_the_labels_and_limits_of_today() -> None:
    searched = {"per_query": {"fail_on": "new", "forbidden_within": 2}}
    leaks = query("q", "A", forbidden_doc_ids=("F",))
    assert since(judged(leaks, ["A", "x", "F"], ["A", "F"], searched)) == {"forbidden_docs": False}


def test_a_gate_counts_whatever_the_baseline_was() -> None:
    decision = judged(BOTH, ["A"], ["A"], {**ONLY_NEW, "minimums": {"recall_at_k": 0.9}})
    assert [finding.status for finding in decision.findings] == ["fail", "known"]
    assert decision.verdict == "fail"


QUERIES = [query("lost", "A"), query("still", "A"), query("leaks", "A", forbidden_doc_ids=("F",)), query("fine", "A")]
BEFORE: Docs = {"lost": ["A"], "still": ["x"], "leaks": ["A", "F"], "fine": ["A"]}
NOW: Docs = {"lost": ["x"], "still": ["x"], "leaks": ["A", "F"], "fine": ["A"]}


@pytest.mark.parametrize(
    ("per_query", "statuses"),
    [
        ({}, {"lost": "fail", "still": "fail", "leaks": "fail"}),
        ({"fail_on": "any"}, {"lost": "fail", "still": "fail", "leaks": "fail"}),
        ({"fail_on": "new"}, {"lost": "fail", "still": "known", "leaks": "known"}),
        ({"enforce_must_include": "new"}, {"lost": "fail", "still": "known", "leaks": "fail"}),
        ({"enforce_forbidden_docs": "new"}, {"lost": "fail", "still": "fail", "leaks": "known"}),
        ({"fail_on": "new", "enforce_must_include": True}, {"lost": "fail", "still": "known", "leaks": "known"}),
        ({"fail_on": "new", "enforce_forbidden_docs": False}, {"lost": "fail", "still": "known", "leaks": "pass"}),
    ],
)
def test_each_rule_can_fail_for_what_is_new_only(per_query: dict[str, Any], statuses: dict[str, str]) -> None:
    decision = decide(evaluate(QUERIES, NOW, BEFORE, {"per_query": per_query}), TODAY)
    assert {one.id: decision.status(one) for one in QUERIES} == {**statuses, "fine": "pass"}


def test_a_waiver_comes_before_what_is_known_and_is_not_called_useless() -> None:
    waiver = {"query": "still", "reason": "later", "owner": "ann", "expires": "2027-01-01"}
    decision = decide(evaluate(QUERIES, NOW, BEFORE, {**ONLY_NEW, "waivers": [waiver]}), TODAY)
    assert decision.status(QUERIES[1]) == "waived"
    assert decision.warnings == ()


def test_people_read_how_many_are_new_and_which() -> None:
    made = report(QUERIES, NOW, BEFORE)
    assert headline(made) == "3 of 4 queries broken: 1 new, 2 already in the baseline"
    assert (made.broken.queries, made.broken.new, made.broken.in_baseline) == (3, 1, 2)
    shown = click.unstyle(check_text(made))
    heads = [line for line in shown.splitlines() if line.startswith("FAIL ")][:2]
    assert heads == ["FAIL lost (new)", "FAIL 2 already in the baseline: leaks, still"]


def test_people_read_what_the_baseline_excuses() -> None:
    made = report(QUERIES, {**NOW, "lost": ["A"]}, BEFORE, ONLY_NEW)
    assert made.verdict == "pass"
    assert headline(made) == "Nothing new broken in 4 queries, 2 already in the baseline"
    assert "KNOWN 2 already in the baseline: leaks, still" in click.unstyle(check_text(made))


def test_a_query_is_new_if_any_of_its_broken_rules_is() -> None:
    asked = query("q", "A", forbidden_doc_ids=("F",))
    decision = judged(asked, ["F", "A"], ["F"], ONLY_NEW)
    assert since(decision) == {"forbidden_docs": True, "must_include": False}
    assert [(one.ids, one.status, one.in_baseline) for one in decision.findings] == [
        (("must_include",), "fail", False),
        (("forbidden_docs",), "known", True),
    ]
    assert decision.status(asked) == "fail"
