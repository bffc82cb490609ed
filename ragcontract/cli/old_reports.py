"""The reports of an earlier check do not stay where a check has no verdict: a later step would publish that one."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import click

from ragcontract import memory
from ragcontract.cli.console import warn
from ragcontract.cli.options import refuse_outputs
from ragcontract.contract import defaults
from ragcontract.core.errors import OutputError, RagContractError
from ragcontract.files.writing import goes_to_stdout, write_files
from ragcontract.reports.build import error_report
from ragcontract.reports.formats import Format
from ragcontract.reports.report import ErrorReport, Provenance

BUG = "a bug in rag-contract, not in your retriever or your contract, ended the check"
INTERRUPTED = "the check was interrupted"
Wanted = Sequence[tuple[str, Format, str]]  # the parameter that could name a report, its format, and its path


@contextmanager
def replaced_on_error(
    wanted: Wanted, inputs: Collection[str], now: datetime, source: Provenance | None
) -> Iterator[None]:
    """Replace the reports that exist, if the check ends without a verdict, by ones that say why.

    ``inputs`` are paths and globs that are not written to, and neither are the default names of inputs.
    """
    try:
        with memory.explained():
            yield
    except RagContractError as error:
        report = error_report(error.problems, error.more, error.warnings, now, source)
        _replace(wanted, inputs, report)
        raise
    except (Exception, KeyboardInterrupt) as error:
        why = INTERRUPTED if isinstance(error, KeyboardInterrupt) else BUG
        problem = error.format_message() if isinstance(error, click.ClickException) else why
        _replace(wanted, inputs, error_report([problem], 0, (), now, source))
        raise


def _replace(wanted: Wanted, inputs: Collection[str], report: ErrorReport) -> None:
    protected = [*filter(None, inputs), *defaults.NAMES]
    for option, form, path in wanted:
        if goes_to_stdout(path) or not _is_file(path):
            continue
        try:
            refuse_outputs({option: path}, protected)
        except OutputError:  # a check refuses such a path before all else, and says so
            continue
        try:
            write_files({path: form.render_error(report)})
        except OutputError as error:
            warn([f"the report of an earlier check is left: {problem}" for problem in error.problems])


def _is_file(path: str) -> bool:
    try:
        return Path(path).is_file()
    except OSError:
        return False
