"""The registry of report files: a name, as of the option that asks for it, and how the bytes are made, part by part."""

from collections.abc import Callable, Iterable

from ragcontract.reports import json_report
from ragcontract.reports.build import Checked
from ragcontract.reports.markdown import document as markdown


def _junit(checked: Checked) -> Iterable[bytes]:
    from ragcontract.reports import junit  # junit-xml is loaded by those who want its file

    return junit.render(checked.report)


def _markdown(checked: Checked) -> Iterable[bytes]:
    return [markdown.render(checked.report).encode()]


def _html(checked: Checked) -> Iterable[bytes]:
    from ragcontract.reports.html import page as html  # and its template read, by those who want its file

    return [html.render(checked.report)]


FORMATS: dict[str, Callable[[Checked], Iterable[bytes]]] = {
    "report-md": _markdown,
    "report-json": json_report.render,
    "junit": _junit,
    "report-html": _html,
}
