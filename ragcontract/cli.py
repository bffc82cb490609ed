"""The command line."""

import io
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

import click
import msgspec

from ragcontract import __version__, defaults, pipeline
from ragcontract.console import progress_over, say, warn
from ragcontract.errors import ExitCode, InputError, OutputError
from ragcontract.inputs.baseline import RUN_SUFFIXES
from ragcontract.inputs.diagnostics import Diagnostics
from ragcontract.inputs.files import resolve
from ragcontract.inputs.ids import MAX_RANK
from ragcontract.inputs.schemas import SCHEMAS
from ragcontract.model import Report
from ragcontract.numbers import count
from ragcontract.outputs import check_outputs, goes_to_stdout, write_files
from ragcontract.reports import baseline_file, json_report, terminal
from ragcontract.reports.formats import FORMATS
from ragcontract.text import visible

REPEATABLE = ("--golden", "--run", "--baseline", "--qrels", "--queries", "--topics", "--corpus", "--samples")
LATER = ("convert", "init", "lint", "suggest")
Command = Callable[..., Any]


def main(argv: Sequence[str]) -> int:
    """Run the command line and return the exit code; raises what :mod:`ragcontract.guard` turns into one."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError):  # closed by the shell, or a stand-in
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        result = cli.main(_spread(argv), prog_name="rag-contract", standalone_mode=False)
    except click.ClickException as error:
        usage = io.StringIO()
        error.show(usage)
        say("".join(f"{visible(line)}\n" for line in usage.getvalue().splitlines()), err=True)
        return ExitCode.UNUSABLE_INPUT
    except click.Abort as error:
        raise KeyboardInterrupt from error
    return int(result or 0)


def _spread(argv: Sequence[str]) -> list[str]:
    """Let ``--run a.jsonl b.jsonl``, as a shell writes out a glob, mean ``--run a.jsonl --run b.jsonl``."""
    spread: list[str] = []
    option, values = "", 0
    for word in argv:
        if word.startswith("-"):
            option, has_value, _ = word.partition("=")
            values = len(has_value)
        elif option in REPEATABLE:
            values += 1
            if values > 1:
                spread.append(option)
        spread.append(word)
    return spread


def _clock() -> datetime:
    return datetime.now(UTC)


def _paths(
    golden: Sequence[str],
    run: Sequence[str],
    config: str | None,
    baseline: Sequence[str] | None = None,
    *,
    repeats: bool = False,
) -> pipeline.Paths:
    """Fill in the defaults; with a ``baseline`` of None there is none, wherever it may lie.

    An option that was given must name a file: ``--config "$UNSET"`` is not "no limits".
    """
    given = {"--golden": golden, "--run": run, "--baseline": baseline or (), "--config": [config]}
    if empty := [option for option, values in given.items() if "" in values]:
        raise InputError(
            [f"{option}: is given an empty path; name a file, or leave the option out" for option in empty]
        )
    paths = defaults.find_inputs(golden=golden, run=run, baseline=baseline or (), config=config)
    return msgspec.structs.replace(paths, baseline=paths.baseline if baseline is not None else None, repeats=repeats)


def _large(paths: pipeline.Paths) -> list[str]:
    return [*paths.golden, *paths.run, *(paths.baseline or [])]


def _refuse_outputs(outputs: Sequence[str], paths: pipeline.Paths) -> None:
    inputs = [*_large(paths), *([paths.config] if paths.config else [])]
    if problems := check_outputs(outputs, resolve(inputs, Diagnostics())):
        raise OutputError(problems)


def _rank(context: click.Context, option: click.Parameter, value: int | None) -> Any:
    # Not the option's type, which would write its limits into the help.
    return None if value is None else click.IntRange(1, MAX_RANK).convert(value, option, context)


def _reason(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    if value is not None and not value.strip():
        raise click.BadParameter("say why the regressions are accepted")
    return value and value.strip()


def _files(option: str, help_text: str) -> Callable[[Command], Command]:
    return click.option(option, multiple=True, metavar="FILE…", help=help_text)


GOLDEN = _files("--golden", f"Golden queries; several files and globs are one set. [{defaults.GOLDEN}]")
RUN = _files("--run", f"What the retriever returned; several files and globs are one run. [{defaults.RUN}]")
BASELINE = _files(
    "--baseline",
    f"A file made by `rag-contract baseline`, or a known-good run (.jsonl). [{defaults.BASELINE}, if there]",
)
CONFIG = click.option("--config", metavar="FILE", help=f"The limits. [{defaults.CONFIG}, if there]")
K = click.option(
    "--k", type=int, callback=_rank, metavar="N", help="The cut-off: how many results count. [the config's k, else 5]"
)
REPEATS = click.option("--repeats", is_flag=True, help="Allow several rows a query in a run, and average them.")


def _out(option: str, default: str, what: str) -> Callable[[Command], Command]:
    return click.option(option, default=default, metavar="FILE", help=f"{what} [{default}]")


class _Commands(click.Group):
    """The commands of this module, and those that are imported when they are called for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *LATER])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in LATER:
            command: click.Command = import_module(f"ragcontract.commands.{cmd_name}").command
            return command
        return super().get_command(ctx, cmd_name)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="rag-contract")
def cli() -> None:
    """Fail the pull request when a RAG application stops finding the right documents.

    Exit codes: 0 pass, 1 the contract is broken, 2 the input cannot be judged, 3 a bug of rag-contract.
    """


