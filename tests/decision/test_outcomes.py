"""Pass rates, and tiers that gate each other: what counts, what is skipped, what decides."""

from typing import Any
from xml.etree import ElementTree as ET

import pytest

from ragcontract.core.errors import InputError
from ragcontract.core.golden import ExpectedAnswer, GoldenQuery
from ragcontract.decision.decide import Decision, decide
from ragcontract.github.runner_output import of_report
from ragcontract.report import junit, markdown
from ragcontract.report.html import page
from ragcontract.report.record import Report
from ragcontract.report.terminal import check_text, without_colours
from tests.records import NOW, evaluate, query, report, report_on
from tests.runner import parse_annotations

FOUND, LOST = ["A"], ["x"]
SANITY_GATES_CORE = [
    {"name": "sanity", "minimum": 0.95, "gates": ["core"]},
    {"name": "core", "minimum": 0.5, "gates": ["extra"]},
    {"name": "extra", "minimum": 0.5},
]


def tiered(query_id: str, tier: str | None = None, **fields: Any) -> GoldenQuery:
    return query(query_id, "A", answer=ExpectedAnswer(tier=tier) if tier else None, **fields)


def judged(queries: list[GoldenQuery], lost: str, baseline: str | None = None, **config: Any) -> Decision:
    """Check a run that lost the document of the queries in ``lost``, as the baseline did of those in ``baseline``."""
    now = {one.id: LOST if one.id in lost.split() else FOUND for one in queries}
    before = None if baseline is None else {one.id: LOST if one.id in baseline.split() else FOUND for one in queries}
    return decide(evaluate(queries, now, before, config), NOW)


def rate(decision: Decision) -> tuple[float | None, int, int]:
    overall = decision.outcomes.overall
    return overall.rate, overall.passed, overall.queries


FOUR = [tiered(f"q{n}") for n in range(1, 5)]
LIMIT: dict[str, Any] = {"minimums": {"pass_rate": 0.5}}


def test_the_pass_rate_is_the_share_of_the_weight_of_queries_whose_rules_hold() -> None:
    assert rate(judged(FOUR, "q1", **LIMIT)) == (0.75, 3, 4)
    assert rate(judged([tiered("q1", weight=6.0), tiered("q2", weight=2.0)], "q1", **LIMIT)) == (0.25, 1, 2)


def test_a_query_without_rules_has_no_part_in_it() -> None:
    assert rate(judged([*FOUR, query("free")], "q1", **LIMIT)) == (0.75, 3, 4)
    off: dict[str, Any] = {"per_query": {"enforce_must_include": False}}
    assert rate(judged([*FOUR, query("q5", "A", must_rank_at_most=1)], "q1 q5", **LIMIT, **off)) == (0.0, 0, 1)


def test_what_is_waived_known_or_only_warns_counts_as_passed() -> None:
    waiver = {"query": "q1", "reason": "r", "owner": "o", "expires": "2099-12-31"}
    assert rate(judged(FOUR, "q1 q2", waivers=[waiver], **LIMIT)) == (0.75, 3, 4)
    assert rate(judged(FOUR, "q1 q2", "q2", per_query={"fail_on": "new"}, **LIMIT)) == (0.75, 3, 4)
    assert rate(judged([*FOUR[1:], tiered("q1", severity="warn")], "q1 q2", **LIMIT)) == (0.75, 3, 4)


@pytest.mark.parametrize(("limit", "status"), [(0.75, "pass"), (0.7500001, "fail")])
def test_a_limit_on_the_pass_rate_is_a_gate(limit: float, status: str) -> None:
    (gate,) = judged(FOUR, "q1", minimums={"pass_rate": limit}).gates
    assert (gate.id, gate.metric, gate.kind, gate.status) == ("minimums.pass_rate", "pass_rate", "minimum", status)


def test_a_tag_has_a_pass_rate_of_its_own() -> None:
    queries = [*FOUR, tiered("q5", tags=("new",)), tiered("q6", tags=("new",))]
    config: dict[str, Any] = {**LIMIT, "tags": {"new": {"minimums": {"pass_rate": 0.6}}}}
    gates = {gate.id: (gate.observed, gate.status) for gate in judged(queries, "q5", **config).gates}
    assert gates == {"minimums.pass_rate": (5 / 6, "pass"), "tags.new.minimums.pass_rate": (0.5, "fail")}


