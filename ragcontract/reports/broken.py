"""Selects the findings of a report by gate or query."""

from collections.abc import Sequence

from ragcontract.core.finding import Finding, sentence
from ragcontract.core.phrase import Quote
from ragcontract.reports.report import Report


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


def sentences(findings: Sequence[Finding], name: Quote = str, text: Quote = str) -> str:
    """Return the sentences of findings as one line; ``name`` and ``text`` escape names and other text."""
    return "; ".join(sentence(finding, name, text) for finding in findings)
