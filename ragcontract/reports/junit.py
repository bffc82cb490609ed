"""The report as JUnit XML: a suite for the gates and one for the queries, with the metrics as properties."""

from collections.abc import Iterator

from junit_xml import TestCase, TestSuite, to_xml_report_string

from ragcontract.judging.words import told
from ragcontract.model import GateReport, QueryReport, Report
from ragcontract.reports.findings import findings, tolerated_findings
from ragcontract.reports.movement import why_tolerated
from ragcontract.text import visible

# junit-xml holds the whole tree in memory; consumers show failures, so passing queries of a large set are counted.
LISTED_QUERIES = 10_000


def render(report: Report) -> str:
    """Render the suites ``rag-contract gates`` and ``rag-contract queries``."""
    k = max(report.k)
    list_passing = len(report.queries) <= LISTED_QUERIES
    listed = [query for query in report.queries if list_passing or query.violations]
    properties = {key: str(metric.current) for key, metric in report.metrics.items() if metric.current is not None}
    properties |= {"verdict": report.verdict, "k": ",".join(map(str, report.k))}
    query_properties = dict(properties)
    if not list_passing:
        query_properties["passing_queries_not_listed"] = str(len(report.queries) - len(listed))
    suites = [
        TestSuite("rag-contract gates", [_gate(gate) for gate in report.gates], properties=properties),
        TestSuite("rag-contract queries", [_query(query, k) for query in listed], properties=query_properties),
    ]
    # Its own indentation parses the whole document again and takes seconds. No text holds "><": ">" is escaped there.
    document = str(to_xml_report_string(suites, prettyprint=False)).replace("><", ">\n<")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{document}\n'


def _gate(gate: GateReport) -> TestCase:
    case = TestCase(visible(gate.id), classname="rag-contract.gates")
    if gate.status == "fail":
        message = told(gate, visible)
        case.add_failure_info(message=message, output=message, failure_type=gate.kind)
    elif gate.waived is not None:
        case.add_skipped_info(message=visible(f"{told(gate)}; waived {gate.waived}"))
    return case


def _query(query: QueryReport, k: int) -> TestCase:
    case = TestCase(visible(query.id), classname="rag-contract.queries")
    if query.status == "fail":
        found = [(finding.expected(visible), finding.found(visible)) for finding in findings(query, k)]
        case.add_failure_info(
            message="; ".join(f"expected {wanted}, found: {got}" for wanted, got in found),
            output="\n".join(
                [
                    visible(query.query),
                    *(f"Expected {wanted}\nFound: {got}" for wanted, got in found),
                    *_waived(query, k),
                ]
            ),
            failure_type=", ".join(violation.rule for violation in query.violations if violation.waived is None),
        )
    elif query.violations:
        case.add_skipped_info(message=visible(why_tolerated(query)))
    return case


def _waived(query: QueryReport, k: int) -> Iterator[str]:
    """Say what else is broken in a query that fails, and why that does not count."""
    if why := why_tolerated(query):
        for finding in tolerated_findings(query, k):
            yield f"Not counted: {finding.expected(visible)}: {finding.found(visible)}"
        yield visible(why)
