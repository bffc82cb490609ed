"""The decision about all gates and all rules, from which the verdict follows. Pure."""

from datetime import UTC, date, datetime
from typing import Literal

from msgspec import Struct

from ragcontract.core.finding import Finding
from ragcontract.core.golden import GoldenQuery
from ragcontract.decision.evaluated import Evaluation, Violations
from ragcontract.decision.findings import findings_of
from ragcontract.decision.gate_report import GateReport
from ragcontract.decision.gates import ChangeTests, change_tests, observe, report_gate, too_few_warnings
from ragcontract.decision.policy import (
    ADVISORY,
    Distrusted,
    Outcomes,
    QueryStatus,
    distrusted_limits,
    has_outcomes,
    outcomes_of,
    skip_gates,
    skip_rules,
    skipped_by,
    status_of,
    waive_gates,
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
    gates, used_by_gates = _gates(evaluation, outcomes, tests, today, distrusted)
    if skipped := skipped_by(contract, gates):
        outcomes = outcomes_of(contract, violations, skipped)
        gates, used_by_gates = _gates(evaluation, outcomes, tests, today, distrusted)
        violations = skip_rules(contract, violations, skipped)
        gates = skip_gates(gates, lambda gate: skipped.get(gate.tier or ""))
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


def _gates(
    evaluation: Evaluation, outcomes: Outcomes, tests: ChangeTests, today: date, distrusted: Distrusted
) -> tuple[tuple[GateReport, ...], frozenset[int]]:
    """Return the results of all gates with waivers applied, and the indexes of the waivers that match a gate."""
    contract = evaluation.contract
    reports = [report_gate(gate, observe(gate, evaluation, outcomes), tests) for gate in contract.gates]
    waived, used = waive_gates(contract, reports, today)
    advisory = distrusted if contract.config.judge.uncalibrated == "advisory" else {}
    return skip_gates(waived, lambda gate: ADVISORY if gate.id in advisory else None), used
