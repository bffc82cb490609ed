"""``rag-contract render``: renders the report of an earlier check again."""

from collections.abc import Callable, Iterable
from pathlib import Path

import click

from ragcontract.cli.console import say
from ragcontract.cli.options import refuse_outputs
from ragcontract.core.errors import ExitCode
from ragcontract.files.writing import write_files
from ragcontract.report import json_report, junit, markdown, terminal
from ragcontract.report.html import page
from ragcontract.report.record import ErrorReport, Report

Content = bytes | Iterable[bytes]
TEXT, STDOUT = "text", "/dev/stdout"
FORMATS: dict[str, tuple[Callable[[Report, Path], Content], Callable[[ErrorReport], Content]]] = {
    "markdown": (lambda report, _: markdown.render(report, name=report.contract).encode(), markdown.file_of_error),
    "html": (lambda report, _: page.render(report), page.file_of_error),
    "junit": (lambda report, _: junit.render(report), junit.file_of_error),
    TEXT: (
        lambda report, path: terminal.check_text(report, str(path)).encode(),
        lambda report: terminal.error_text(report).encode(),
    ),
}


@click.command("render")
@click.argument("report", default="report.json", metavar="[REPORT.JSON]")
@click.option(
    "--format", "form", type=click.Choice(list(FORMATS)), default="markdown", help="The output format. [markdown]"
)
@click.option("--out", metavar="FILE", help="Where to write it. [standard output]")
def command(*, report: str, form: str, out: str | None) -> int:
    """Render the report.json of an earlier check.

    Writes what the check itself would write. Two things are not in report.json: the passages that the HTML page shows
    beside documents, and p-values, unless the check wrote HTML as well. Exits 0 whatever the verdict is.
    """
    if out:
        refuse_outputs({"out": out}, [report])
    content = rendered(Path(report), form)
    if form == TEXT and not out:
        say(content.decode())  # in colour on a terminal
    else:
        write_files({out or STDOUT: terminal.without_colours(content.decode()).encode() if form == TEXT else content})
    return ExitCode.PASS


def rendered(path: Path, form: str) -> bytes:
    """Return a report in a format; raises InputError if it cannot be read or rendered."""
    report = json_report.read(path)
    of_report, of_error = FORMATS[form]
    with json_report.refusing_inconsistent(path):
        content = of_error(report) if isinstance(report, ErrorReport) else of_report(report, path)
        return content if isinstance(content, bytes) else b"".join(content)