@cli.command()
@GOLDEN
@RUN
@BASELINE
@CONFIG
@REPEATS
def validate(**files: Any) -> int:
    """Say what is wrong with the files, or what is in them.

    Exit code 2 where `check` could not judge either; the verdict itself is left out.
    """
    paths = _paths(**files)
    with progress_over(_large(paths)) as progress:
        report = pipeline.check(paths, clock=_clock, progress=progress)
    warn(report.warnings)
    inputs = report.inputs
    parts = [
        f"{count(inputs.golden.queries, 'golden query')} ({inputs.golden.answerable:,} with relevant documents)",
        count(inputs.run.queries, "run row"),
        f"a baseline of {count(inputs.baseline.queries, 'query')}" if inputs.baseline else "no baseline",
        "a config" if inputs.config else "no config",
    ]
    say(f"valid: {', '.join(parts)}\n")
    return ExitCode.PASS


@cli.command()
@GOLDEN
@RUN
@CONFIG
@K
@REPEATS
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", help="How to print. [table]")
def score(k: int | None, form: str, **files: Any) -> int:
    """Print the metrics of one run, overall and by tag."""
    report = _compare(_paths(**files), k)
    if form == "json":
        say(json_report.render_score(report).replace("##[", r"##\u005b"))  # for runners, and still the same JSON
    else:
        say(terminal.score_text(report))
    return ExitCode.PASS


@cli.command()
@GOLDEN
@RUN
@CONFIG
@K
@REPEATS
@_out("--out", defaults.BASELINE, "Where to write it.")
@click.option("--update", is_flag=True, help="Judge the run against the baseline that is there, and show what changes.")
@click.option(
    "--accept-regressions",
    "reason",
    callback=_reason,
    metavar="REASON",
    help="With --update, store the run though it breaks the contract, and why.",
)
def baseline(k: int | None, out: str, *, update: bool, reason: str | None, **files: Any) -> int:
    """Store a known-good run as the baseline.

    The run must cover the whole golden set, and the file is written whole or not at all. With --update a
    run that breaks the contract is refused (exit code 1), and a baseline that would not change is left as it is.
    """
    if reason is not None and not update:
        raise click.UsageError("--accept-regressions goes with --update: without it, nothing is judged")
    paths = _paths(**files)
    _refuse_outputs([out], paths)
    if out.lower().endswith(RUN_SUFFIXES):
        raise OutputError([f"{out}: a name like that is read as a run; call the baseline something.json"])
    if update:
        from ragcontract.commands.update import update_baseline

        return update_baseline(paths, k=k, out=out, reason=reason, now=_clock())
    with progress_over(_large(paths)) as progress:
        scored, doc_ids, warnings = pipeline.good_run(paths, k=k, progress=progress)
    warn(warnings)
    write_files({out: baseline_file.render(scored, doc_ids, _clock())})
    say(f"baseline of {count(len(scored.golden.queries), 'query')} in {visible(out)}\n", err=goes_to_stdout(out))
    return ExitCode.PASS


@cli.command()
@GOLDEN
@RUN
@BASELINE
@CONFIG
@K
@REPEATS
@_out("--report-md", defaults.REPORT_MD, "The report for people; '' for none.")
@_out("--report-json", defaults.REPORT_JSON, "The report for machines; '' for none.")
@_out("--junit", defaults.JUNIT, "The report for CI systems; '' for none.")
@click.option("--report-html", default="", metavar="FILE", help="A page for looking, in one file. [none]")
def check(k: int | None, report_md: str, report_json: str, junit: str, report_html: str, **files: Any) -> int:
    """Judge a run against its contract.

    Every golden query's rules count, and the limits of the config. Exit code 0 is a pass, 1 a broken contract.
    """
    paths = _paths(**files)
    wanted = {"report-md": report_md, "report-json": report_json, "junit": junit, "report-html": report_html}
    _refuse_outputs([out for out in wanted.values() if out], paths)
    with progress_over(_large(paths)) as progress:
        report = pipeline.check(paths, clock=_clock, k=k, progress=progress)
    warn(report.warnings)
    write_files({out: FORMATS[form](report) for form, out in wanted.items() if out})
    say(terminal.check_text(report), err=any(map(goes_to_stdout, wanted.values())))
    return ExitCode.PASS if report.verdict == "pass" else ExitCode.BROKEN


@cli.command()
@GOLDEN
@RUN
@BASELINE
@CONFIG
@K
@REPEATS
def diff(k: int | None, **files: Any) -> int:
    """Print how ranks moved since the baseline.

    Worst first, then what improved, is new, has another question or is gone. Judges nothing.
    """
    paths = _paths(**files)
    if paths.baseline is None:
        raise click.UsageError(f"there is nothing to compare with: give --baseline, or have {defaults.BASELINE} here")
    say(terminal.diff_text(_compare(paths, k)))
    return ExitCode.PASS


@cli.command()
@click.argument("name", type=click.Choice(list(SCHEMAS)))
def schema(name: str) -> int:
    """Print the JSON Schema of a file format."""
    say(json.dumps(SCHEMAS[name](), indent=2) + "\n")
    return ExitCode.PASS


def _compare(paths: pipeline.Paths, k: int | None) -> Report:
    with progress_over(_large(paths)) as progress:
        report = pipeline.compare(paths, clock=_clock, k=k, progress=progress)
    warn(report.warnings)
    return report
