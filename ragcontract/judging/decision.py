"""The decision on everything that was evaluated: every gate, every rule of every query. Pure."""

from datetime import date
from typing import Literal

from msgspec import Struct

from ragcontract.core.finding import Finding
from ragcontract.core.rule import Violation
from ragcontract.judging.evaluated import Evaluation
from ragcontract.judging.findings import findings_of
from ragcontract.judging.gates import GateReport, observe, report_gate
from ragcontract.judging.policy import significance_of, waive_gates, waive_rules, waiver_warnings
from ragcontract.judging.violations import Violations, violations_of

Verdict = Literal["pass", "fail"]
QueryStatus = Literal["pass", "fail", "warn", "waived"]


class Decision(Struct, frozen=True, kw_only=True):
    """What is broken, and what of it counts."""

    gates: tuple[GateReport, ...]
    violations: Violations
    findings: tuple[Finding, ...]
    warnings: tuple[str, ...]
    warn_only: frozenset[str]

    @property
    def verdict(self) -> Verdict:
        """Fail if any finding does."""
        return "fail" if any(finding.status == "fail" for finding in self.findings) else "pass"

    def status(self, query_id: str) -> QueryStatus:
        """Return what becomes of a query."""
        violations: tuple[Violation, ...] = self.violations.get(query_id, ())
        if not violations:
            return "pass"
        if all(violation.waived is not None for violation in violations):
            return "waived"
        return "warn" if query_id in self.warn_only else "fail"


def decide(evaluation: Evaluation, today: date) -> Decision:
    """Judge: rules and the policy on them, then gates and the policy on those; every gate must be observable."""
    contract = evaluation.contract
    violations, used = waive_rules(contract, violations_of(evaluation), today)
    significance = significance_of(contract, contract.gates, evaluation.aggregates)
    reports = [report_gate(gate, observe(gate, evaluation), significance.get(gate.id)) for gate in contract.gates]
    gates, used_by_gates = waive_gates(contract, reports, today)
    warn_only = frozenset(query_id for query_id in violations if contract.queries[query_id].severity == "warn")
    return Decision(
        gates=gates,
        violations=violations,
        findings=tuple(findings_of(evaluation, contract.gates, gates, violations)),
        warnings=tuple(waiver_warnings(contract, used | used_by_gates, today)),
        warn_only=warn_only,
    )
