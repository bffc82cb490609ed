"""Records a system: questions → system → journal → run. The run appears whole at the end, or not at all."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.errors import InputError, RagContractError
from ragcontract.core.numbers import count
from ragcontract.core.text import shorten
from ragcontract.core.version import __version__
from ragcontract.http.secrets import NO_SECRETS, Secrets
from ragcontract.http.stopping import Stop
from ragcontract.record.golden_questions import Questions
from ragcontract.record.interface import System
from ragcontract.record.loop import journal as journals
from ragcontract.record.loop.event_counts import Counts, Failed
from ragcontract.record.loop.recording_session import Session, lacking, problems_of, reused
from ragcontract.record.random_ids import RandomIds
from ragcontract.record.record_settings import RecordSettings
from ragcontract.record.run_rows import Rows, usable_versions, with_versions, write_run
from ragcontract.record.target import Target
from ragcontract.record.watching.recording_events import Start, Watch


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
    settings: RecordSettings,
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
    journal = journals.opened(settings.journal) if settings.journal else journals.temporary()
    rows = None
    try:
        _start(journal, settings, target)
        ids = RandomIds(settings.out)
        session = _session(settings, journal, watch, secrets)
        watch(Start(target=target.name, total=session.counts.total, kept=journal.kept))
        try:
            known = _asked(settings, target.system, session, stop or Stop())
            said = secrets.redacted(dict(_given(known.versions)))
            versions, strange = usable_versions({"retriever_version": settings.commit, **said})
            error = known.error
            try:
                rows = None if error else _written(settings, session, ids.passing(journal.rows()), versions)
            except RagContractError as raised:
                error = raised
            session.note(session.counts.end(written=rows is not None))
        finally:
            trouble = _released(target.system)
        return Recording(
            rows=rows,
            error=error,
            failures=tuple(session.counts.failed),
            warnings=(
                *([reused(session.counts)] if journal.kept else ()),
                *secrets.redacted([*known.warnings, *strange, *trouble]),
                *(_doubts(session.counts, settings.beginning.questions, ids) if rows is not None else ()),
            ),
            details=_details(settings, target, session.counts)
            | {"versions": {**versions, **settings.versions}, **secrets.redacted(dict(known.facts))},
        )
    finally:
        journal.close(remove=rows is not None)


def _start(journal: journals.Journal, settings: RecordSettings, target: Target) -> None:
    """Go on with a journal; raises InputError or OutputError if that is not possible."""
    start = settings.beginning
    header = settings.header(target)
    journal.start(header, start.questions, start.sources, fresh=settings.fresh, partial=settings.partial)
    journal.depend_on(start.sources.new())
    start.refuse_inputs(target.files)


def _session(settings: RecordSettings, journal: journals.Journal, watch: Watch, secrets: Secrets) -> Session:
    return Session(
        journal,
        Rows(None if settings.out is None else str(settings.out), secrets),
        settings.beginning.sources,
        on_failure=settings.on_failure,
        total=len(settings.beginning.questions.chosen) * settings.repeats,
        watch=watch,
        secrets=secrets,
    )


def _asked(settings: RecordSettings, system: System, session: Session, stop: Stop) -> _Known:
    """Ask what is lacking."""
    error: BaseException | None = None
    try:
        system.setup()
        versions: dict[str, str] = {}
        with suppress(Exception, SystemExit):  # users' code, which may not know them before it was asked
            versions = usable_versions(_given(system.versions()))[0]
        session.prepared(versions)
        session.run(system, settings.calls, settings.warmup, stop)
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
    settings: RecordSettings, session: Session, rows: Iterator[dict[str, Any]], found: Mapping[str, str]
) -> str | Mapping[str, Mapping[str, Any]]:
    """Write the run, or return it; raises InputError if questions failed that may not be left out."""
    counts = session.counts
    failed = counts.failures.total()
    if failed and (settings.on_failure == "stop" or failed == counts.total):
        raise InputError(problems_of(counts, None if settings.journal is None else str(settings.journal)))
    if settings.out is None:
        return {row.pop("query_id"): with_versions(row, found, settings.versions) for row in rows}
    settings.beginning.refuse_inputs(())  # modules that a call has imported
    write_run(settings.out, rows, found=found, chosen=settings.versions, repeats=settings.repeats > 1)
    return os.fspath(settings.out)


def _doubts(counts: Counts, questions: Questions, ids: RandomIds) -> Iterator[str]:
    """Yield warnings about what is not in the run, and about ids in it."""
    yield from lacking(counts)
    if questions.are_a_part:
        part = f"{len(questions.chosen):,} of {count(questions.of, 'golden query')}"
        yield f"the run has only {part}; `check` refuses it as incomplete, unless --tag names the same part"
    yield from ids.warnings()


def _details(settings: RecordSettings, target: Target, counts: Counts) -> dict[str, Any]:
    return {
        "tool": __version__,
        "target": target.name,
        "target_sha256": target.sha256,
        "git": settings.commit,
        "top": settings.calls.top,
        "concurrency": settings.calls.concurrency,
        "repeats": settings.repeats,
        "wanted": counts.total,
        "kept": counts.kept,
        "done": counts.done,
        "retried": counts.retried,
        "answered_after_retries": counts.again,
        "failures": dict(counts.failures),
    }


class Plan(Struct, frozen=True, kw_only=True):
    """What a recording would ask: ``questions`` of all ``of``; a journal has ``kept`` of the ``answers`` wanted."""

    questions: int
    of: int
    answers: int
    kept: int


def planned(settings: RecordSettings, target: Target) -> Plan:
    """Return what would be asked; raises what :func:`record` raises before anything is. Writes nothing."""
    questions = settings.beginning.questions
    settings.beginning.sources.new()
    settings.beginning.refuse_inputs(target.files)
    kept = 0
    if settings.journal and Path(settings.journal).exists() and not settings.fresh:
        journal = journals.to_read(settings.journal)
        journal.read(settings.header(target), questions, settings.beginning.sources, partial=settings.partial)
        kept = journal.kept
        journal.close()
    return Plan(
        questions=len(questions.chosen), of=questions.of, answers=len(questions.chosen) * settings.repeats, kept=kept
    )
