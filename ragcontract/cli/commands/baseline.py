"""``rag-contract baseline``: stores a known-good run, or with --update shows what the new one accepts."""

from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from ragcontract import pipeline
from ragcontract.cli.console import progress_over, say, warn
from ragcontract.cli.options import (
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
from ragcontract.contract import defaults
from ragcontract.core.errors import ExitCode, InputError, OutputError
from ragcontract.core.numbers import count
from ragcontract.core.text import visible
from ragcontract.files.writing import goes_to_stdout, write_files
from ragcontract.reports.new_baseline import acceptance, baseline_of, encode, is_same, render, waived_drops
from ragcontract.runs.stored import RUN_SUFFIXES


def _reason(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    if value is not None and not value.strip():
        raise click.BadParameter("say why the regressions are accepted")
    return value and value.strip()


@click.command("baseline")
@GOLDEN
@RUN
@CONFIG
@K
@REPEATS
@out_option("--out", defaults.BASELINE, "Where to write the baseline.")
@click.option("--update", is_flag=True, help="Judge the run against the existing baseline, and show what changes.")
@click.option(
    "--accept-regressions",
    "reason",
    callback=_reason,
    metavar="REASON",
    help="With --update, store the run although it breaks the contract, with the reason.",
)
def command(k: int | None, out: str, *, update: bool, reason: str | None, **files: Any) -> int:
    """Store a known-good run as the baseline.

    The run must cover the whole golden set. The file is written completely or not at all. With --update, a run that
    breaks the contract is refused (exit code 1), and a baseline that would not change is left unchanged.
    """
    if reason is not None and not update:
        raise click.UsageError("--accept-regressions goes with --update: without it, nothing is judged")
    paths = find_paths(**files)
    refuse_outputs([out], paths)
    if out.lower().endswith(RUN_SUFFIXES):
        raise OutputError([f"{out}: a name like that is read as a run; call the baseline something.json"])
    if update:
        return _update(paths, k=k, out=out, reason=reason)
    with progress_over(large(paths)) as progress:
        scored, doc_ids, warnings = pipeline.good_run(paths, k=k, progress=progress)
    warn(warnings)
    write_files({out: render(scored, doc_ids, clock())})
    say(f"baseline of {count(len(scored.golden.queries), 'query')} in {visible(out)}\n", err=goes_to_stdout(out))
    return ExitCode.PASS


def _update(paths: pipeline.Paths, *, k: int | None, out: str, reason: str | None) -> int:
    """Replace the baseline in ``out`` with the run, unless it breaks the contract and there is no ``reason``.

    Returns the exit code. A file that would not change is left unchanged.
    """
    if goes_to_stdout(out) or not Path(out).is_file():
        raise InputError([f"{out}: there is no baseline to update; leave --update out to make one"])
    from ragcontract.reports.update import update_text  # loads the terminal's report, for an update only

    now = clock()
    paths = replace(paths, baseline=[out])
    with progress_over([*paths.golden, *paths.run, out]) as progress:
        found = pipeline.update(paths, clock=lambda: now, k=k, progress=progress)
    report, stored = found.report, found.stored
    broken = report.verdict == "fail" or bool(waived_drops(report))
    refused = broken and reason is None
    accepted = [*stored.accepted, *([acceptance(report, reason)] if broken and reason else [])]
    new = baseline_of(found.scored, found.doc_ids, now, accepted)
    written = not refused and (broken or not is_same(stored, new))
    warn(report.warnings)
    if written:
        write_files({out: encode(new)})
    say(update_text(report, stored, new, out=out, reason=reason, written=written))
    return ExitCode.BROKEN if refused else ExitCode.PASS
