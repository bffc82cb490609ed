"""The report as JUnit XML: one suite for the gates and one for the queries, with the metrics as properties.

Each case has the file and the line that define it, and the name of the contract, so that tools that collect the
results of several contracts can distinguish them.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from xml.etree import ElementTree as ET

from junit_xml import TestCase, TestSuite

from ragcontract.core import bounds
from ragcontract.core.finding import Finding, sentence
from ragcontract.core.numbers import more
from ragcontract.core.phrase import Location
from ragcontract.core.phrase import render as say
from ragcontract.core.safe_text import visible
from ragcontract.decision.gate_report import GateReport
from ragcontract.report.formats import Reported
from ragcontract.report.history_line import trend_lines
from ragcontract.report.history_report import notes_of
from ragcontract.report.notes import change_notes, scope_note
from ragcontract.report.queries import FindingsByQuery, shown_answer, since, why_excused
from ragcontract.report.record import ErrorReport, QueryReport, Report

Properties = dict[str, str]

DECLARATION = b'<?xml version="1.0" encoding="utf-8"?>\n'
COUNTED = "counts in the pass rate"
BATCH = 1_000  # test cases that are written at once
ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})  # in an attribute


def render(report: Report) -> Iterator[bytes]:
    """Render the suites ``rag-contract gates`` and ``rag-contract queries``, for a named contract with its name.

    For a large set, only queries with broken rules are listed and the others are counted, because CI systems show
    mainly failures.
    """
    findings = FindingsByQuery(report)
    of_gates = {finding.ids[0]: finding for finding in report.findings if finding.kind == "gate"}
    complete = report.detail == "all"
    listed = [query for query in report.queries if complete or query.violations]
    properties = {key: str(metric.current) for key, metric in report.metrics.items() if metric.current is not None}
    properties |= {"verdict": report.verdict, "k": ",".join(map(str, report.k))}
    of_history = (*change_notes(report), *notes_of(report.history), *(trend_lines(report) if report.history else ()))
    if notes := [say(phrase, visible, visible) for phrase in of_history]:
        properties["history"] = "; ".join(notes)
    if note := scope_note(report):
        properties["scope"] = say(note, visible, visible)
    of_queries = dict(properties)
    if not complete:
        of_queries["passing_queries_not_listed"] = str(report.inputs.golden.queries - len(listed))
    gates = [gate.status for gate in report.gates]
    queries = [query.status for query in listed]
    tests, failures = len(gates) + len(queries), [*gates, *queries].count("fail")
    yield DECLARATION
    yield f'<testsuites disabled="0" errors="0" failures="{failures}" tests="{tests}" time="0.0">\n'.encode()
    of_gate = (_gate(gate, of_gates.get(gate.id), _name(report, "gates", ".")) for gate in report.gates)
    yield from _suite(_name(report, "gates"), properties, gates, map(_xml, of_gate))
    classname = _name(report, "queries", ".")
    cases = (
        _xml(_query(query, findings, report, classname)) if query.violations else _passing(query, classname)
        for query in listed
    )
    yield from _suite(_name(report, "queries"), of_queries, queries, cases)
    yield b"</testsuites>\n"


def render_error(report: ErrorReport) -> bytes:
    """Render one test case for input that cannot be judged: its error has all problems."""
    problems = [visible(problem) for problem in report.problems]
    problems += filter(None, [more(report.more_problems, 0, form="… and {}")])
    case = TestCase("the input can be judged", classname=_name(report, "input", "."))
    case.add_error_info(message=problems[0], output="\n".join(problems), error_type="input")
    suite = TestSuite(_name(report, "input"), [case], properties={"verdict": report.verdict}).build_xml_doc()
    head = b'<testsuites disabled="0" errors="1" failures="0" tests="1" time="0.0">\n'
    return DECLARATION + head + _lines(ET.tostring(suite)) + b"</testsuites>\n"


def _name(report: Report | ErrorReport, what: str, between: str = " ") -> str:
    """Return the name of a suite, or of the class of its cases, whose parts have dots between them."""
    return between.join(filter(None, ["rag-contract", visible(report.contract), what]))


def _case(name: str, classname: str, location: str) -> TestCase:
    """Return a test case with the file and the line of its ``location``, such as ``golden.jsonl:17``."""
    at = Location.of_report(location)
    return TestCase(visible(name), classname=classname, file=visible(at.path) or None, line=at.line or None)


def _xml(case: TestCase) -> bytes:
    suite = ET.tostring(TestSuite("", [case]).build_xml_doc())
    return suite[suite.index(b"<testcase") : suite.rindex(b"</testsuite>")]


def _passing(query: QueryReport, classname: str) -> bytes:
    """Render a case without anything in it as ``_xml`` does; nearly all queries of a large set are like that."""
    at = Location.of_report(query.location)
    name, line = visible(query.id).translate(ESCAPES), f' line="{at.line}"' if at.line else ""
    shared = _attribute("classname", classname) + _attribute("file", at.path)
    return f'<testcase name="{name}"{shared}{line} />'.encode("ascii", "xmlcharrefreplace")


@lru_cache(8)  # nearly all cases have the same
def _attribute(name: str, text: str) -> str:
    return f' {name}="{visible(text).translate(ESCAPES)}"' if text else ""


def _suite(name: str, properties: Properties, statuses: Sequence[str], cases: Iterator[bytes]) -> Iterator[bytes]:
    """Render a suite; ``statuses`` are those of its cases, for the totals."""
    suite = TestSuite(name, properties=properties).build_xml_doc()
    failures, passes = statuses.count("fail"), statuses.count("pass")
    skipped = len(statuses) - failures - passes
    suite.attrib.update(tests=str(len(statuses)), failures=str(failures), skipped=str(skipped))
    yield _lines(ET.tostring(suite).removesuffix(b"</testsuite>"))
    while batch := list(islice(cases, BATCH)):
        yield _lines(b"".join(batch))
    yield b"</testsuite>\n"


def _lines(xml: bytes) -> bytes:
    """Put every element on its own line; text never contains "><", because ">" is escaped in it."""
    return xml.replace(b"><", b">\n<") + b"\n"


def file_of(outcome: Reported) -> Iterator[bytes]:
    """Render the report of a check."""
    return render(outcome.report)


file_of_error = render_error


def _gate(gate: GateReport, finding: Finding | None, classname: str) -> TestCase:
    case = _case(gate.id, classname, gate.location)
    if gate.skipped:
        case.add_skipped_info(message=visible(gate.skipped))
    elif finding is not None:
        message = sentence(finding, visible, visible)
        if finding.status == "fail":
            details = [say(phrase, visible, visible) for phrase in finding.details]
            case.add_failure_info(
                message=message, output="\n".join([message, *details]), failure_type=gate.kind_in_json
            )
        else:
            case.add_skipped_info(message=f"{message}; {visible(finding.why)}")
    return case


def _query(query: QueryReport, findings: FindingsByQuery, report: Report, classname: str) -> TestCase:
    case = _case(query.id, classname, query.location)
    if not query.violations:
        return case
    failing, why = findings.failing(query.id), visible(findings.why_tolerated(query.id))
    if query.status == "counted":
        case.add_skipped_info(
            message="; ".join([*(sentence(finding, visible, visible) for finding in failing), COUNTED])
        )
    elif failing:
        tolerated = [
            f"Not counted: {_expected(finding)}: {_found(finding)}" for finding in findings.tolerated(query.id)
        ]
        described = [f"Expected {_expected(finding)}\nFound: {_found(finding)}" for finding in failing]
        if answer := shown_answer(query, bounds.SAID):
            described.append(f"Answer: {answer}")
        age = say(since(report, query), visible, visible)
        case.add_failure_info(
            message=(f"{age}: " if age else "") + "; ".join(sentence(finding, visible, visible) for finding in failing),
            output="\n".join([visible(query.query), *described, *tolerated, *([why] if why else [])]),
            failure_type=", ".join(dict.fromkeys(rule for finding in failing for rule in finding.ids)),
        )
    else:
        status = "skipped" if query.status == "skipped" else ""  # the name of the element says it already
        case.add_skipped_info(message=say(why_excused(report, query, findings, status), visible, visible))
    return case


def _expected(finding: Finding) -> str:
    return say(finding.expected, visible, visible)


def _found(finding: Finding) -> str:
    return say(finding.found, visible, visible)
