"""Waivers: what a team has accepted until a date is shown and does not fail."""

import xml.etree.ElementTree as ET
from datetime import UTC, datetime
from typing import Any

import click
import msgspec
import pytest

from ragcontract.core.golden import GoldenQuery
from ragcontract.decision.decide import Decision, decide
from ragcontract.report.terminal import check_text
from tests.records import Config, evaluate, query, rendered, report
from tests.work import work

LAST_DAY = datetime(2026, 12, 31, tzinfo=UTC)
QUERIES = [
    query("q1", "A", must_rank_at_most=1, tags=("policy",)),
    query("q2", "B", tags=("policy", "api")),
    query("q3", "C", tags=("fine",)),
]
RUN = {"q1": ["x"] * 9, "q2": ["x"] * 9, "q3": ["C"]}


Waiver = dict[str, Any]


def waiver(**fields: Any) -> Waiver:
    return {"reason": "known", "owner": "ann", "expires": "2026-12-31", **fields}


def judged(
    *waivers: Waiver, today: datetime = LAST_DAY, queries: list[GoldenQuery] = QUERIES, **config: Any
) -> tuple[Decision, list[str]]:
    decision = decide(evaluate(queries, RUN, None, {"waivers": list(waivers), **config}), today)
    return decision, list(decision.warnings)


def statuses(decision: Decision, queries: list[GoldenQuery] = QUERIES) -> dict[str, str]:
    return {one.id: decision.status(one) for one in queries}


def test_without_waivers_what_is_broken_fails() -> None:
    decision, warnings = judged()
    assert statuses(decision) == {"q1": "fail", "q2": "fail", "q3": "pass"}
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
    decision, warnings = judged(waiver(**fields))
    assert statuses(decision) == expected | {"q3": "pass"}
    assert warnings == []


def test_of_a_query_of_which_one_rule_is_waived_the_other_alone_counts() -> None:
    decision, _ = judged(waiver(query="q1", rule="must_include"))
    statuses = {violation.rule: (violation.status, violation.why) for violation in decision.violations["q1"]}
    assert statuses == {"must_rank_at_most": ("fail", ""), "must_include": ("waived", "until 2026-12-31, ann: known")}


def test_a_contract_of_which_all_that_is_broken_is_waived_holds() -> None:
    assert judged(waiver(query="q1"))[0].verdict == "fail"
    assert judged(waiver(query="q1"), waiver(query="q2"))[0].verdict == "pass"


def test_an_id_that_is_a_number_is_the_same_as_its_digits() -> None:
    config = {"waivers": [waiver(query=7)]}
    assert decide(evaluate([query("7", "A")], {"7": []}, None, config), LAST_DAY).verdict == "pass"


def test_it_counts_on_its_last_day_and_not_on_the_day_after() -> None:
    assert statuses(judged(waiver(tag="policy"))[0])["q1"] == "waived"
    decision, warnings = judged(waiver(tag="policy"), today=datetime(2027, 1, 1, tzinfo=UTC))
    assert statuses(decision)["q1"] == "fail"
    assert warnings == ["ragcontract.yml:7: expired on 2026-12-31, so it no longer counts (tag 'policy', ann)"]


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
    _, warnings = judged(waiver(**fields), minimums={"mrr_at_k": 0.0})
    assert warnings == [f"ragcontract.yml:7: waives nothing that is broken ({named}); delete it"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"query": "Q-1"}, "no golden query has the id 'Q-1'; did you mean 'q1'?"),
        ({"query": 7}, "no golden query has the id '7'; delete the waiver"),
        ({"tag": "polcy"}, "no golden query has the tag 'polcy'; did you mean 'policy'?"),
        ({"gate": "minimums.mrr"}, "no gate has the id 'minimums.mrr'; did you mean 'minimums.mrr_at_k'?"),
        ({"gate": "latency.p95_ms"}, "no gate has the id 'latency.p95_ms'; delete the waiver"),
    ],
)
def test_one_of_something_that_is_not_there_is_warned_about(fields: dict[str, Any], said: str) -> None:
    _, warnings = judged(waiver(**fields, expires="2020-01-01"), minimums={"mrr_at_k": 0.0})
    assert warnings == [f"ragcontract.yml:7: {said}"]


def test_a_waived_gate_is_shown_and_does_not_fail() -> None:
    off = {"enforce_must_include": False, "enforce_must_rank_at_most": False}
    limits: dict[str, Any] = {"minimums": {"mrr_at_k": 0.9, "recall_at_k": 0.1}, "per_query": off}
    assert judged(**limits)[0].verdict == "fail"
    decision, warnings = judged(waiver(gate="minimums.mrr_at_k"), **limits)
    assert [(gate.status, gate.waived) for gate in decision.gates] == [
        ("waived", "until 2026-12-31, ann: known"),
        ("pass", None),
    ]
    assert decision.verdict == "pass"
    assert warnings == []


def test_a_query_of_severity_warn_is_shown_and_does_not_fail() -> None:
    queries = [msgspec.structs.replace(one, severity="warn") for one in QUERIES]
    decision, _ = judged(queries=queries)
    assert statuses(decision, queries) == {"q1": "warn", "q2": "warn", "q3": "pass"}
    assert decision.verdict == "pass"


