"""``rag-contract check``: checks a run against its contract and writes the reports.

If a check ends without a verdict, it replaces the reports of an earlier check, which a later step would publish
otherwise. Plugins are code of the user for the rule ``custom``, named as ``module:Class``.
"""

import importlib
import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

import click
from msgspec.structs import replace

from ragcontract import memory, pipeline
from ragcontract.cli.console import say, warn
from ragcontract.cli.history_options import history_named, history_options, with_history
from ragcontract.cli.options import NO_ANSWERS, clock, find_files, opened, refuse_outputs, takes
from ragcontract.contract.defaults import NAMES
from ragcontract.core import bounds
from ragcontract.core.errors import ExitCode, InputError, OutputError, RagContractError, before_users_code
from ragcontract.core.rule import Plugin
from ragcontract.core.safe_text import encodable, shorten
from ragcontract.evaluation.source import Inputs
from ragcontract.files.writing import goes_to_stdout, write_files
from ragcontract.report import terminal
from ragcontract.report.build import error_report
from ragcontract.report.formats import FORMATS, Format
from ragcontract.report.headline import other_warnings
from ragcontract.report.record import Detail, ErrorReport, Provenance

BUG = "a bug in rag-contract, not in your retriever or your contract, ended the check"
ENDED = "the check did not end, or a plugin ended it"
INTERRUPTED = "the check was interrupted"
PAGE = "report.html"  # where --open writes the page
Wanted = Sequence[tuple[str, Format, str]]  # the parameter that could name a report, its format, and its path


def _report_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for form in reversed(FORMATS):
        shown = f"{form.help} [{form.default}]" if form.default else f"{form.help} [none]"
        command = click.option(f"--{form.name}", default=form.default, metavar="FILE", help=shown)(command)
    return command


@click.command("check")
@takes("golden", "run", "scores", "judgments", "calibration", "baseline", "config", "k", "tag", "repeats", "engine")
@_report_options
@history_options
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
@click.option("--open", "opens", is_flag=True, help="Open the HTML report in a browser; report.html unless named.")
@click.option("--quiet", is_flag=True, help="Print only the verdict, warnings and errors; the reports are complete.")
def command(
    *,
    inputs: Inputs,
    engine: str,
    report_json_detail: Detail | None,
    history: str | None,
    branch: str | None,
    name: str,
    plugins: Sequence[str],
    no_answers: bool,
    opens: bool,
    quiet: bool,
    **reports: str,
) -> int:
    """Check a run against its contract.

    Applies the rules of every golden query and the limits of the config. Exits 0 if the contract holds, 1 if it is
    broken. With a history, the baseline may be an entry of it, as --baseline history:last-pass.
    """
    if engine == "spark" and reports["report_v2"]:
        raise click.UsageError("--report-v2 lists every answer, so it needs --engine local")
    reports["report_html"] = reports["report_html"] or (PAGE if opens else "")
    options = {form.name.replace("-", "_"): form for form in FORMATS}
    wanted = [(option, form, out) for option, form in options.items() if (out := reports[option])]
    source = Provenance(contract=encodable(name)) if name else None
    with replaced_on_error(wanted, inputs.all, clock(), source):
        inputs, facts = with_history(inputs, history_named(history, branch, name))
        inputs = find_files(inputs)
        refuse_outputs({option: out for option, _, out in wanted}, inputs.all, pages={"report_html"})
        if plugins:
            before_users_code()
            _replace(wanted, inputs.all, error_report([ENDED], 0, (), clock(), source))
        with opened(inputs, engine) as sources:
            inputs = facts.with_baseline(sources) if facts else sources
            inputs = replace(inputs, plugins=load_plugins(plugins), no_answers=no_answers)
            tests_all = bool(reports["report_html"])
            outcome = pipeline.check(inputs, now=clock(), detail=report_json_detail, source=source, tests_all=tests_all)
    outcome = facts.add_to_report(outcome) if facts else outcome
    report = outcome.report
    warn(other_warnings(report))
    files = [out for _, _, out in wanted if not goes_to_stdout(out)]
    write_files({out: form.render(outcome) for _, form, out in wanted})
    text = terminal.verdict_text(report) if quiet else terminal.check_text(report, files[0] if files else "")
    say(text, err=any(goes_to_stdout(out) for _, _, out in wanted))
    if opens:
        _open(Path(reports["report_html"]))
    return ExitCode.PASS if report.verdict == "pass" else ExitCode.BROKEN


def _open(page: Path) -> None:
    """Open a page in a browser, or warn that none can be opened."""
    import webbrowser  # which few checks need

    if not page.is_file() or not webbrowser.open(page.resolve().as_uri()):
        warn([f"--open: no browser can be opened here; the page is {page}"])


@contextmanager
def replaced_on_error(
    wanted: Wanted, inputs: Collection[str], now: datetime, source: Provenance | None
) -> Iterator[None]:
    """Replace existing reports by ones on the error if the check ends without a verdict.

    ``inputs`` are paths and globs. Neither they nor the default names of inputs are written to.
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
    protected = [*filter(None, inputs), *NAMES]
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


def load_plugins(names: Sequence[str]) -> Mapping[str, Plugin]:
    """Import the classes, also from the current folder, and return an object of each by the name of its class.

    Raises :class:`InputError` with the problems of all classes that cannot be used.
    """
    if names and "" not in sys.path:
        sys.path.append("")
    loaded: dict[str, Plugin] = {}
    problems = []
    for name in names:
        with same_folder():
            made = _load(name)
        if isinstance(made, str):
            problems.append(f"--plugin {name}: {made}")
        elif type(made).__name__ in loaded:
            problems.append(f"--plugin {name}: another plugin has this class name, too")
        else:
            loaded[type(made).__name__] = InPlace(made)
    if problems:
        raise InputError(problems)
    return loaded


def _load(name: str) -> Plugin | str:
    """Return an object of the class, or the reason why there is none."""
    module, _, attribute = name.partition(":")
    if not module or not attribute.isidentifier():
        return "expected module:Class, as my_checks:PoliteTone"
    try:
        made = getattr(importlib.import_module(module), attribute)()
    except (Exception, SystemExit) as error:  # noqa: BLE001 (code of the user may raise anything, or end the program)
        return f"cannot be loaded: {shorten(f'{type(error).__name__}: {error}', bounds.VALUE)}"
    if not callable(getattr(made, "evaluate", None)):
        return "has no method evaluate(output, tool_calls, rule)"
    plugin: Plugin = made
    return plugin


class InPlace:
    """A plugin that may change the current folder; the check goes on in the folder in which it began."""

    def __init__(self, plugin: Plugin) -> None:
        self._plugin = plugin

    def evaluate(self, output: str, tool_calls: list[Any], rule: dict[str, Any]) -> tuple[bool, str]:
        with same_folder():
            return self._plugin.evaluate(output, tool_calls, rule)


@contextmanager
def same_folder() -> Iterator[None]:
    """Return to the current folder at the end, even if code of the user has left it."""
    folder = Path.cwd()
    try:
        yield
    finally:
        os.chdir(folder)