def test_a_pass_rate_without_a_query_that_has_rules_cannot_be_judged() -> None:
    with pytest.raises(InputError, match=r"minimums\.pass_rate cannot be judged: no golden query has rules"):
        report([query("free")], {"free": FOUND}, config=LIMIT)


def test_broken_rules_are_counted_and_do_not_fail_where_only_the_pass_rate_decides() -> None:
    decides: dict[str, Any] = {"per_query": {"fail_on": "pass_rate"}}
    decision = judged(FOUR, "q1 q2", **LIMIT, **decides)
    assert decision.verdict == "pass"
    assert [decision.status(one) for one in FOUR] == ["counted", "counted", "pass", "pass"]
    assert {finding.status for finding in decision.findings} == {"counted"}
    worse = judged(FOUR, "q1 q2 q3", **LIMIT, **decides)
    assert worse.verdict == "fail"
    assert [finding.ids for finding in worse.findings if finding.status == "fail"] == [("minimums.pass_rate",)]


BY_TAG = {"tags": {"t": {"minimums": {"pass_rate": 0}}}}
BY_TIER = {"tiers": [{"name": "core", "minimum": 0}]}
MIXED = [
    tiered("tagged", tags=("t",)),
    tiered("tiered", "core"),
    tiered("both", "core", tags=("t",)),
    tiered("neither"),
]


@pytest.mark.parametrize(
    ("limits", "failing"),
    [
        (BY_TAG, ["tiered", "neither"]),
        (BY_TIER, ["tagged", "neither"]),
        (BY_TAG | BY_TIER, ["neither"]),
        (BY_TAG | {"minimums": {"pass_rate": 0}}, []),
    ],
    ids=["a tag", "a tier", "a tag and a tier", "all queries"],
)
def test_a_query_that_no_limit_on_the_pass_rate_covers_fails_by_itself(
    limits: dict[str, Any], failing: list[str]
) -> None:
    decision = judged(MIXED, "tagged tiered both neither", per_query={"fail_on": "pass_rate"}, **limits)
    assert [one.id for one in MIXED if decision.status(one) == "fail"] == failing
    assert decision.verdict == ("fail" if failing else "pass")


def test_what_excuses_a_broken_rule_excuses_it_where_no_limit_covers_the_query() -> None:
    queries = [*MIXED[:3], tiered("q1"), tiered("q2", severity="warn"), tiered("q3")]
    waiver = {"query": "q1", "reason": "r", "owner": "o", "expires": "2099-12-31"}
    switched: dict[str, Any] = {"fail_on": "pass_rate", "enforce_must_include": "new"}
    decision = judged(queries, "q1 q2 q3", "q3", per_query=switched, waivers=[waiver], **BY_TAG)
    assert [decision.status(one) for one in queries[3:]] == ["waived", "warn", "known"]
    assert decision.verdict == "pass"


def test_every_report_says_that_no_limit_covers_a_query_that_fails_by_itself() -> None:
    why = "no limit on the pass rate covers the query"
    config = {"per_query": {"fail_on": "pass_rate"}, **BY_TAG}
    made = report(MIXED, {"tagged": FOUND, "tiered": FOUND, "both": LOST, "neither": LOST}, config=config)
    assert f"FAIL neither ({why})" in without_colours(check_text(made))
    assert f"({why})" in markdown.render(made)
    assert f'<p class="why">{why}</p>' in page.render(made).decode()
    (failure,) = ET.fromstring(b"".join(junit.render(made))).iter("failure")
    assert str(failure.get("message")).endswith(f"; {why}")
    assert [one.message.rpartition("; ")[2] for one in made.failed_checks] == [why]
    titles = [one.title for one in parse_annotations(of_report(made, "error", str)) if one.level == "error"]
    assert titles == [f"Broken query neither ({why})", "Broken query both"]  # what fails by itself first


def test_where_only_the_pass_rate_decides_there_must_be_a_limit_on_it() -> None:
    message = "per_query.fail_on: pass_rate needs a limit on it that is checked; set minimums.pass_rate, or tiers"
    with pytest.raises(InputError) as caught:
        report(FOUR, dict.fromkeys(["q1", "q2", "q3", "q4"], FOUND), config={"per_query": {"fail_on": "pass_rate"}})
    assert [one.removeprefix(": ") for one in caught.value.problems] == [message]


TIERED = [
    *(tiered(f"s{n}", "sanity") for n in range(1, 4)),
    *(tiered(f"c{n}", "core") for n in range(1, 3)),
    tiered("e1", "extra"),
    tiered("free"),
]


