"""Records a system: questions → system → journal → run. The run appears whole at the end, or not at all."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.errors import InputError, RagContractError
from ragcontract.core.numbers import count
from ragcontract.core.text import shorten
from ragcontract.core.version import __version__
from ragcontract.files.patterns import existing_files
from ragcontract.http.secrets import NO_SECRETS, Secrets
from ragcontract.record import journal as journals
from ragcontract.record.golden_questions import Questions, read_questions
from ragcontract.record.repository import commit_of
from ragcontract.record.run_rows import Rows, refuse_output, usable_versions, with_versions, write_run
from ragcontract.record.stopping import Stop
from ragcontract.record.system import System
from ragcontract.record.taking import Session, lacking, problems_of
from ragcontract.record.tally import Failed, Tally
from ragcontract.record.target import Target
from ragcontract.record.wanted import Wanted
from ragcontract.record.watching import Start, Watch


class Recording(Struct, frozen=True, kw_only=True):
    """How a recording ended; ``error`` is why there is no run.

    ``rows`` are a run for ``check(run=…)``: its path, or a mapping if it was not to be written; None without a run.
    ``failures`` are the first of the questions that the system did not answer, ``details`` what else is known.
    """

    details: Mapping[str, Any]
    rows: str | Mapping[str, Mapping[str, Any]] | None = None
    failures: tuple[Failed, ...] = ()
    warnings: tuple[str, ...] = ()
    error: BaseException | None = None


class _Known(Struct, frozen=True, kw_only=True):
    """What is known of a system after it was asked, and what ended that early."""

    versions: Mapping[str, Any] = {}
    facts: Mapping[str, Any] = {}
    warnings: tuple[str, ...] = ()
    error: BaseException | None = None


def record(
    wanted: Wanted,
    target: Target,
    *,
    stop: Stop | None = None,
    watch: Watch = lambda _: None,
    secrets: Secrets = NO_SECRETS,
) -> Recording:
    """Ask a target every golden query, and write the run if all are answered.

    Raises InputError or OutputError if that cannot begin. The ``error`` of the result is InputError if questions
    failed, or if the target cannot be used, and KeyboardInterrupt if somebody asked to stop. Those who watch hear of
    the end while the system can still say what it knows.
    """
    questions, commit = _begun(wanted)
    journal = journals.opened(wanted.journal) if wanted.journal else journals.temporary()
    rows = None
    try:
        header = wanted.header(target, commit)
        journal.start(header, questions, fresh=wanted.fresh, partial=wanted.partial)
        total = len(questions.chosen) * wanted.repeats
        encoder = Rows(wanted.out, secrets)
        session = Session(journal, encoder, on_failure=wanted.on_failure, total=total, watch=watch, secrets=secrets)
        watch(Start(target=target.name, total=total, kept=journal.kept))
        try:
            known = _asked(wanted, target.system, session, stop or Stop())
            said = secrets.redacted(dict(_given(known.versions)))
            versions, strange = usable_versions({"retriever_version": commit, **said})
            error = known.error
            try:
                rows = None if error else _written(wanted, session, journal, versions)
            except RagContractError as raised:
                error = raised
            session.note(session.tally.end(written=rows is not None))
        finally:
            trouble = _released(target.system)
        return Recording(
            rows=rows,
            error=error,
            failures=tuple(session.tally.failed),
            warnings=(
                *secrets.redacted([*known.warnings, *strange, *trouble]),
                *(_left_out(session.tally, questions) if rows is not None else ()),
            ),
            details=_details(wanted, target, commit, session.tally)
            | {"versions": {**versions, **wanted.versions}, **secrets.redacted(dict(known.facts))},
        )
    finally:
        journal.close(remove=rows is not None)


def _begun(wanted: Wanted) -> tuple[Questions, str | None]:
    """Return the questions and the commit; raises InputError or OutputError if nothing can come of a recording."""
    questions = read_questions(wanted.golden, wanted.selection)
    if wanted.out is not None:
        refuse_output(wanted.out, existing_files(wanted.golden)[0])
    commit = commit_of(wanted.folder, () if wanted.out is None else (wanted.out,))
    return questions, None if commit is None else str(commit)


def _asked(wanted: Wanted, system: System, session: Session, stop: Stop) -> _Known:
    """Ask what is lacking."""
    error: BaseException | None = None
    try:
        system.setup()
        versions: dict[str, str] = {}
        with suppress(Exception, SystemExit):  # users' code, which may not know them before it was asked
            versions = usable_versions(_given(system.versions()))[0]
        session.prepared(versions)
        session.run(system, wanted.manner, wanted.warmup, stop)
    except (RagContractError, KeyboardInterrupt) as raised:
        error = raised
    except SystemExit as raised:
        error = InputError([f"the target ended the program (exit code {raised.code})"])
    try:
        return _Known(versions=system.versions(), facts=system.facts(), error=error)
    except (Exception, SystemExit) as raised:  # noqa: BLE001 (users' code; what was answered must not be lost)
        unknown = f"the versions of the system are not known: {type(raised).__name__}: {raised}"
        return _Known(warnings=() if error else (shorten(unknown, bounds.MESSAGE),), error=error)


def _released(system: System) -> list[str]:
    """Tear a system down, and return a warning if that fails: what was answered is none the worse for it."""
    try:
        system.teardown()
    except (Exception, SystemExit) as raised:  # noqa: BLE001 (users' code)
        return [shorten(f"the teardown failed: {type(raised).__name__}: {raised}", bounds.MESSAGE)]
    return []


def _given(versions: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in versions.items() if value is not None}


def _written(
    wanted: Wanted, session: Session, journal: journals.Journal, found: Mapping[str, str]
) -> str | Mapping[str, Mapping[str, Any]]:
    """Write the run, or return it; raises InputError if questions failed that may not be left out."""
    tally = session.tally
    failed = tally.failures.total()
    if failed and (wanted.on_failure == "stop" or failed == tally.total):
        raise InputError(problems_of(tally, None if wanted.journal is None else str(wanted.journal)))
    if wanted.out is None:
        return {row.pop("query_id"): with_versions(row, found, wanted.versions) for row in journal.rows()}
    write_run(wanted.out, journal.rows(), found=found, chosen=wanted.versions, repeats=wanted.repeats > 1)
    return wanted.out


def _left_out(tally: Tally, questions: Questions) -> Iterator[str]:
    """Yield warnings about what is not in the run."""
    yield from lacking(tally)
    if questions.are_a_part:
        part = f"{len(questions.chosen):,} of {count(questions.of, 'golden query')}"
        yield f"the run has only {part}; `check` refuses it as incomplete, unless --tag names the same part"


def _details(wanted: Wanted, target: Target, commit: str | None, tally: Tally) -> dict[str, Any]:
    return {
        "tool": __version__,
        "target": target.name,
        "target_sha256": target.sha256,
        "git": commit,
        "top": wanted.manner.top,
        "concurrency": wanted.manner.concurrency,
        "repeats": wanted.repeats,
        "wanted": tally.total,
        "kept": tally.kept,
        "done": tally.done,
        "retried": tally.retried,
        "answered_after_retries": tally.again,
        "failures": dict(tally.failures),
    }


class Plan(Struct, frozen=True, kw_only=True):
    """What a recording would ask: ``questions`` of all ``of``; a journal has ``kept`` of the ``answers`` wanted."""

    questions: int
    of: int
    answers: int
    kept: int


def planned(wanted: Wanted, target: Target) -> Plan:
    """Return what would be asked; raises what :func:`record` raises before anything is. Writes nothing."""
    questions, commit = _begun(wanted)
    kept = 0
    if wanted.journal and wanted.journal.exists() and not wanted.fresh:
        header = wanted.header(target, commit)
        journal = journals.to_read(wanted.journal).read(header, questions, partial=wanted.partial)
        kept = journal.kept
        journal.close()
    return Plan(
        questions=len(questions.chosen), of=questions.of, answers=len(questions.chosen) * wanted.repeats, kept=kept
    )
