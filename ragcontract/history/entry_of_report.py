"""Makes the entry of an earlier check from its ``report.json``: its files are read again, and must be the same."""

import hashlib
import stat
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from msgspec import UNSET
from msgspec.structs import replace

from ragcontract import pipeline
from ragcontract.core.errors import InputError
from ragcontract.core.rule import Plugin
from ragcontract.core.run import SourceFile
from ragcontract.evaluation.past import Past
from ragcontract.evaluation.source import Inputs, Local, entry_ref, is_entry
from ragcontract.files.git import commit_named
from ragcontract.history.choose_baseline import Chosen, document_of
from ragcontract.history.ci_environment import is_default_branch, origin_of
from ragcontract.history.commits import CheckContext, reachable_by_git
from ragcontract.history.contract_entries import entries_of
from ragcontract.history.entry import (
    NO_TIME,
    EntryId,
    NewEntry,
    Origin,
    is_commit_start,
    is_time,
    new_id,
    short_commit,
)
from ragcontract.history.interface import Store
from ragcontract.history.new_entry import new_entry, part_of
from ragcontract.history.series import PastOfCheck
from ragcontract.history.service_files import with_files
from ragcontract.report.formats import FORMATS
from ragcontract.report.json_report import read
from ragcontract.report.record import ErrorReport, Report

DIGEST_START = 8  # of a digest in a message
REPORTS = [form.default for form in FORMATS if form.default] + ["report.html"]  # which a check writes
AGAIN = "run this in the folder of the check, or run check again"


class Files(Protocol):
    """An input in a report."""

    @property
    def files(self) -> list[SourceFile]: ...


def entry_of_report(
    path: Path,
    store: Store,
    environ: Mapping[str, str],
    *,
    branch: str | None = None,
    accepted: bool = False,
    private: bool = False,
    for_service: bool = False,
    plugins: Mapping[str, Plugin] = {},
) -> NewEntry:
    """Return the entry of the check whose report is at ``path``.

    ``environ`` and ``branch`` say where that check ran. Unless ``private``, one ``for_service`` has the files that only
    a team service keeps.
    Raises :class:`InputError` if the report has no verdict, or is of a part of the contract, or if a file that it names
    has changed since.
    """
    report = read(path)
    if accepted and report.verdict == "pass":
        raise InputError([f"{path}: passed, so there is nothing that could have been accepted"])
    if isinstance(report, ErrorReport):
        raise InputError([f"{path}: {report.summary_line}; only checks with a verdict are recorded"])
    if part := part_of(report):
        raise InputError([f"{path}: {part}"])
    if not is_time(report.created_at):
        raise InputError([f"{path}: created_at: {NO_TIME}"])
    if problems := [f"{path}: {problem}" for problem in _changed(report)]:
        raise InputError(problems)
    # The files that an application or a judge wrote may change with every check.
    written = _paths(report.inputs.run, report.inputs.scores, report.inputs.judgments)
    origin = origin_of(environ, Path(), [str(path), *REPORTS, *written], branch)
    if problem := _of_another_commit(report, origin.commit):
        raise InputError([f"{path}: {problem}"])
    inputs = replace(_inputs(report, store), plugins=plugins, past=_past(report, store, origin))
    outcome = pipeline.check(inputs, now=datetime.fromisoformat(report.created_at))
    if outcome.report.verdict != report.verdict:
        again = f"its files give the verdict {outcome.report.verdict} now"
        raise InputError([f"{path}: says {report.verdict}, and {again}; run check again"])
    content = path.read_bytes()
    new = new_entry(
        report,
        outcome.evaluation,
        origin,
        report_sha256=hashlib.sha256(content).hexdigest(),
        accepted=accepted,
        private=private,
        default_branch=is_default_branch(environ, origin.branch),
    )
    return with_files(new, report, content) if for_service and not private else new


