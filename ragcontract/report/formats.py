"""The report formats, each with the name of its option and a function that renders the file.

A new format is a class here and an entry in FORMATS, from which the command line derives its option. Its input in
``action.yml`` and its setting are written by hand; a test compares them with FORMATS.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

from ragcontract.report import json_report
from ragcontract.report.markdown import document
from ragcontract.report.record import Detail, ErrorReport, QueryReport, Report

if TYPE_CHECKING:
    from ragcontract.report.report_v2 import ReportCase


class Reported(Protocol):
    """The input of a format: the report, and the queries that report.json lists."""

    @property
    def report(self) -> Report:
        """The report."""

    @property
    def detail(self) -> Detail:
        """Which queries :meth:`queries` returns."""

    def queries(self) -> Iterator[QueryReport]:
        """Return an iterator over the queries; can be called several times."""

    @property
    def shows_answers(self) -> bool:
        """Whether formats may show answers and retrieved texts."""

    def cases(self) -> Iterator["ReportCase"]:
        """Return an iterator over the queries with their answers; each call reads the run again."""


class Format(Protocol):
    """A file format of the report; ``default`` is the default path, empty for none."""

    name: str
    default: str
    help: str

    def render(self, outcome: Reported) -> Iterable[bytes]:
        """Return the content of the file, in parts."""

    def render_error(self, report: ErrorReport) -> bytes:
        """Return the content of the file for input that cannot be judged."""


class Markdown:
    """``report.md``."""

    name = "report-md"
    default = "report.md"
    help = "Where to write the Markdown report; '' for none."

    def render(self, outcome: Reported) -> Iterable[bytes]:
        """Render the whole report."""
        return [document.render(outcome.report, name=outcome.report.contract).encode()]

    def render_error(self, report: ErrorReport) -> bytes:
        """Render the problems."""
        return document.render_error(report, name=report.contract).encode()


class Json:
    """``report.json``; the only format that uses ``queries`` of :class:`Reported`."""

    name = "report-json"
    default = "report.json"
    help = "Where to write the JSON report; '' for none."

    def render(self, outcome: Reported) -> Iterable[bytes]:
        """Encode the report, one query per line."""
        return json_report.render(outcome.report, outcome.queries(), outcome.detail)

    def render_error(self, report: ErrorReport) -> bytes:
        """Encode the problems; the verdict is ``error``."""
        return json_report.render_error(report)


class JUnit:
    """``junit.xml``."""

    name = "junit"
    default = "junit.xml"
    help = "Where to write the JUnit report; '' for none."

    def render(self, outcome: Reported) -> Iterable[bytes]:
        """Render one test case per gate and per query."""
        from ragcontract.report import junit

        return junit.render(outcome.report)

    def render_error(self, report: ErrorReport) -> bytes:
        """Render one test case with an error."""
        from ragcontract.report import junit

        return junit.render_error(report)


class Html:
    """``report.html``."""

    name = "report-html"
    default = ""
    help = "Where to write a self-contained HTML report."

    def render(self, outcome: Reported) -> Iterable[bytes]:
        """Render the page."""
        from ragcontract.report.html import page

        return [page.render(outcome.report)]

    def render_error(self, report: ErrorReport) -> bytes:
        """Render a page with the problems."""
        from ragcontract.report.html import page

        return page.render_error(report)


class ReportV2:
    """The report of ``run_eval_rag``; the only format that uses ``cases`` of :class:`Reported`."""

    name = "report-v2"
    default = ""
    help = "Where to write the report with run_eval_rag's schema version 2."

    def render(self, outcome: Reported) -> Iterable[bytes]:
        """Encode an item for each query and gate, and a case for each query."""
        from ragcontract.report import report_v2

        return report_v2.render(outcome.report, outcome.cases, answers=outcome.shows_answers)

    def render_error(self, report: ErrorReport) -> bytes:
        """Encode an item for each problem."""
        from ragcontract.report import report_v2

        return report_v2.render_error(report)


FORMATS: tuple[Format, ...] = (Markdown(), Json(), JUnit(), Html(), ReportV2())
