"""The command line."""

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from ragcontract import __version__, pipeline
from ragcontract.errors import ExitCode, OutputError
from ragcontract.inputs.diagnostics import Diagnostics
from ragcontract.inputs.files import Progress, no_progress, resolve
from ragcontract.model import Report
from ragcontract.numbers import count
from ragcontract.outputs import check_outputs, write_files
from ragcontract.reports import baseline_file, json_report, terminal
from ragcontract.reports.formats import FORMATS
from ragcontract.text import printable, visible

DEFAULT_GOLDEN = "golden.jsonl"
DEFAULT_RUN = "current_run.jsonl"
DEFAULT_BASELINE = "baseline.json"
DEFAULT_CONFIG = "ragcontract.yml"
REPEATABLE = ("--golden", "--run", "--baseline")
PROGRESS_FROM_BYTES = 16 << 20

Command = Callable[..., Any]


def main(argv: Sequence[str]) -> int:
    """Run the command line and return the exit code; raises what :mod:`ragcontract.guard` turns into one."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError):  # a stand-in of a test
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        result = cli.main(_spread(argv), prog_name="rag-contract", standalone_mode=False)
    except click.ClickException as error:
        error.show()
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
            option, values = word, 0
        elif option in REPEATABLE:
            values += 1
            if values > 1:
                spread.append(option)
        spread.append(word)
    return spread


def _say(text: str, *, err: bool = False) -> None:
    """Print; colours only on a terminal, and not with NO_COLOR. A closed pipe changes no verdict."""
    colour = False if os.environ.get("NO_COLOR") else None
    try:
        click.echo(printable(text), nl=False, err=err, color=colour)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _warn(warnings: Sequence[str]) -> None:
    _say("".join(f"warning: {visible(warning)}\n" for warning in warnings), err=True)


def _clock() -> datetime:
    return datetime.now(UTC)


@contextmanager
def _progress(paths: pipeline.Paths) -> Iterator[Progress]:
    """Show a bar on a terminal while more than a few megabytes are read."""
    named = [*paths.golden, *paths.run, *(paths.baseline or [])]
    total = sum(Path(path).stat().st_size for path in resolve(named, Diagnostics()))
    if not sys.stderr.isatty() or total < PROGRESS_FROM_BYTES:
        yield no_progress
        return
    with click.progressbar(length=total, label="reading", file=sys.stderr) as bar:
        yield bar.update


def _paths(
    golden: Sequence[str], run: Sequence[str], baseline: Sequence[str] = (), config: str | None = None
) -> pipeline.Paths:
    """Fill in the defaults: a default path that is not there is not given, a named one must be there."""
    if not baseline and Path(DEFAULT_BASELINE).exists():
        baseline = [DEFAULT_BASELINE]
    if config is None and Path(DEFAULT_CONFIG).exists():
        config = DEFAULT_CONFIG
    return pipeline.Paths(
        golden=golden or [DEFAULT_GOLDEN], run=run or [DEFAULT_RUN], baseline=baseline or None, config=config
    )


def _refuse_outputs(outputs: Sequence[str], paths: pipeline.Paths) -> None:
    named = [*paths.golden, *paths.run, *(paths.baseline or []), *([paths.config] if paths.config else [])]
    if problems := check_outputs(outputs, resolve(named, Diagnostics())):
        raise OutputError(problems)


def _golden(command: Command) -> Command:
    return click.option(
        "--golden",
        multiple=True,
        metavar="FILE…",
        help=f"Golden queries; several files and globs are one set. [{DEFAULT_GOLDEN}]",
    )(command)


def _run(command: Command) -> Command:
    return click.option(
        "--run",
        multiple=True,
        metavar="FILE…",
        help=f"What the retriever returned; several files and globs are one run. [{DEFAULT_RUN}]",
    )(command)


def _baseline(command: Command) -> Command:
    return click.option(
        "--baseline",
        multiple=True,
        metavar="FILE…",
        help=f"A file made by `rag-contract baseline`, or a known-good run (.jsonl). [{DEFAULT_BASELINE}, if there]",
    )(command)


def _config(command: Command) -> Command:
    return click.option("--config", metavar="FILE", help=f"The limits. [{DEFAULT_CONFIG}, if there]")(command)


def _k(command: Command) -> Command:
    return click.option(
        "--k",
        type=click.IntRange(min=1),
        metavar="N",
        help="The cut-off: how many results count. [the config's k, else 5]",
    )(command)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="rag-contract")
def cli() -> None:
    """Fail the pull request when a RAG application stops finding the right documents.

    Exit codes: 0 pass, 1 the contract is broken, 2 the input cannot be judged, 3 a bug of rag-contract.
    """


@cli.command()
@_golden
@_run
@_baseline
@_config
def validate(golden: Sequence[str], run: Sequence[str], baseline: Sequence[str], config: str | None) -> int:
    """Say everything that is wrong with the files, or what is in them."""
    report = _compare(_paths(golden, run, baseline, config))
    inputs = report.inputs
    parts = [
        f"{count(inputs.golden.queries, 'golden query')} ({inputs.golden.answerable:,} with relevant documents)",
        count(inputs.run.queries, "run row"),
        f"a baseline of {count(inputs.baseline.queries, 'query')}" if inputs.baseline else "no baseline",
        "a config" if inputs.config else "no config",
    ]
    _say(f"valid: {', '.join(parts)}\n")
    return ExitCode.PASS


@cli.command()
@_golden
@_run
@_config
@_k
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", help="How to print. [table]")
def score(golden: Sequence[str], run: Sequence[str], config: str | None, k: int | None, form: str) -> int:
    """Print the metrics of one run, overall and by tag."""
    paths = _paths(golden, run, config=config)
    report = _compare(pipeline.Paths(golden=paths.golden, run=paths.run, config=paths.config), k)
    if form == "json":
        _say(json_report.render_score(report).replace("##[", r"##\u005b"))  # for runners, and still the same JSON
    else:
        _say(terminal.score_text(report))
    return ExitCode.PASS


@cli.command()
@_golden
@_run
@_config
@_k
@click.option("--out", default=DEFAULT_BASELINE, metavar="FILE", help=f"Where to write it. [{DEFAULT_BASELINE}]")
def baseline(golden: Sequence[str], run: Sequence[str], config: str | None, k: int | None, out: str) -> int:
    """Store a known-good run as the baseline. The run must cover the whole golden set."""
    given = _paths(golden, run, config=config)
    paths = pipeline.Paths(golden=given.golden, run=given.run, config=given.config)
    _refuse_outputs([out], paths)
    with _progress(paths) as progress:
        scored, doc_ids, warnings = pipeline.good_run(paths, k=k, progress=progress)
    _warn(warnings)
    write_files({out: baseline_file.render(scored, doc_ids, _clock())})
    _say(f"baseline of {count(len(scored.golden.queries), 'query')} in {visible(out)}\n")
    return ExitCode.PASS


@cli.command()
@_golden
@_run
@_baseline
@_config
@_k
@click.option(
    "--report-md", default="report.md", metavar="FILE", help="The report for people; '' for none. [report.md]"
)
@click.option(
    "--report-json", default="report.json", metavar="FILE", help="The report for machines; '' for none. [report.json]"
)
@click.option(
    "--junit", default="junit.xml", metavar="FILE", help="The report for CI systems; '' for none. [junit.xml]"
)
def check(
    golden: Sequence[str],
    run: Sequence[str],
    baseline: Sequence[str],
    config: str | None,
    k: int | None,
    report_md: str,
    report_json: str,
    junit: str,
) -> int:
    """Judge a run: every golden query's rules, and the limits of the config."""
    paths = _paths(golden, run, baseline, config)
    wanted = {"report-md": report_md, "report-json": report_json, "junit": junit}
    _refuse_outputs([out for out in wanted.values() if out], paths)
    with _progress(paths) as progress:
        report = pipeline.check(paths, clock=_clock, k=k, progress=progress)
    _warn(report.warnings)
    write_files({out: FORMATS[form](report) for form, out in wanted.items() if out})
    _say(terminal.check_text(report))
    return ExitCode.PASS if report.verdict == "pass" else ExitCode.BROKEN


@cli.command()
@_golden
@_run
@_baseline
@_config
@_k
def diff(golden: Sequence[str], run: Sequence[str], baseline: Sequence[str], config: str | None, k: int | None) -> int:
    """Print how ranks moved since the baseline, worst first; judges nothing."""
    paths = _paths(golden, run, baseline, config)
    if paths.baseline is None:
        raise click.UsageError(f"there is nothing to compare with: give --baseline, or have {DEFAULT_BASELINE} here")
    _say(terminal.diff_text(_compare(paths, k)))
    return ExitCode.PASS


@cli.command()
@click.argument("name", type=click.Choice(["golden", "run", "baseline", "config", "report"]))
def schema(name: str) -> int:
    """Print the JSON Schema of a file format."""
    from ragcontract.inputs.schemas import SCHEMAS  # the other commands do not need them

    _say(json.dumps(SCHEMAS[name](), indent=2) + "\n")
    return ExitCode.PASS


def _compare(paths: pipeline.Paths, k: int | None = None) -> Report:
    with _progress(paths) as progress:
        report = pipeline.compare(paths, clock=_clock, k=k, progress=progress)
    _warn(report.warnings)
    return report
