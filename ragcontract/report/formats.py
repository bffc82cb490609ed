"""The report formats, each with the name of its option and a function that renders the file.

A new format is a module and an entry in FORMATS, from which the command line derives its option. Its input in
``action.yml`` and its setting are written by hand; a test compares them with FORMATS.
"""

from collections.abc import Iterable, Iterator
from typing import Protocol

from msgspec import Struct

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.lines import Line
from ragcontract.core.rule import Violation
from ragcontract.core.run import Json
from ragcontract.core.safe_text import encodable
from ragcontract.decision.policy import QueryStatus
from ragcontract.report.record import Detail, ErrorReport, QueryReport, Report


class RankedResult(Struct, frozen=True, kw_only=True, gc=False):
    """A result with its 1-based rank, its document, and the retriever's score if there is one."""

    rank: int
    doc_id: str
    score: float | None


class ReportCase(Struct, frozen=True, kw_only=True, gc=False):
    """A golden query and the first row of the run for it."""

    query: GoldenQuery
    status: QueryStatus
    violations: tuple[Violation, ...]  # including waived and known ones
    wanted: tuple[str, ...]  # the texts that the answer must contain
    missing: tuple[str, ...]  # those of them that it does not contain
    results: tuple[RankedResult, ...] = ()
    answered: bool | None = None  # None if the row has neither a response nor an error
    response: str | None = None
    error: str | None = None
    error_detail: Json | None = None
    context_chars: int | None = None

    @property
    def location(self) -> str:
        """Where the golden query is defined, as ``golden.jsonl:17``."""
        return encodable(self.query.location)


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

    def cases(self) -> Iterator[ReportCase]:
        """Return an iterator over the queries with their answers; each call reads the run again."""


class Renders(Protocol):
    """The module of a format."""

    def file_of(self, outcome: Reported) -> Iterable[bytes]:
        """Return the content of the file, in parts."""

    def file_of_error(self, report: ErrorReport) -> bytes:
        """Return the content of the file for input that cannot be judged."""


class Format(Struct, frozen=True, kw_only=True):
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


FORMATS = (
    Format(
        name="report-md",
        default="report.md",
        help="Where to write the Markdown report; '' for none.",
        line=Line(home="ragcontract.report.markdown.document"),
    ),
    Format(
        name="report-json",
        default="report.json",
        help="Where to write the JSON report; '' for none.",
        line=Line(home="ragcontract.report.json_report"),
    ),
    Format(
        name="junit",
        default="junit.xml",
        help="Where to write the JUnit report; '' for none.",
        line=Line(home="ragcontract.report.junit"),
    ),
    Format(
        name="report-html",
        default="",
        help="Where to write a self-contained HTML report.",
        line=Line(home="ragcontract.report.html.page"),
    ),
    Format(
        name="report-v2",
        default="",
        help="Where to write the report with run_eval_rag's schema version 2.",
        line=Line(home="ragcontract.report.report_v2"),
    ),
)
