"""The report formats, each with the name of its option and a function that renders the file.

A new format is a module and an entry in FORMATS, from which the command line derives its option. Its input in
``action.yml`` and its setting are written by hand; a test compares them with FORMATS.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.lines import Line
from ragcontract.core.run import RunRow, row_type
from ragcontract.decision.decide import Decision
from ragcontract.report.record import Detail, ErrorReport, QueryReport, Report

# The rows of the run that formats can ask for.
ANSWERED: type[RunRow] = row_type(
    frozenset({"response", "error", "error_detail", "context_chars"}), results_required=False
)


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

    @property
    def decision(self) -> Decision:
        """What became of the broken rules."""

    def passages(self) -> Mapping[str, Mapping[str, str]]:
        """Return the recorded texts of documents that entered or left the top k, by query id; reads the rows again."""

    def answered(self) -> Iterator[tuple[GoldenQuery, RunRow | None]]:
        """Return each golden query with its first row of the run, if it has any; each call reads the run again."""


class Renders(Protocol):
    """The module of a format."""

    def file_of(self, outcome: Reported) -> Iterable[bytes]:
        """Return the content of the file, in parts."""

    def file_of_error(self, report: ErrorReport) -> bytes:
        """Return the content of the file for input that cannot be judged."""


class Format(NamedTuple):
    """A file format of the report. Its module is imported when a report is written in it."""

    name: str  # of its option
    default: str  # the default path, empty for none
    help: str
    line: Line[Renders]

    def render(self, outcome: Reported) -> Iterable[bytes]:
        """Return the content of the file, in parts."""
        return self.line.load().file_of(outcome)

    def render_error(self, report: ErrorReport) -> bytes:
        """Return the content of the file for input that cannot be judged."""
        return self.line.load().file_of_error(report)


_MARKDOWN = "Where to write the Markdown report; '' for none."
_JSON, _JUNIT = "Where to write the JSON report; '' for none.", "Where to write the JUnit report; '' for none."
_HTML = "Where to write a self-contained HTML report."
_V2 = "Where to write the report with run_eval_rag's schema version 2."
FORMATS = (
    Format("report-md", "report.md", _MARKDOWN, Line(home="ragcontract.report.markdown")),
    Format("report-json", "report.json", _JSON, Line(home="ragcontract.report.json_report")),
    Format("junit", "junit.xml", _JUNIT, Line(home="ragcontract.report.junit")),
    Format("report-html", "", _HTML, Line(home="ragcontract.report.html.page")),
    Format("report-v2", "", _V2, Line(home="ragcontract.report.report_v2")),
)
