"""``rag-contract baseline --update``: what the new baseline accepts, and whether it may."""

from datetime import datetime
from pathlib import Path

from msgspec.structs import replace

from ragcontract import pipeline
from ragcontract.console import progress_over, say, warn
from ragcontract.errors import ExitCode, InputError
from ragcontract.outputs import goes_to_stdout, write_files
from ragcontract.reports.baseline_file import acceptance, baseline_of, encode, is_same, waived_drops
from ragcontract.reports.update import update_text


def update_baseline(paths: pipeline.Paths, *, k: int | None, out: str, reason: str | None, now: datetime) -> int:
    """Put the run in the place of the baseline in ``out``, unless it breaks the contract and nobody gives a ``reason``.

    Returns the exit code. A file that would say the same is left as it is.
    """
    if goes_to_stdout(out) or not Path(out).is_file():
        raise InputError([f"{out}: there is no baseline to update; leave --update out to make one"])
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
