"""Waivers: what a team has accepted until a date is shown and does not fail."""

import xml.etree.ElementTree as ET
from datetime import date
from typing import Any

import click
import msgspec
import pytest

from ragcontract.contract.config import Config, Minimums, PerQuery, Waiver
from ragcontract.judging.verdict import Judgement, judge
from ragcontract.judging.waivers import with_waivers
from ragcontract.model import GoldenQuery, Report
from ragcontract.reports import junit
from ragcontract.reports.build import build_report
from ragcontract.reports.markdown import document as markdown
from ragcontract.reports.terminal import check_text
from tests.records import NOW, query, score

LAST_DAY = date(2026, 12, 31)
QUERIES = [
    query("q1", "A", must_rank_at_most=1, tags=("policy",)),
    query("q2", "B", tags=("policy", "api")),
    query("q3", "C", tags=("fine",)),
]
RUN = {"q1": ["x"] * 9, "q2": ["x"] * 9, "q3": ["C"]}


def waiver(**fields: Any) -> Waiver:
    return msgspec.convert({"reason": "known", "owner": "ann", "expires": "2026-12-31", **fields}, Waiver)


def judged(
    *waivers: Waiver, today: date = LAST_DAY, queries: list[GoldenQuery] = QUERIES, **config: Any
) -> tuple[Judgement, list[str]]:
    scored = score(queries, RUN, None, Config(waivers=list(waivers), **config))
    return with_waivers(judge(scored), scored, today)


def statuses(judgement: Judgement) -> dict[str, str]:
    return {one.id: judgement.status(one.id) for one in QUERIES}


def test_without_waivers_what_is_broken_fails() -> None:
    judgement, warnings = judged()
    assert statuses(judgement) == {"q1": "fail", "q2": "fail", "q3": "pass"}
    assert warnings == []


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"query": "q1"}, {"q1": "waived", "q2": "fail"}),
        ({"tag": "policy"}, {"q1": "waived", "q2": "waived"}),
        ({"tag": "api"}, {"q1": "fail", "q2": "waived"}),
        ({"query": "q2", "rule": "must_include"}, {"q1": "fail", "q2": "waived"}),
        ({"query": "q1", "rule": "must_include"}, {"q1": "fail", "q2": "fail"}),  # its other rule is broken too
    ],
)
def test_a_waiver_covers_what_it_names(fields: dict[str, Any], expected: dict[str, str]) -> None:
    judgement, warnings = judged(waiver(**fields))
    assert statuses(judgement) == expected | {"q3": "pass"}
    assert warnings == []


def test_a_query_of_which_one_rule_is_waived_tells_the_other_as_broken_only() -> None:
    judgement, _ = judged(waiver(query="q1", rule="must_include"))
    waived = {violation.rule: violation.waived for violation in judgement.violations["q1"]}
    assert waived == {"must_rank_at_most": None, "must_include": "until 2026-12-31, ann: known"}


def test_a_contract_of_which_all_that_is_broken_is_waived_holds() -> None:
    assert judged(waiver(query="q1"))[0].verdict == "fail"
    assert judged(waiver(query="q1"), waiver(query="q2"))[0].verdict == "pass"


def test_an_id_that_is_a_number_is_the_same_as_its_digits() -> None:
    queries = [query("7", "A")]
    scored = score(queries, {"7": []}, None, Config(waivers=[waiver(query=7)]))
    assert with_waivers(judge(scored), scored, LAST_DAY)[0].verdict == "pass"


def test_it_counts_on_its_last_day_and_not_on_the_day_after() -> None:
    assert statuses(judged(waiver(tag="policy"))[0])["q1"] == "waived"
    judgement, warnings = judged(waiver(tag="policy"), today=date(2027, 1, 1))
    assert statuses(judgement)["q1"] == "fail"
    assert warnings == ["ragcontract.yml:7: expired on 2026-12-31, so it counts no more (tag 'policy', ann)"]


