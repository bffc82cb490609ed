"""The seam for report formats: a name, as of the option that asks for it, and how its bytes are made, part by part.

A new one is a class here and an entry in FORMATS: the command line's option follows; ``action.yml`` and its settings,
which a test compares with FORMATS, are written by hand.
"""

from collections.abc import Iterable, Iterator
from typing import Protocol

from ragcontract.reports import json_report
from ragcontract.reports.markdown import document
from ragcontract.reports.report import Detail, QueryReport, Report


class Reported(Protocol):
    """What a format renders: a report, and a way to go through the queries that report.json is to list."""

    @property
    def report(self) -> Report:
        """The report."""

    @property
    def detail(self) -> Detail:
        """What :meth:`queries` lists."""

    def queries(self) -> Iterator[QueryReport]:
        """Return the queries, made again each time."""


class Format(Protocol):
    """A file that a report can be written to."""

    name: str
    default: str
    help: str

    def render(self, outcome: Reported) -> Iterable[bytes]:
        """Return the file's bytes, in parts."""


class Markdown:
    """``report.md``."""

    name = "report-md"
    default = "report.md"
    help = "Where to write the report for people; '' for none."

    def render(self, outcome: Reported) -> Iterable[bytes]:
        """Render the whole report."""
        return [document.render(outcome.report).encode()]


class Json:
    """``report.json``; alone among the formats, it goes through the queries again."""

    name = "report-json"
    default = "report.json"
    help = "Where to write the report for programs; '' for none."

    def render(self, outcome: Reported) -> Iterable[bytes]:
        """Encode the report, a query a line."""
        return json_report.render(outcome.report, outcome.queries(), outcome.detail)


class JUnit:
    """``junit.xml``."""

    name = "junit"
    default = "junit.xml"
    help = "Where to write the report for CI systems; '' for none."

    def render(self, outcome: Reported) -> Iterable[bytes]:
        """Render a test case per gate and query."""
        from ragcontract.reports import junit  # junit-xml is loaded where its file is asked for

        return junit.render(outcome.report)


class Html:
    """``report.html``."""

    name = "report-html"
    default = ""
    help = "Where to write a self-contained HTML report."

    def render(self, outcome: Reported) -> Iterable[bytes]:
        """Render the page."""
        from ragcontract.reports.html import page  # its templates are loaded where a page is asked for

        return [page.render(outcome.report)]


FORMATS: tuple[Format, ...] = (Markdown(), Json(), JUnit(), Html())
