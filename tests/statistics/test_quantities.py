"""Limits on latency, which is no metric: what is observed, where the limit lies, what cannot be judged."""

from datetime import UTC, datetime

import pytest

from ragcontract.core.errors import InputError
from ragcontract.core.run import Latency
from ragcontract.decision.decide import decide
from ragcontract.decision.gate_report import GateReport
from ragcontract.report.build import report_of
from ragcontract.report.record import Report
from ragcontract.report.terminal import check_text
from tests.records import NOW, Config, Rows, evaluate, query, rendered
from tests.records import report as report_on

NOW_MS = Latency(rows=20, p50_ms=100, p95_ms=480, max_ms=900)
BEFORE = Latency(rows=20, p50_ms=90, p95_ms=400, max_ms=950)


def rows(latency: Latency | None, name: str = "run.jsonl") -> Rows:
    return Rows(docs={"q1": ["a"]}, name=name, latency=latency)


def reported(
    limits: Config, now: Latency | None = NOW_MS, before: Latency | None = BEFORE, *, baseline: bool = True
) -> Report:
    base = rows(before, "base.jsonl") if baseline else None
    return report_on([query("q1", "a")], rows(now), base, {"latency": limits})


def gate(limits: Config, now: Latency = NOW_MS, before: Latency = BEFORE) -> GateReport:
    (found,) = reported(limits, now, before).gates
    return found


@pytest.mark.parametrize(
    ("limits", "gate_id", "observed", "status", "message"),
    [
        ({"p50_ms": 100}, "p50_ms", 100, "pass", "p50 latency is 100 ms, allowed 100 ms"),
        ({"p50_ms": 99.5}, "p50_ms", 100, "fail", "p50 latency is 100 ms, allowed 99.5 ms"),
        ({"p95_ms": 400}, "p95_ms", 480, "fail", "p95 latency is 480 ms, allowed 400 ms"),
        ({"max_ms": 1000}, "max_ms", 900, "pass", "max latency is 900 ms, allowed 1000 ms"),
        ({"max_ms": 899.9999}, "max_ms", 900, "fail", "max latency is 900 ms, allowed 899.9999 ms"),
        (
            {"p95_increase_gt": 50},
            "p95_increase_gt",
            80,
            "fail",
            "p95 latency rose by 80 ms, allowed increase 50 ms",
        ),
        (
            {"p95_increase_gt": 80},
            "p95_increase_gt",
            80,
            "pass",
            "p95 latency rose by 80 ms, allowed increase 80 ms",
        ),
        (
            {"p95_increase_gt": "20%"},
            "p95_increase_gt",
            0.2,
            "pass",
            "p95 latency rose by 20% of the baseline, allowed increase 20%",
        ),
        (
            {"p95_increase_gt": "19.5 %"},
            "p95_increase_gt",
            0.2,
            "fail",
            "p95 latency rose by 20% of the baseline, allowed increase 19.5%",
        ),
    ],
)
def test_a_limit_is_the_most_that_is_allowed(
    limits: Config, gate_id: str, observed: float, status: str, message: str
) -> None:
    found = gate(limits)
    assert found.observed == pytest.approx(observed)
    assert (found.id, found.status) == (f"latency.{gate_id}", status)
    assert (found.message, found.location) == (message, "ragcontract.yml:7")


def test_what_got_faster_or_stayed_breaks_no_increase() -> None:
    limits = {"p95_increase_gt": 0}
    assert gate(limits, BEFORE, NOW_MS).message == "p95 latency fell by 80 ms, allowed increase 0 ms"
    assert gate(limits, BEFORE, BEFORE).message == "p95 latency did not rise, allowed increase 0 ms"
    assert {gate(limits, BEFORE, before).status for before in (BEFORE, NOW_MS)} == {"pass"}


def test_a_broken_limit_breaks_the_contract_and_is_counted() -> None:
    found = reported({"p50_ms": 100, "p95_ms": 400})
    assert (found.verdict, [check.id for check in found.failed_checks]) == ("fail", ["latency.p95_ms"])
    assert found.latency is not None
    assert (found.latency.current, found.latency.baseline) == (NOW_MS, BEFORE)
    assert reported({}, None).latency is None