def test_of_two_the_one_that_has_not_expired_counts() -> None:
    old = waiver(query="q1", expires="2026-01-01")
    assert statuses(judged(old, waiver(query="q1"))[0])["q1"] == "waived"


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"query": "q3"}, "query 'q3'"),
        ({"tag": "fine", "rule": "must_include"}, "must_include of tag 'fine'"),
        ({"gate": "minimums.mrr_at_k"}, "minimums.mrr_at_k"),
    ],
)
def test_one_that_matches_nothing_broken_is_warned_about(fields: dict[str, Any], named: str) -> None:
    _, warnings = judged(waiver(**fields), minimums=Minimums(mrr_at_k=0.0))
    assert warnings == [f"ragcontract.yml:7: waives nothing that is broken ({named}); delete it"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"query": "Q-1"}, "no golden query has the id 'Q-1'; did you mean 'q1'?"),
        ({"query": 7}, "no golden query has the id '7'; delete the waiver"),
        ({"tag": "polcy"}, "no golden query has the tag 'polcy'; did you mean 'policy'?"),
        ({"gate": "minimums.mrr"}, "no limit is set that is called 'minimums.mrr'; did you mean 'minimums.mrr_at_k'?"),
        ({"gate": "latency.p95_ms"}, "no limit is set that is called 'latency.p95_ms'; delete the waiver"),
    ],
)
def test_one_of_something_that_is_not_there_is_warned_about(fields: dict[str, Any], said: str) -> None:
    _, warnings = judged(waiver(**fields, expires="2020-01-01"), minimums=Minimums(mrr_at_k=0.0))
    assert warnings == [f"ragcontract.yml:7: {said}"]


def test_a_waived_gate_is_told_and_does_not_fail() -> None:
    off = PerQuery(enforce_must_include=False, enforce_must_rank_at_most=False)
    limits: dict[str, Any] = {"minimums": Minimums(mrr_at_k=0.9, recall_at_k=0.1), "per_query": off}
    assert judged(**limits)[0].verdict == "fail"
    judgement, warnings = judged(waiver(gate="minimums.mrr_at_k"), **limits)
    assert [(gate.status, gate.waived) for gate in judgement.gates] == [
        ("waived", "until 2026-12-31, ann: known"),
        ("pass", None),
    ]
    assert judgement.verdict == "pass"
    assert warnings == []


def test_a_query_of_severity_warn_is_shown_and_does_not_fail() -> None:
    queries = [msgspec.structs.replace(one, severity="warn") for one in QUERIES]
    judgement, _ = judged(queries=queries)
    assert statuses(judgement) == {"q1": "warn", "q2": "warn", "q3": "pass"}
    assert judgement.verdict == "pass"


def test_what_does_not_fail_is_no_failed_check() -> None:
    scored = score(QUERIES, RUN, None, Config(waivers=[waiver(query="q1", rule="must_include"), waiver(query="q2")]))
    report: Report = build_report(scored, with_waivers(judge(scored), scored, LAST_DAY)[0], [], NOW)
    assert [(check.query_id, check.id) for check in report.failed_checks] == [("q1", "must_rank_at_most")]
    assert [one.status for one in report.queries] == ["fail", "waived", "pass"]


def test_what_is_waived_of_a_query_that_fails_is_shown_by_every_report_for_people() -> None:
    queries = [query("q1", "A", "B", forbidden_doc_ids=("F",)), QUERIES[2]]
    config = Config(waivers=[waiver(query="q1", rule="must_include")])
    scored = score(queries, {"q1": ["A", "F"], "q3": ["C"]}, None, config)
    report = build_report(scored, with_waivers(judge(scored), scored, LAST_DAY)[0], [], NOW)
    why = "waived until 2026-12-31, ann: known"
    found = "  Expected no F in the results\n  Found: rank 2\n"
    text = click.unstyle(check_text(report))
    assert f"FAIL q1\n{found}  Not counted: B in top 5: missing from top 5 ({why})\n" in text
    assert "WAIVED" not in text
    assert "Broken and not failing: 1" in (page := markdown.render(report))
    assert f"| `q1` | `B` in top 5: missing from top 5 | {why} |" in page
    case = next(
        case for case in ET.fromstring(b"".join(junit.render(report))).iter("testcase") if case.get("name") == "q1"
    )
    assert [child.tag for child in case] == ["failure"]
    assert case[0].get("type") == "forbidden_docs"
    assert (case[0].text or "").endswith(f"Found: rank 2\nNot counted: B in top 5: missing from top 5\n{why}")


def test_a_gate_that_holds_stays_as_it_is_and_its_waiver_is_told() -> None:
    judgement, warnings = judged(waiver(gate="minimums.mrr_at_k"), minimums=Minimums(mrr_at_k=0.1))
    assert [(gate.status, gate.waived) for gate in judgement.gates] == [("pass", None)]
    assert "waives nothing that is broken" in warnings[0]


def test_of_two_waivers_for_one_rule_neither_is_idle() -> None:
    assert judged(waiver(query="q1"), waiver(tag="policy"))[1] == []
