"""``rag-contract check``: judges a run and writes the reports."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

import click
from msgspec.structs import replace

from ragcontract import pipeline
from ragcontract.cli.console import say, warn
from ragcontract.cli.old_reports import replaced_on_error
from ragcontract.cli.options import (
    BASELINE,
    CALIBRATION,
    CONFIG,
    ENGINE,
    GOLDEN,
    JUDGMENTS,
    NO_ANSWERS,
    REPEATS,
    RUN,
    SCORES,
    TAG,
    K,
    clock,
    find_paths,
    refuse_outputs,
    sources_of,
)
from ragcontract.core import bounds
from ragcontract.core.errors import ExitCode
from ragcontract.core.rule import Plugin
from ragcontract.core.text import encodable
from ragcontract.files.writing import goes_to_stdout, write_files
from ragcontract.reports import terminal
from ragcontract.reports.drift import other_warnings
from ragcontract.reports.formats import FORMATS
from ragcontract.reports.report import Detail, Provenance


def _report_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for form in reversed(FORMATS):
        shown = f"{form.help} [{form.default}]" if form.default else f"{form.help} [none]"
        command = click.option(f"--{form.name}", default=form.default, metavar="FILE", help=shown)(command)
    return command


@click.command("check")
@GOLDEN
@RUN
@SCORES
@JUDGMENTS
@CALIBRATION
@BASELINE
@CONFIG
@K
@TAG
@REPEATS
@ENGINE
@_report_options
@click.option("--name", default="", metavar="TEXT", help="The name of the contract in the reports. [none]")
@click.option(
    "--report-json-detail",
    type=click.Choice(get_args(Detail)),
    help="Which queries report.json lists: those with broken rules, also those that changed, or all. "
    f"[all up to {bounds.ALL_QUERIES:,}, then changed]",
)
@click.option(
    "--plugin",
    "plugins",
    multiple=True,
    metavar="MODULE:CLASS",
    help="Code that decides rules of the type custom; repeatable. It runs with your rights: name only your own. [none]",
)
@NO_ANSWERS
@click.option("--quiet", is_flag=True, help="Print only the verdict, warnings and errors; the reports are complete.")
def command(
    *,
    golden: Sequence[str],
    run: Sequence[str],
    scores: Sequence[str],
    judgments: Sequence[str],
    calibration: str | None,
    baseline: Sequence[str],
    config: str | None,
    k: int | None,
    tags: Sequence[str],
    engine: str,
    report_json_detail: Detail | None,
    name: str,
    plugins: Sequence[str],
    repeats: bool,
    no_answers: bool,
    quiet: bool,
    **reports: str,
) -> int:
    """Judge a run against its contract.

    Applies the rules of every golden query and the limits of the config. Exits 0 if the contract holds, 1 if it is
    broken.
    """
    if engine == "spark" and reports["report_v2"]:
        raise click.UsageError("--report-v2 lists every answer, so it needs --engine local")
    options = {form.name.replace("-", "_"): form for form in FORMATS}
    wanted = [(option, form, out) for option, form in options.items() if (out := reports[option])]
    source = _source(name)
    given = [*golden, *run, *scores, *judgments, *baseline, config or "", calibration or ""]
    with replaced_on_error(wanted, given, clock(), source):
        paths = find_paths(golden, run, config, baseline, scores, judgments=judgments, calibration=calibration)
        refuse_outputs({option: out for option, _, out in wanted}, paths.all, pages={"report_html"})
        with sources_of(paths, engine) as sources:
            request = replace(
                sources.request(paths, k=k, repeats=repeats, tags=tags),
                detail=report_json_detail,
                source=source,
                plugins=_loaded(plugins),
                no_answers=no_answers,
            )
            outcome = pipeline.check(request, now=clock())
    report = outcome.report
    warn(other_warnings(report))
    files = [out for _, _, out in wanted if not goes_to_stdout(out)]
    write_files({out: form.render(outcome) for _, form, out in wanted})
    text = terminal.verdict_text(report) if quiet else terminal.check_text(report, files[0] if files else "")
    say(text, err=any(goes_to_stdout(out) for _, _, out in wanted))
    return ExitCode.PASS if report.verdict == "pass" else ExitCode.BROKEN


def _loaded(plugins: Sequence[str]) -> Mapping[str, Plugin]:
    if not plugins:
        return {}
    from ragcontract.cli.plugins import load_plugins

    return load_plugins(plugins)


def _source(name: str) -> Provenance | None:
    return Provenance(contract=encodable(name)) if name else None