def _of_another_commit(report: Report, commit: str | None) -> str | None:
    """Return what is wrong with a run that `record` made of another commit of this repository; None if nothing is.

    A step before may have failed, so that the run of an earlier job was checked.
    """
    for version in report.inputs.run.versions.get("retriever_version", ()):
        recorded = version.removesuffix("-dirty")
        if commit and is_commit_start(recorded) and not commit.startswith(recorded) and commit_named(recorded):
            advice = "record the run and check again"
            return f"its run is of the commit {short_commit(recorded)}, not of {short_commit(commit)}; {advice}"
    return None


def _changed(report: Report) -> Iterator[str]:
    """Yield what differs between the files that a report names and those that are there now.

    Somebody may have edited the report: a file without a digest is not read, so that no message quotes it, and neither
    is a pipe or a device, which could block.
    """
    inputs = report.inputs
    for file in _files(inputs.golden, inputs.run, inputs.scores, inputs.judgments, inputs.baseline, inputs.config):
        if is_entry(file.path):
            continue
        if not file.sha256:
            yield f"{file.path} has no sha256 there, so it is not known whether it has changed since the check"
            continue
        try:
            if not stat.S_ISREG(Path(file.path).stat().st_mode):
                yield f"{file.path} is not a file; write what it has to one, and run check again"
                continue
            with Path(file.path).open("rb") as stream:
                now = hashlib.file_digest(stream, "sha256").hexdigest()
        except (OSError, ValueError) as error:  # of a path with a NUL character
            yield f"{file.path} cannot be read any more ({getattr(error, 'strerror', None) or error}); {AGAIN}"
            continue
        if now != file.sha256:
            then, now = (f"{digest[:DIGEST_START]}…" for digest in (file.sha256, now))
            yield f"{file.path} has changed since the check (sha256 {then} then, {now} now); run check again"
    calibration = inputs.judgments.calibration if inputs.judgments else None
    if calibration is not None and not Path(calibration).is_file():  # of which the report has no digest
        yield f"{calibration} is not a file; run check again"


def _files(*parts: Files | None) -> list[SourceFile]:
    return [file for part in parts if part for file in part.files]


def _paths(*parts: Files | None) -> list[str]:
    return [file.path for file in _files(*parts)]


def _inputs(report: Report, store: Store) -> Inputs:
    """Return the inputs of the check that wrote a report."""
    named = report.inputs
    inputs = Inputs(
        golden=_paths(named.golden),
        run=_paths(named.run),
        baseline=_paths(named.baseline) or None,
        scores=_paths(named.scores),
        judgments=_paths(named.judgments),
        calibration=named.judgments.calibration if named.judgments else None,
        config=next(iter(_paths(named.config)), None),
        k=report.k[0] if len(report.k) == 1 else None,
        repeats=report.repeats is not None,
        keep_ids=True,
        awaits_baseline=report.history is not UNSET and named.baseline is None,
    )
    inputs, name = inputs.without_entry()
    return inputs if name is None else replace(inputs, baseline=Local(_entry(name, report, store)))


def _past(report: Report, store: Store, origin: Origin) -> Past:
    """Return the runs that were recorded when the check ran."""
    branch = report.history.branch if report.history is not UNSET else origin.branch
    return PastOfCheck(
        entries=entries_of(store, report.contract),
        branch=branch,
        context=CheckContext(branch=branch, run_id=origin.run_id, commits=reachable_by_git),
        until=new_id(datetime.fromisoformat(report.created_at).astimezone(UTC), None, "", 0),
    )


def _entry(name: str, report: Report, store: Store) -> Chosen:
    """Return the entry that was the baseline of a check, by its id."""
    entries, entry_id = entries_of(store, report.contract), EntryId.of(name)
    entry = next(entries.read([entry_id]), None) if entry_id else None
    if entry is None:
        gone = f"{entry_ref(name)}: was the baseline of the check, and is not in {store.name}"
        raise InputError([*entries.faulty, gone])
    return Chosen(entry=entry, named=name, document=document_of(store, entry))
