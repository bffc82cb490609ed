"""Selects the findings of a report by gate or query."""

from collections.abc import Sequence

from ragcontract.core.finding import Finding
from ragcontract.core.scores import RanksById
from ragcontract.reports.report import QueryReport, Report


def broken_gates(report: Report) -> list[Finding]:
    """Return the findings of gates that fail."""
    return [finding for finding in report.findings if finding.kind == "gate" and finding.status == "fail"]


def waived_gates(report: Report) -> list[Finding]:
    """Return the findings of gates that are waived."""
    return [finding for finding in report.findings if finding.kind == "gate" and finding.status != "fail"]


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
        """Return the findings of a query that fail."""
        return [finding for finding in self.of(query_id) if finding.status == "fail"]

    def tolerated(self, query_id: str) -> list[Finding]:
        """Return the findings of a query that do not fail."""
        return [finding for finding in self.of(query_id) if finding.status != "fail"]

    def why_tolerated(self, query_id: str) -> str:
        """Return the reasons why findings of a query do not fail; empty if all of them fail."""
        return "; ".join(dict.fromkeys(finding.why for finding in self.tolerated(query_id)))


def broken_queries(report: Report) -> list[QueryReport]:
    """Return the broken queries, worst first."""
    return sorted((query for query in report.queries if query.status == "fail"), key=worst_first_key)


def tolerated_queries(report: Report) -> list[QueryReport]:
    """Return the queries with findings that do not fail, worst first; others of their findings may."""
    tolerated = {finding.query_id for finding in report.findings if finding.status != "fail"}
    return sorted((query for query in report.queries if query.id in tolerated), key=worst_first_key)


def worst_first_key(query: QueryReport) -> tuple[bool, float]:
    """Return a sort key: forbidden documents first, then the largest loss of rank since the baseline, or of all."""
    forbidden = any(doc_id in query.forbidden_ranks for broken in query.violations for doc_id in broken.doc_ids)
    before = len(query.ranks) if query.baseline_ranks is None else _reciprocals(query.baseline_ranks)
    return not forbidden, _reciprocals(query.ranks) - before


def _reciprocals(ranks: RanksById) -> float:
    return sum(1 / rank for rank in ranks.values() if rank)
