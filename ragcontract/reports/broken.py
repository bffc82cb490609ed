"""Selects the findings of a report by gate or query."""

from collections.abc import Sequence

from ragcontract.core.finding import Finding
from ragcontract.core.scores import RanksById
from ragcontract.judging.gate_report import NOT_PROVEN
from ragcontract.reports.report import QueryReport, Report

FAILING = frozenset({"fail", "counted"})  # what fails by itself, or counts in a pass rate that may
NEW, IN_BASELINE = "new", "already in the baseline"


def since(report: Report, item: QueryReport | Finding) -> str:
    """Return whether something broken is ``new`` or ``already in the baseline``; empty without a baseline."""
    if report.inputs.baseline is None:
        return ""
    return IN_BASELINE if item.in_baseline else NEW


def sizes_since(report: Report, new: int, in_baseline: int) -> str:
    """Return ``: 5 new, 4 already in the baseline`` or ``, all new``; empty without a baseline."""
    if report.inputs.baseline is None:
        return ""
    if new and in_baseline:
        return f": {new:,} {NEW}, {in_baseline:,} {IN_BASELINE}"
    return f", {'all ' if new + in_baseline > 1 else ''}{NEW if new else IN_BASELINE}"


def broken_gates(report: Report) -> list[Finding]:
    """Return the findings of gates that fail."""
    return [finding for finding in report.findings if finding.kind == "gate" and finding.status == "fail"]


def waived_gates(report: Report) -> list[Finding]:
    """Return the findings of gates that are waived."""
    return [finding for finding in report.findings if finding.kind == "gate" and finding.status == "waived"]


def not_proven_gates(report: Report) -> list[Finding]:
    """Return the findings of changes over their limits that do not fail because they are not shown to be real."""
    return [finding for finding in report.findings if finding.kind == "gate" and finding.status in NOT_PROVEN]


class FindingsByQuery:
    """The findings of a report on rules, by query id."""

    def __init__(self, report: Report) -> None:
        """Group the findings by query."""
        self._by_query: dict[str, list[Finding]] = {}
        for finding in report.findings:
            if finding.query_id is not None:
                self._by_query.setdefault(finding.query_id, []).append(finding)

    def of(self, query_id: str) -> Sequence[Finding]:
        """Return all findings of a query."""
        return self._by_query.get(query_id, [])

    def failing(self, query_id: str) -> list[Finding]:
        """Return the findings of a query that fail, or count in the pass rate."""
        return [finding for finding in self.of(query_id) if finding.status in FAILING]

    def tolerated(self, query_id: str) -> list[Finding]:
        """Return the findings of a query that do not fail."""
        return [finding for finding in self.of(query_id) if finding.status not in FAILING]

    def why_failing(self, query_id: str) -> str:
        """Return why findings of a query fail where only the pass rate decides; empty where every broken rule fails."""
        return "; ".join(dict.fromkeys(one.why for one in self.of(query_id) if one.status == "fail" and one.why))

    def why_tolerated(self, query_id: str, status: str = "") -> str:
        """Return the reasons why findings of a query do not fail, empty if all of them fail.

        They do not begin with the ``status`` of the query where readers see that already.
        """
        reasons = dict.fromkeys(finding.why for finding in self.tolerated(query_id))
        return "; ".join(reason.removeprefix(status).lstrip(": ") if status else reason for reason in reasons)


def why_and_since(report: Report, query: QueryReport, findings: FindingsByQuery) -> str:
    """Return whether a query that fails is new, and why findings of it fail, or do not fail."""
    age = failing_since(report, query, findings) if query.status in FAILING else ""
    return "; ".join(filter(None, [age, findings.why_tolerated(query.id)]))


def failing_since(report: Report, query: QueryReport, findings: FindingsByQuery, *, age: bool = True) -> str:
    """Return the ``age`` of a query that fails, as :func:`since`, and why it fails if that needs a reason."""
    return "; ".join(filter(None, [since(report, query) if age else "", findings.why_failing(query.id)]))


def broken_queries(report: Report) -> list[QueryReport]:
    """Return the queries that fail or count, worst first: new ones, then those that the baseline has already."""
    return sorted((query for query in report.queries if query.status in FAILING), key=worst_first_key)


def tolerated_queries(report: Report) -> list[QueryReport]:
    """Return the queries with findings that do not fail, worst first; others of their findings may."""
    tolerated = {finding.query_id for finding in report.findings if finding.status not in FAILING}
    return sorted((query for query in report.queries if query.id in tolerated), key=worst_first_key)


def not_failing_queries(report: Report) -> list[QueryReport]:
    """Return the queries with findings none of which fails, worst first."""
    return [query for query in tolerated_queries(report) if query.status not in FAILING]


def worst_first_key(query: QueryReport) -> tuple[bool, bool, bool, float]:
    """Return a sort key: what fails by itself, new first, then forbidden documents, then the largest loss of rank."""
    forbidden = any(doc_id in query.forbidden_ranks for broken in query.violations for doc_id in broken.doc_ids)
    before = len(query.ranks) if query.baseline_ranks is None else _reciprocals(query.baseline_ranks)
    return query.status == "counted", query.in_baseline, not forbidden, _reciprocals(query.ranks) - before


def _reciprocals(ranks: RanksById) -> float:
    return sum(1 / rank for rank in ranks.values() if rank)
