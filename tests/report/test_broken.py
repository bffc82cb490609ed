"""Rules that one cause breaks are one finding."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from ragcontract.core.finding import Finding, sentence
from ragcontract.core.phrase import render
from ragcontract.report.queries import FindingsByQuery, broken_gates, not_proven_gates, waived_gates
from tests.records import NOW, query, report


def found(
    results: str,
    *relevant: str,
    before: str | None = None,
    k: int = 5,
    rules: dict[str, Any] | None = None,
    **fields: Any,
) -> list[Finding]:
    """Return the findings of a query that retrieved one document a letter."""
    docs = {"q": _docs(results)}
    baseline = None if before is None else {"q": _docs(before)}
    judged = report([query("q", *relevant, **fields)], docs, baseline, {"k": k, "per_query": rules or {}})
    return judged.findings


def _docs(letters: str) -> list[str]:
    return [f"x{rank}" if letter == "x" else letter for rank, letter in enumerate(letters)]


def lines(items: Sequence[Finding]) -> list[str]:
    return [f"{render(item.expected)} | {render(item.found)}" for item in items]


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
    assert render(finding.expected) == "A and B in top 5, one of them in top 3"
    assert render(finding.found) == "A missing from top 5 (was rank 1), B missing from top 5 (was rank 2)"


def test_where_k_is_the_narrower_all_are_wanted_there() -> None:
    assert lines(found("xxxxx", "A", "B", k=2, must_rank_at_most=4)) == ["A and B in top 2 | all missing from top 4"]


def test_any_one_of_several_is_wanted_in_the_narrower_range() -> None:
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
    rules = {"enforce_must_include": False}
    assert lines(found("xxxxx", "A", must_rank_at_most=3, rules=rules)) == ["A in top 3 | missing from top 5"]
    assert lines(found("xxxxx", "A", must_rank_at_most=9, rules=rules)) == ["A in top 9 | missing from top 9"]


def test_forbidden_documents_come_first_and_apart() -> None:
    items = found("xFG", "A", before="FA", must_rank_at_most=1, forbidden_doc_ids=("F", "G", "H"))
    assert lines(items) == [
        "no F or G in the results | F rank 2 (was rank 1), G rank 3 (was not there)",
        "A in top 1 | missing from top 5 (was rank 2)",
    ]
    rules = {"forbidden_within": 2}
    assert lines(found("FxF", forbidden_doc_ids=("F",), rules=rules)) == ["no F in top 2 | rank 1"]


def test_without_a_baseline_nothing_is_said_of_before() -> None:
    (finding,) = found("xxxxx", "A")
    assert finding.ranks_before is None
    assert render(finding.found) == "missing from top 5"


def test_what_was_missing_before_is_no_news() -> None:
    (finding,) = found("xxxxx", "A", before="x")
    assert render(finding.found) == "missing from top 5 (was missing too)"
    assert render(finding.found_now) == "missing from top 5"


def test_names_and_the_text_around_them_are_quoted_by_whoever_prints_them() -> None:
    (finding,) = found("xxxxx", "A", "B", before="A")
    assert render(finding.expected, "<{}>".format) == "<A> and <B> in top 5"
    assert render(finding.expected, "<{}>".format, str.upper) == "<A> AND <B> IN TOP 5"
    assert render(finding.found, "<{}>".format) == (
        "<A> missing from top 5 (was rank 1), <B> missing from top 5 (was missing too)"
    )


def waiver(**fields: Any) -> dict[str, Any]:
    expires = (NOW + timedelta(days=1)).date().isoformat()
    return {"reason": "known", "owner": "ann", "expires": expires, **fields}


def test_of_a_query_that_fails_what_is_waived_is_a_finding_apart() -> None:
    asked = [query("q", "A", "B", forbidden_doc_ids=("F",))]
    config = {"waivers": [waiver(query="q", rule="must_include")]}
    judged = report(asked, {"q": ["A", "F"]}, None, config)
    found = FindingsByQuery(judged)
    assert lines(found.failing("q")) == ["no F in the results | rank 2"]
    assert lines(found.tolerated("q")) == ["B in top 5 | missing from top 5"]
    assert found.why_tolerated("q") == "waived until 2026-07-02, ann: known"
    assert [one.status for one in judged.findings] == ["fail", "waived"]
    (query_report,) = judged.queries
    assert query_report.status == "fail"

    all_count = FindingsByQuery(report(asked, {"q": ["A", "F"]}))
    assert (all_count.tolerated("q"), all_count.why_tolerated("q")) == ([], "")

    warned = FindingsByQuery(report([query("q", "A", "B", severity="warn")], {"q": ["A"]}))
    assert warned.failing("q") == []
    assert lines(warned.tolerated("q")) == ["B in top 5 | missing from top 5"]
    assert warned.why_tolerated("q") == "severity warn"

    both = FindingsByQuery(
        report([query("q", "A", "B", forbidden_doc_ids=("F",), severity="warn")], {"q": ["A", "F"]}, None, config)
    )
    assert lines(both.tolerated("q")) == ["no F in the results | rank 2", "B in top 5 | missing from top 5"]
    assert both.why_tolerated("q") == "severity warn; waived until 2026-07-02, ann: known"


def test_rules_of_one_cause_that_differ_in_their_waivers_are_two_findings() -> None:
    """Were they merged, what is waived would fail, or what fails would be waived."""
    config = {"waivers": [waiver(query="q", rule="must_rank_at_most")]}
    judged = report([query("q", "A", must_rank_at_most=3)], {"q": ["x"]}, None, config)
    assert [(one.ids, one.status) for one in judged.findings] == [
        (("must_include",), "fail"),
        (("must_rank_at_most",), "waived"),
    ]


def test_gates_come_first_in_the_configs_order_and_only_those_that_are_broken() -> None:
    config = {
        "fail_on": {"mrr_drop_gt": 0.1, "map_drop_gt": 0.1},
        "minimums": {"hitrate_at_k": 0.5, "recall_at_k": 0.0},
        "tags": {"t": {"minimums": {"recall_at_k": 0.9}}},
        "waivers": [waiver(gate="fail_on.map_drop_gt")],
    }
    judged = report([query("q", "A", tags=("t",))], {"q": ["x"]}, {"q": ["A"]}, config)
    ids = [gate.id for gate in judged.gates if gate.status != "pass"]
    assert [one.ids[0] for one in judged.findings] == [*ids, "must_include"]
    assert len(ids) == 4
    assert [one.ids[0] for one in broken_gates(judged)] == [one for one in ids if one != "fail_on.map_drop_gt"]
    (waived,) = waived_gates(judged)
    assert (waived.ids, waived.status, waived.why) == (
        ("fail_on.map_drop_gt",),
        "waived",
        "waived until 2026-07-02, ann: known",
    )
    assert {one.location for one in judged.findings} == {"ragcontract.yml:7", "golden.jsonl:q"}


def test_the_sentence_of_a_gate_says_what_is_and_what_is_allowed_with_the_tag_as_a_name() -> None:
    config = {"minimums": {"mrr_at_k": 0.5}, "tags": {"t": {"minimums": {"mrr_at_k": 0.9}}}}
    overall, tagged, _ = report([query("q", "A", tags=("t",))], {"q": ["x"]}, None, config).findings
    assert sentence(overall) == "MRR@5 is 0.00, minimum 0.50"
    assert sentence(tagged, "<{}>".format) == "<t>: MRR@5 is 0.00, minimum 0.90"


def test_the_sentence_of_a_rule_says_what_was_expected_and_what_was_found() -> None:
    (finding,) = found("xxxxx", "A", before="A")
    assert sentence(finding) == "expected A in top 5; found: missing from top 5 (was rank 1)"


def test_a_finding_has_the_ranks_of_its_first_documents() -> None:
    (finding,) = found("xA", "A", *"BCDEFGH", before="BA")
    assert finding.ids == ("must_include",)
    assert (finding.ranks, finding.ranks_before, finding.more_ranks) == ((None,) * 5, (1, *(None,) * 4), True)
    (forbidden,) = found("xF", forbidden_doc_ids=("F",), before="x")
    assert (forbidden.ranks, forbidden.ranks_before, forbidden.more_ranks) == ((2,), (None,), False)


def test_a_change_that_is_not_proven_is_a_finding_that_does_not_fail_and_one_that_counts_says_why() -> None:
    asked = [query(f"q{number}", "A", must_include_any=True) for number in range(20)]
    config = {"fail_on": {"mode": "significant", "mrr_drop_gt": 0.01}}
    before = {one.id: ["A"] for one in asked}
    before |= {"q0": ["x", "A"], "q1": ["x", "A"], "q2": ["x", "x", "A"]}
    noisy = {one.id: ["A"] for one in asked[:3]} | {one.id: ["x", "A"] for one in asked[3:9]}
    noisy |= {one.id: before[one.id] for one in asked[9:]}
    unproven = report(asked, noisy, before, config)
    assert (unproven.verdict, unproven.gates[0].status) == ("pass", "unproven")
    assert not_proven_gates(unproven) == unproven.findings
    assert (broken_gates(unproven), waived_gates(unproven)) == ([], [])
    assert unproven.findings[0].why == "over its limit, not shown to be real"
    (finding,) = report(asked, {one.id: ["x", "A"] for one in asked}, before, config).findings
    assert sentence(finding).startswith("MRR@5 fell by 0.42, allowed drop 0.01 (significant, p ")