@pytest.mark.parametrize(
    ("limits", "now", "before", "baseline", "reason"),
    [
        ({"max_ms": 1}, None, None, False, "no row of the run has latency_ms; export it, or leave the"),
        ({"p95_increase_gt": 1}, None, BEFORE, True, "no row of the run has latency_ms; export it, or"),
        ({"p95_increase_gt": 1}, NOW_MS, None, True, "the baseline has no latency; recreate it with"),
        ({"p95_increase_gt": "9%"}, NOW_MS, None, True, "the baseline has no latency; recreate it with"),
        ({"p95_increase_gt": "9%"}, NOW_MS, None, False, "there is no baseline; make one with"),
        (
            {"p95_increase_gt": "9%"},
            NOW_MS,
            Latency(rows=1, p50_ms=0, p95_ms=0, max_ms=0),
            True,
            "the baseline's p95 is 0 ms",
        ),
    ],
)
def test_what_cannot_be_judged_is_an_error(
    limits: Config, now: Latency | None, before: Latency | None, *, baseline: bool, reason: str
) -> None:
    with pytest.raises(InputError) as raised:
        reported(limits, now, before, baseline=baseline)
    (problem,) = raised.value.problems
    assert problem.startswith("ragcontract.yml:7: latency.")
    assert f" cannot be judged: {reason}" in problem


def test_an_increase_beyond_all_numbers_is_still_one() -> None:
    tiny, huge = (Latency(rows=1, p50_ms=ms, p95_ms=ms, max_ms=ms) for ms in (5e-324, 1e308))
    found = gate({"p95_increase_gt": "99999%"}, huge, tiny)
    assert (found.status, found.observed) == ("fail", 1.7976931348623157e308)


def test_a_waiver_names_it_by_its_id() -> None:
    waiver = {"gate": "latency.p95_ms", "reason": "slow", "owner": "me", "expires": "2026-12-31"}
    config = {"latency": {"p95_ms": 400, "max_ms": 800}, "waivers": [waiver]}
    evaluation = evaluate([query("q1", "a")], rows(NOW_MS), None, config)
    decision = decide(evaluation, datetime(2026, 7, 1, tzinfo=UTC))
    assert [(gate.id, gate.status) for gate in decision.gates] == [
        ("latency.p95_ms", "waived"),
        ("latency.max_ms", "fail"),
    ]
    assert decision.warnings == ()
    made = report_of(evaluation, decision, [], NOW)
    assert "| p95 latency | ☑️ waived | 480 ms<br>allowed 400 ms |" in page_of(made)


def page_of(made: Report) -> str:
    return rendered(made)["report-md"].decode()


def test_the_tables_have_a_row_for_each_that_is_limited() -> None:
    found = reported({"p95_ms": 500, "p95_increase_gt": "10%", "max_ms": 1000})
    text = page_of(found)
    assert (
        "| p95 latency | ❌ fail | 400 ms → 480 ms (+80 ms)<br>allowed 500 ms, allowed increase 10% (broken) |" in text
    )
    assert "| max latency | ✅ pass | 950 ms → 900 ms (-50 ms)<br>allowed 1000 ms |" in text
    assert "p50 latency" not in text
    assert "max latency  950 ms -> 900 ms  -50 ms  " in check_text(found)
    without = page_of(reported({"p95_ms": 500}, before=None))
    assert "| p95 latency | ✅ pass | 480 ms<br>allowed 500 ms |" in without


def test_junit_has_a_case_for_each() -> None:
    text = rendered(reported({"p95_ms": 400}))["junit"].decode()
    assert 'name="latency.p95_ms"' in text
    assert 'type="latency" message="p95 latency is 480 ms, allowed 400 ms"' in text


def test_the_note_on_shared_queries_is_about_means() -> None:
    golden = [query("q1", "a"), query("q2", "a")]
    run = Rows(docs={"q1": ["a"], "q2": ["b"]}, name="run.jsonl", latency=NOW_MS)
    found = report_on(golden, run, rows(BEFORE), {"latency": {"p95_ms": 500}})
    text = page_of(found)
    assert "(1 new)" in text
    assert "p95 latency 480" not in text
