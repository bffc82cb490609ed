"""The report as JUnit XML: a suite for the gates and one for the queries, with the metrics as properties."""

from collections.abc import Iterator, Sequence
from itertools import islice
from xml.etree import ElementTree as ET

from junit_xml import TestCase, TestSuite

from ragcontract.core.text import visible
from ragcontract.judging.words import told
from ragcontract.model import GateReport, QueryReport, Report
from ragcontract.reports.findings import findings, tolerated_findings
from ragcontract.reports.rank_changes import why_tolerated

Properties = dict[str, str]

BATCH = 1_000  # test cases that junit-xml holds at once


def render(report: Report) -> Iterator[bytes]:
    """Render the suites ``rag-contract gates`` and ``rag-contract queries``.

    Consumers show what failed: of a large set only queries with broken rules are listed, the others are counted.
    """
    k = max(report.k)
    complete = report.detail == "all"
    listed = [query for query in report.queries if complete or query.violations]
    properties = {key: str(metric.current) for key, metric in report.metrics.items() if metric.current is not None}
    properties |= {"verdict": report.verdict, "k": ",".join(map(str, report.k))}
    of_queries = dict(properties)
    if not complete:
        of_queries["passing_queries_not_listed"] = str(report.inputs.golden.queries - len(listed))
    gates = [gate.status for gate in report.gates]
    queries = [query.status if query.violations else "pass" for query in listed]
    tests, failures = len(gates) + len(queries), [*gates, *queries].count("fail")
    yield b'<?xml version="1.0" encoding="utf-8"?>\n'
    yield f'<testsuites disabled="0" errors="0" failures="{failures}" tests="{tests}" time="0.0">\n'.encode()
    yield from _suite("rag-contract gates", properties, gates, map(_gate, report.gates))
    yield from _suite("rag-contract queries", of_queries, queries, (_query(query, k) for query in listed))
    yield b"</testsuites>\n"


def _suite(name: str, properties: Properties, statuses: Sequence[str], cases: Iterator[TestCase]) -> Iterator[bytes]:
    """Render a suite whose cases have these statuses."""
    suite = TestSuite(name, properties=properties).build_xml_doc()
    failures, passes = statuses.count("fail"), statuses.count("pass")
    skipped = len(statuses) - failures - passes
    suite.attrib.update(tests=str(len(statuses)), failures=str(failures), skipped=str(skipped))
    yield _lines(ET.tostring(suite).removesuffix(b"</testsuite>"))
    while batch := list(islice(cases, BATCH)):
        part = ET.tostring(TestSuite(name, batch).build_xml_doc())
        yield _lines(part[part.index(b"<testcase") : part.rindex(b"</testsuite>")])
    yield b"</testsuite>\n"


def _lines(xml: bytes) -> bytes:
    """Put every element in a line of its own: no text holds "><", as ">" is escaped there."""
    return xml.replace(b"><", b">\n<") + b"\n"


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
