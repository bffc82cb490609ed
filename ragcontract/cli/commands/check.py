"""``rag-contract check``: the verdict on a run, and the reports."""

from typing import Any, get_args

import click

from ragcontract import pipeline
from ragcontract.cli.console import say, warn
from ragcontract.cli.options import (
    BASELINE,
    CONFIG,
    ENGINE,
    GOLDEN,
    REPEATS,
    RUN,
    K,
    clock,
    find_paths,
    out_option,
    refuse_outputs,
    runs_of,
)
from ragcontract.contract import defaults
from ragcontract.core.errors import ExitCode
from ragcontract.files.writing import goes_to_stdout, write_files
from ragcontract.model import Detail
from ragcontract.reports import terminal
from ragcontract.reports.formats import FORMATS


@click.command("check")
@GOLDEN
@RUN
@BASELINE
@CONFIG
@K
@REPEATS
@ENGINE
@out_option("--report-md", defaults.REPORT_MD, "Where to write the report for people; '' for none.")
@out_option("--report-json", defaults.REPORT_JSON, "Where to write the report for programs; '' for none.")
@click.option(
    "--report-json-detail",
    type=click.Choice(get_args(Detail)),
    help="Which queries report.json lists: those with broken rules, also those that changed, or all. "
    "[all up to 10,000, then changed]",
)
@out_option("--junit", defaults.JUNIT, "Where to write the report for CI systems; '' for none.")
@click.option("--report-html", default="", metavar="FILE", help="Where to write a self-contained HTML report. [none]")
def command(k: int | None, engine: str, report_json_detail: Detail | None, **files: Any) -> int:
    """Judge a run against its contract.

    Applies the rules of every golden query and the limits of the config. Exits 0 if the contract holds, 1 if it is
    broken.
    """
    wanted = {form: out for form in FORMATS if (out := files.pop(form.replace("-", "_")))}
    paths = find_paths(**files)
    refuse_outputs(list(wanted.values()), paths)
    with runs_of(engine, paths) as (elsewhere, progress):
        checked = pipeline.check_for_files(
            paths, clock=clock, k=k, progress=progress, elsewhere=elsewhere, detail=report_json_detail
        )
    report = checked.report
    warn(report.warnings)
    write_files({out: FORMATS[form](checked) for form, out in wanted.items()})
    say(terminal.check_text(report), err=any(map(goes_to_stdout, wanted.values())))
    return ExitCode.PASS if report.verdict == "pass" else ExitCode.BROKEN
