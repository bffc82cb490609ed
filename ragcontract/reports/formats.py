"""The registry of report files: a name, as of the option that asks for it, and how the bytes are made."""

from collections.abc import Callable

from ragcontract.model import Report
from ragcontract.reports import json_report, markdown


def _junit(report: Report) -> bytes:
    from ragcontract.reports import junit  # junit-xml is loaded by those who want its file

    return junit.render(report).encode()


def _markdown(report: Report) -> bytes:
    return markdown.render(report).encode()


def _html(report: Report) -> bytes:
    from ragcontract.reports import html  # and its template read, by those who want its file

    return html.render(report)


FORMATS: dict[str, Callable[[Report], bytes]] = {
    "report-md": _markdown,
    "report-json": json_report.render,
    "junit": _junit,
    "report-html": _html,
}