def test_what_does_not_fail_is_no_failed_check() -> None:
    config: Config = {"waivers": [waiver(query="q1", rule="must_include"), waiver(query="q2")]}
    made = report(QUERIES, RUN, config=config)
    assert [(check.query_id, check.id) for check in made.failed_checks] == [("q1", "must_rank_at_most")]
    assert [one.status for one in made.queries] == ["fail", "waived", "pass"]


def test_what_is_waived_of_a_query_that_fails_is_shown_by_every_report_for_people() -> None:
    queries = [query("q1", "A", "B", forbidden_doc_ids=("F",)), QUERIES[2]]
    config: Config = {"waivers": [waiver(query="q1", rule="must_include")]}
    made = report(queries, {"q1": ["A", "F"], "q3": ["C"]}, None, config)
    files = rendered(made)
    why = "waived until 2026-12-31, ann: known"
    found = "  Expected no F in the results\n  Found: rank 2\n"
    text = click.unstyle(check_text(made))
    assert f"FAIL q1\n{found}  Not counted: B in top 5: missing from top 5 ({why})\n" in text
    assert "WAIVED" not in text
    page = files["report-md"].decode()
    assert "Broken and not failing: 1" in page
    assert f"| What about q1?<br>`q1` | `B` in top 5: missing from top 5 | {why} |" in page
    case = next(case for case in ET.fromstring(files["junit"]).iter("testcase") if case.get("name") == "q1")
    assert [child.tag for child in case] == ["failure"]
    assert case[0].get("type") == "forbidden_docs"
    assert (case[0].text or "").endswith(f"Found: rank 2\nNot counted: B in top 5: missing from top 5\n{why}")


def test_a_gate_that_holds_is_not_marked_and_its_waiver_is_warned_about() -> None:
    decision, warnings = judged(waiver(gate="minimums.mrr_at_k"), minimums={"mrr_at_k": 0.1})
    assert [(gate.status, gate.waived) for gate in decision.gates] == [("pass", None)]
    assert "waives nothing that is broken" in warnings[0]


def test_of_two_waivers_for_one_rule_neither_is_idle() -> None:
    assert judged(waiver(query="q1"), waiver(tag="policy"))[1] == []


def test_a_rule_that_a_query_of_severity_warn_breaks_can_be_waived_as_well() -> None:
    queries = [msgspec.structs.replace(QUERIES[1], severity="warn")]
    decision = decide(evaluate(queries, RUN, None, {"waivers": [waiver(query="q2")]}), LAST_DAY)
    assert [(finding.status, finding.why) for finding in decision.findings] == [
        ("waived", "waived until 2026-12-31, ann: known")
    ]
    assert decision.status(queries[0]) == "waived"


def test_findings_are_gates_in_the_configs_order_then_queries_in_the_golden_sets() -> None:
    decision, _ = judged(
        waiver(query="q1"), waiver(gate="minimums.recall_at_k"), minimums={"recall_at_k": 1, "mrr_at_k": 1}
    )
    assert [(finding.ids, finding.status) for finding in decision.findings] == [
        (("minimums.mrr_at_k",), "fail"),
        (("minimums.recall_at_k",), "waived"),
        (("must_rank_at_most", "must_include"), "waived"),
        (("must_include",), "fail"),
    ]


def test_a_waiver_of_a_drop_that_is_not_proven_matches_it_and_leaves_its_status() -> None:
    ids = [f"q{number}" for number in range(16)]
    queries = [query(one, "A") for one in ids]
    docs = {True: ["A"], False: ["x", "A"]}
    now, before = ({one: docs[(number < 9) == first] for number, one in enumerate(ids)} for first in (False, True))
    config: Config = {
        "fail_on": {"mode": "significant", "mrr_drop_gt": 0.01},
        "waivers": [waiver(gate="fail_on.mrr_drop_gt")],
    }
    decision = decide(evaluate(queries, now, before, config), LAST_DAY)
    assert [(gate.status, gate.waived) for gate in decision.gates] == [("unproven", None)]
    assert not any("waives nothing" in warning for warning in decision.warnings)
    config = {**config, "fail_on": {"mrr_drop_gt": 0.01}}
    decision = decide(evaluate(queries, now, before, config), LAST_DAY)
    assert [(gate.status, gate.waived) for gate in decision.gates] == [("waived", "until 2026-12-31, ann: known")]
    assert decision.warnings == ()


def waived(size: int) -> Decision:
    """As many broken queries as waivers, of which half name a query or a tag that is not there."""
    queries = [query(f"query {number}", "A", tags=(f"tag {number}",)) for number in range(size)]
    named = [{"query": f"query {number}"} if number % 2 else {"tag": f"gat {number}"} for number in range(size)]
    config = {"waivers": [waiver(**fields) for fields in named]}
    evaluation = evaluate(queries, {one.id: ["x"] for one in queries}, None, config)
    decided: list[Decision] = []
    lines.append(work(lambda: decided.append(decide(evaluation, LAST_DAY))))
    return decided[0]


lines: list[int] = []


def test_waivers_are_not_searched_for_each_broken_query() -> None:
    lines.clear()
    decisions = [waived(size) for size in (100, 200)]
    assert [len(decision.warnings) for decision in decisions] == [50, 100]
    assert lines[1] < 3 * lines[0]
