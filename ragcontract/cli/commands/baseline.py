"""``rag-contract baseline``: stores a known-good run as the baseline, or updates an existing one."""

from contextlib import suppress
from pathlib import Path

import click
from msgspec.structs import replace

from ragcontract import pipeline
from ragcontract.cli.console import say, warn
from ragcontract.cli.options import (
    NO_ANSWERS,
    clock,
    files_option,
    find_files,
    opened,
    out_option,
    refuse_outputs,
    takes,
)
from ragcontract.contract import defaults
from ragcontract.core.errors import ExitCode, InputError, OutputError
from ragcontract.core.invisible import is_visible
from ragcontract.core.numbers import count
from ragcontract.core.safe_text import visible
from ragcontract.evaluation.past import NOT_ASKED
from ragcontract.evaluation.source import Inputs
from ragcontract.files.locking import Digest, file_digest, rewrite
from ragcontract.files.writing import goes_to_stdout
from ragcontract.report.baseline import (
    acceptance,
    already_broken_text,
    baseline_of,
    encode,
    is_same,
    render_baseline,
    replaced_by,
    update_text,
    waived_changes,
)
from ragcontract.report.notes import fewer_runs
from ragcontract.runs.baseline_contract import Replaced
from ragcontract.runs.baseline_file import read_stored
from ragcontract.runs.readers import is_run


def _reason(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    if value is not None and not is_visible(value):
        raise click.BadParameter("say why the regressions are accepted")
    return value and value.strip()


@click.command("baseline")
@takes(
    "golden",
    files_option(
        "--run",
        "What the retriever returned. Files that each have all queries are several good runs, and the baseline has "
        f"their means; files without a common query form one run. [{defaults.RUN}]",
    ),
    "scores",
    "judgments",
    "calibration",
    "config",
    "k",
    "repeats",
)
@out_option("--out", defaults.BASELINE, "Where to write the baseline.")
@click.option("--update", is_flag=True, help="Judge the run against the existing baseline, and show what changes.")
@click.option("--force", is_flag=True, help="Replace an existing file without judging the run.")
@click.option(
    "--accept-regressions",
    "reason",
    callback=_reason,
    metavar="REASON",
    help="With --update, store the run although it breaks the contract, with the reason.",
)
@NO_ANSWERS
def command(*, inputs: Inputs, out: str, reason: str | None, update: bool, force: bool, no_answers: bool) -> int:
    """Store a known-good run, or several, as the baseline.

    The run must cover the whole golden set. The file is written completely or not at all, and an existing one only
    with --update or --force. With --update, a run that breaks the contract is refused (exit code 1), and a baseline
    that would not change is left unchanged.
    """
    if update and force:
        raise click.UsageError("--update checks the run and --force does not: give one of them")
    if reason is not None and not update:
        raise click.UsageError("--accept-regressions needs --update: without it, nothing is checked")
    inputs = replace(find_files(inputs), store=True, no_answers=no_answers)
    refuse_outputs({"out": out}, inputs.all)
    if is_run(out):
        raise OutputError([f"{out}: a file with this name is read as a run; use a name that ends in .json"])
    read = file_digest(out)  # before anything else is
    if update:
        return _update(inputs, out=out, read=read, reason=reason)
    exists = not goes_to_stdout(out) and Path(out).is_file()
    if exists and not force:
        raise OutputError(
            [f"{out}: exists; check the run against it with --update, or replace it without a verdict with --force"]
        )
    with opened(inputs, good_runs=not inputs.repeats) as sources:
        outcome = pipeline.check(replace(sources, gates=False), now=clock())
    _refuse_scores(outcome, inputs)
    warn(outcome.report.warnings)
    replaces = _replaced(inputs, out) if exists else None
    rewrite(out, render_baseline(outcome.evaluation, clock(), replaces), read)
    say(_stored_text(outcome, inputs, out, replaces), err=goes_to_stdout(out))
    return ExitCode.PASS


def _refuse_scores(outcome: pipeline.Outcome, inputs: Inputs) -> None:
    if inputs.scores and outcome.evaluation.run.rows.runs > 1:
        raise click.UsageError("--scores is about one run; give one --run, or export the scores in the rows of each")


def _stored_text(outcome: pipeline.Outcome, inputs: Inputs, out: str, replaces: Replaced | None) -> str:
    """Return the text on what was stored, with a warning about fewer runs and the queries that it already breaks."""
    contract = outcome.evaluation.contract
    queries = count(len(contract.queries), "query")
    known = already_broken_text(
        outcome.report,
        only_new=contract.only_new,
        config=inputs.config or defaults.CONFIG,
        today=clock().date(),
    )
    runs = outcome.evaluation.run.rows.runs
    of = f"{queries}, the mean of {runs} good runs," if runs > 1 else queries
    fewer = fewer_runs(replaces.runs, runs) if replaces else None
    return f"baseline of {of} in {visible(out)}\n" + (f"Fewer good runs: {fewer}\n" if fewer else "") + known


def _replaced(inputs: Inputs, old: str) -> Replaced | None:
    """Return the record of the baseline in ``old``; None if it is not a baseline, or cannot be compared."""
    measured = replace(inputs, baseline=[old], store=False, decides=False)
    with suppress(InputError), opened(measured, good_runs=not inputs.repeats) as sources:
        return replaced_by(pipeline.check(sources, now=clock()).evaluation)
    return None


def _update(inputs: Inputs, *, out: str, read: Digest, reason: str | None) -> int:
    """Replace the baseline in ``out`` with the run, unless it breaks the contract and there is no ``reason``.

    The file is not replaced either if somebody else has changed it since it was ``read``, or if it would not change.
    Returns the exit code.
    """
    if goes_to_stdout(out) or not Path(out).is_file():
        raise InputError([f"{out}: there is no baseline to update; leave --update out to make one"])
    now = clock()
    with opened(replace(inputs, baseline=[out], past=NOT_ASKED), good_runs=not inputs.repeats) as sources:
        outcome = pipeline.check(sources, now=now)
    _refuse_scores(outcome, inputs)
    report, evaluation = outcome.report, outcome.evaluation
    stored = read_stored(out, evaluation.baseline.files[0] if evaluation.baseline else None)
    broken = report.verdict == "fail" or bool(waived_changes(report))
    refused = broken and reason is None
    accepted = [*stored.accepted, *([acceptance(report, reason)] if broken and reason else [])]
    new = baseline_of(evaluation, now, accepted)
    written = not refused and (broken or not is_same(stored, new))
    warn(report.warnings)
    if written:
        rewrite(out, encode(new), read)
    say(update_text(report, stored, new, out=out, reason=reason, written=written))
    return ExitCode.BROKEN if refused else ExitCode.PASS
