"""The decision about all gates and all rules, from which the verdict follows. Pure."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal

from msgspec import Struct

from ragcontract.core.finding import Finding
from ragcontract.core.golden import GoldenQuery
from ragcontract.decision.evaluated import Evaluation, Violations
from ragcontract.decision.findings import findings_of
from ragcontract.decision.gate_report import GateReport
from ragcontract.decision.gates import ChangeTests, change_tests, observe, report_gate, too_few_warnings
from ragcontract.decision.policy import (
    Distrusted,
    Outcomes,
    QueryStatus,
    distrusted_limits,
    excuse_gates,
    has_outcomes,
    outcomes_of,
    skip_rules,
    skipped_by,
    status_of,
    waiver_warnings,
    with_status,
)

Verdict = Literal["pass", "fail"]


class Decision(Struct, frozen=True, kw_only=True):
    """The results of gates and rules, and the findings made from them."""

    gates: tuple[GateReport, ...]
    tests: ChangeTests  # of the limits on changes
    violations: Violations
    outcomes: Outcomes = Outcomes()  # the pass rates, if they are wanted
    distrusted: Distrusted = {}  # why limits on what a judge said do not count
    findings: tuple[Finding, ...]
    warnings: tuple[str, ...]

    @property
    def verdict(self) -> Verdict:
        """``fail`` if any finding fails, otherwise ``pass``."""
        return "fail" if any(finding.status == "fail" for finding in self.findings) else "pass"

    def status(self, query: GoldenQuery) -> QueryStatus:
        return status_of(self.violations.get(query.id, ()))


def decide(evaluation: Evaluation, now: datetime) -> Decision:
    """Decide about the rules, excuse what does not count, then decide about the gates. Every gate must be observable.

    If a tier misses its minimum, the tiers that it gates are skipped, and the rest is decided again without them.
    ``now`` determines which waivers have expired, by days in UTC, and whether the calibration of a judge still counts.
    """
    contract, today = evaluation.contract, now.astimezone(UTC).date()
    distrusted = distrusted_limits(evaluation, now)
    violations, used = with_status(contract, evaluation.violations, today)
    outcomes = outcomes_of(contract, violations) if has_outcomes(contract) else Outcomes()
    tests = change_tests(contract, evaluation.aggregates)

    def gates_of(outcomes: Outcomes, skipped: Mapping[str, str]) -> tuple[tuple[GateReport, ...], frozenset[int]]:
        reports = [report_gate(gate, observe(gate, evaluation, outcomes), tests) for gate in contract.gates]
        return excuse_gates(contract, reports, today, distrusted=distrusted, skipped=skipped)

    gates, used_by_gates = gates_of(outcomes, {})
    if skipped := skipped_by(contract, gates):
        outcomes = outcomes_of(contract, violations, skipped)
        gates, used_by_gates = gates_of(outcomes, skipped)
        violations = skip_rules(contract, violations, skipped)
    return Decision(
        gates=gates,
        tests=tests,
        violations=violations,
        outcomes=outcomes,
        distrusted=distrusted,
        findings=tuple(findings_of(evaluation, gates, violations)),
        warnings=(
            *(waiver_warnings(contract, used | used_by_gates, today) if contract.with_gates else ()),
            *too_few_warnings(contract.gates, gates, tests),
        ),
    )