def tiers(decision: Decision) -> dict[str | None, str]:
    return {gate.of: gate.status for gate in decision.gates if gate.tier}


@pytest.mark.parametrize("fail_on", ["any", "pass_rate"])
def test_where_a_tier_misses_its_minimum_those_it_gates_are_skipped(fail_on: str) -> None:
    decision = judged(TIERED, "s1 c1 c2 e1", tiers=SANITY_GATES_CORE, per_query={"fail_on": fail_on})
    assert tiers(decision) == {"sanity": "fail", "core": "skipped", "extra": "skipped"}
    failing = [finding.ids for finding in decision.findings if finding.status == "fail"]
    assert failing == [("tiers.sanity.minimum",), *([("must_include",)] if fail_on == "any" else [])]
    assert decision.status(TIERED[3]) == "skipped"
    (why,) = {finding.why for finding in decision.findings if finding.status == "skipped"}
    assert why == "skipped: tier 'sanity' missed its minimum"


def test_the_rest_is_judged_without_the_skipped_tiers() -> None:
    decision = judged(TIERED, "s1 c1 c2 e1", tiers=SANITY_GATES_CORE, **LIMIT)
    assert rate(decision) == (0.75, 3, 4)
    assert decision.outcomes.tiers["core"].rate == 0.0


def test_a_pass_rate_of_skipped_queries_alone_counts_them_all_the_same() -> None:
    queries = [tiered("s1", "sanity"), tiered("c1", "core", tags=("t",)), tiered("e1", "extra")]
    config: dict[str, Any] = {"tiers": SANITY_GATES_CORE, "tags": {"t": {"minimums": {"pass_rate": 1}}}}
    for lost, rate_of_tag in (("s1 c1", 0.0), ("s1", 1.0)):
        gates = {gate.id: gate for gate in judged(queries, lost, **config).gates}
        assert gates["tags.t.minimums.pass_rate"].observed == rate_of_tag


def test_a_tier_that_reaches_its_minimum_skips_nothing() -> None:
    decision = judged(TIERED, "c1 c2", tiers=SANITY_GATES_CORE)
    assert tiers(decision) == {"sanity": "pass", "core": "fail", "extra": "skipped"}
    assert decision.status(TIERED[3]) == "fail"


def test_a_waived_minimum_skips_nothing() -> None:
    waiver = {"gate": "tiers.sanity.minimum", "reason": "r", "owner": "o", "expires": "2099-12-31"}
    decision = judged(TIERED, "s1", tiers=SANITY_GATES_CORE, waivers=[waiver])
    assert tiers(decision) == {"sanity": "waived", "core": "pass", "extra": "pass"}
    assert decision.warnings == ()


def test_a_tier_without_rules_cannot_be_judged() -> None:
    queries = [query("s1", answer=ExpectedAnswer(tier="sanity"))]
    with pytest.raises(InputError, match="no golden query of the tier 'sanity' has rules"):
        report(queries, {"s1": FOUND}, config={"tiers": [{"name": "sanity", "minimum": 1}]})


def made(lost: str, **config: Any) -> Report:
    now = {one.id: LOST if one.id in lost.split() else FOUND for one in TIERED}
    return report_on(evaluate(TIERED, now, None, config))


def test_the_report_has_the_tiers_and_the_headline_says_what_is_skipped() -> None:
    found = made("s1 c1", tiers=SANITY_GATES_CORE)
    assert [(one.name, one.passed, one.queries, one.status, one.skipped) for one in found.tiers or []] == [
        ("sanity", 2, 3, "fail", None),
        ("core", 1, 2, "skipped", "tier 'sanity' missed its minimum"),
        ("extra", 1, 1, "skipped", "tier 'sanity' missed its minimum"),
    ]
    assert "2 tiers skipped" in found.summary_line


def test_tiers_of_golden_rows_are_in_the_report_without_a_limit_too() -> None:
    found = made("c1", **LIMIT)
    assert [(one.name, one.status, one.minimum) for one in found.tiers or []] == [
        ("sanity", "none", None),
        ("core", "none", None),
        ("extra", "none", None),
    ]


def test_a_contract_of_documents_alone_has_none_of_this_in_its_report() -> None:
    found = report([query("q1", "A")], {"q1": FOUND})
    assert not any([found.pass_rate, found.tiers, found.modes, found.labels])
