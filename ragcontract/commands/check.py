"""``rag-contract check``: the verdict on a run, and the reports."""

from typing import Any

import click

from ragcontract import defaults, pipeline
from ragcontract.console import progress_over, say, warn
from ragcontract.errors import ExitCode
from ragcontract.options import (
    BASELINE,
    CONFIG,
    GOLDEN,
    REPEATS,
    RUN,
    K,
    clock,
    find_paths,
    large,
    out_option,
    refuse_outputs,
)
from ragcontract.outputs import goes_to_stdout, write_files
from ragcontract.reports import terminal
from ragcontract.reports.formats import FORMATS


@click.command("check")
@GOLDEN
@RUN
@BASELINE
@CONFIG
@K
@REPEATS
@out_option("--report-md", defaults.REPORT_MD, "The report for people; '' for none.")
@out_option("--report-json", defaults.REPORT_JSON, "The report for machines; '' for none.")
@out_option("--junit", defaults.JUNIT, "The report for CI systems; '' for none.")
@click.option("--report-html", default="", metavar="FILE", help="A page for looking, in one file. [none]")
def command(k: int | None, report_md: str, report_json: str, junit: str, report_html: str, **files: Any) -> int:
    """Judge a run against its contract.

    Every golden query's rules count, and the limits of the config. Exit code 0 is a pass, 1 a broken contract.
    """
    paths = find_paths(**files)
    wanted = {"report-md": report_md, "report-json": report_json, "junit": junit, "report-html": report_html}
    refuse_outputs([out for out in wanted.values() if out], paths)
    with progress_over(large(paths)) as progress:
        report = pipeline.check(paths, clock=clock, k=k, progress=progress)
    warn(report.warnings)
    write_files({out: FORMATS[form](report) for form, out in wanted.items() if out})
    say(terminal.check_text(report), err=any(map(goes_to_stdout, wanted.values())))
    return ExitCode.PASS if report.verdict == "pass" else ExitCode.BROKEN
