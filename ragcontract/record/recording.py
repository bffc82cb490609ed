"""Record a system: questions → system → journal → run.

Each answer becomes a row in the journal, an event and a number. The run appears whole at the end, or not at all.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Any

from msgspec import UNSET, Raw, Struct

from ragcontract.core import bounds
from ragcontract.core.errors import InputError, RagContractError
from ragcontract.core.numbers import count
from ragcontract.core.safe_text import shorten
from ragcontract.core.version import __version__
from ragcontract.net import journal as journals
from ragcontract.net.secrets import NO_SECRETS, Secrets
from ragcontract.net.stopping import Stop, by_signals
from ragcontract.record.asking import Asking, CallSettings, Conversation, failure_of
from ragcontract.record.events import Counts, Event, Failed, QuestionDone, Start, Watch
from ragcontract.record.golden_questions import Questions
from ragcontract.record.interface import CallFailed, Response, System
from ragcontract.record.journal import Entry, Journal
from ragcontract.record.record_options import OnFailure, RecordSettings
from ragcontract.record.run_rows import RandomIds, Rows, usable_versions, with_versions, write_run
from ragcontract.record.sources import Sources
from ragcontract.record.target import Target


class Recording(Struct, frozen=True, kw_only=True):
    """How a recording ended."""

    details: Mapping[str, Any]  # what else is known of the recording
    # The run for `check(run=…)`: its path, or the rows by query id if it is not written. None if there is no run.
    rows: str | Mapping[str, Mapping[str, Any]] | None = None
    failures: tuple[Failed, ...] = ()  # the first of the questions that failed
    warnings: tuple[str, ...] = ()
    error: BaseException | None = None  # why there is no run


def record(
    settings: RecordSettings,
    target: Target,
    *,
    stop: Stop | None = None,
    watch: Watch = lambda _: None,
    secrets: Secrets = NO_SECRETS,
) -> Recording:
    """Ask a target every golden query, and write the run if all are answered.

    Raises InputError or OutputError if the recording cannot begin. The ``error`` of the result is InputError if
    questions failed or the target cannot be used, and KeyboardInterrupt if somebody asked to stop. ``watch`` gets the
    End event before the teardown, so that it can still ask the system for its versions and facts.
    """
    path = settings.journal
    journal = Journal(journals.opened(path, "recording", option="--out") if path else journals.temporary())
    rows = None
    try:
        _start(journal, settings, target)
        ids = RandomIds(settings.out)
        session = _session(settings, journal, watch, secrets)
        watch(Start(target=target.name, total=session.counts.total, kept=journal.kept))
        try:
            known = _asked(settings, target.system, session, stop or Stop())
            system_versions = secrets.redacted(dict(_without_nones(known.versions)))
            versions, strange = usable_versions({"retriever_version": settings.commit, **system_versions})
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


class RecordingPlan(Struct, frozen=True, kw_only=True):
    """The questions that a recording would ask."""

    questions: int  # how many are chosen
    of: int  # how many questions the golden files have
    answers: int  # how many are wanted: the questions times the repeats
    kept: int  # how many of these answers the journal has


def planned(settings: RecordSettings, target: Target) -> RecordingPlan:
    """Return what would be asked, without asking or writing; raises what :func:`record` raises before it asks."""
    questions = settings.beginning.questions
    settings.beginning.sources.new()
    settings.beginning.refuse_inputs(target.files)
    kept = 0
    if settings.journal and Path(settings.journal).exists() and not settings.fresh:
        journal = Journal(journals.to_read(settings.journal))
        journal.read(settings.header(target), questions, settings.beginning.sources, partial=settings.partial)
        kept = journal.kept
        journal.close()
    return RecordingPlan(
        questions=len(questions.chosen), of=questions.of, answers=len(questions.chosen) * settings.repeats, kept=kept
    )


SYNC_GAP, PROGRESS_GAP = 1.0, 0.2  # s; between two fsyncs, and between two Progress events


class RecordingSession:
    """A recording under way: asks the questions and keeps the answers."""

    def __init__(
        self,
        journal: Journal,
        rows: Rows,
        sources: Sources,
        *,
        on_failure: OnFailure,
        total: int,
        watch: Watch,
        secrets: Secrets,
    ) -> None:
        """Begin after what the journal has; ``total`` answers are wanted in all."""
        self._journal = journal
        self._sources = sources
        self._rows = rows
        self._on_failure = on_failure
        self._watch = watch
        self._secrets = secrets
        self._synced = self._shown = monotonic()
        self.counts = Counts(total=total, kept=journal.kept, now=monotonic())

    def prepared(self, versions: Mapping[str, str]) -> None:
        """Note the versions of the system; raises InputError if the rows in the journal have others."""
        self._journal.prepared(self._secrets.redacted(dict(versions)))

    def run(self, system: System, calls: CallSettings, warmup: int, stop: Stop) -> None:
        """Ask the questions that have no row yet; raises KeyboardInterrupt if somebody asked to stop."""
        self.counts.restart(monotonic())
        asking = Asking(system, calls, watch=self.note, stop=stop, tick=self._tick, secrets=self._secrets)
        try:
            with by_signals(stop):
                first = islice(self._journal.lacking(), warmup)
                asking.ask_all(
                    (Conversation(question, 0) for question, _ in first), lambda _conversation, _answer: None
                )
                asking.ask_all(
                    (Conversation(question, repeat) for question, repeat in self._journal.lacking()), self._done
                )
            self._journal.depend_on(self._sources.new())
        finally:
            asking.close()
            self._journal.sync()
        if stop.asked:
            raise KeyboardInterrupt

    def note(self, event: Event) -> None:
        """Count an event and pass it on."""
        self.counts.count(event)
        self._watch(event)

    def _tick(self) -> None:
        now = monotonic()
        if now - self._synced >= SYNC_GAP:
            self._journal.depend_on(self._sources.new())
            self._journal.sync()
            self._synced = now
        if now - self._shown >= PROGRESS_GAP:
            self._watch(self.counts.progress(now))
            self._shown = now

    def _done(self, conversation: Conversation, answer: Response | CallFailed) -> None:
        """Keep an answer or a failure; raises InputError if too many questions in a row have failed."""
        response, failed = self._sorted(conversation, answer)
        row = None
        if response is not None:
            try:
                row = self._rows.encoded(conversation.question.id, response, conversation.ms)
            except CallFailed as invalid:
                response, failed = None, invalid
        if response is not None and response.results is None and conversation.question.names_documents:
            self.counts.without_results += 1
        failure = None if failed is None else failure_of(failed, self._secrets)
        self._journal.depend_on(self._sources.new())
        self._journal.add(
            Entry(
                query_id=conversation.question.id,
                question_sha=conversation.question.digest,
                repeat=conversation.repeat,
                attempts=conversation.attempts,
                ms=round(conversation.ms, 3),
                row=UNSET if row is None else Raw(row),
                failure=failure,
                partial=response is not None and response.error is not None,
            )
        )
        self.note(
            QuestionDone(
                query_id=conversation.question.id,
                repeat=conversation.repeat,
                attempts=conversation.attempts,
                ms=conversation.ms,
                response=response,
                failure=failure,
            )
        )
        if self._on_failure == "stop" and self.counts.in_a_row >= bounds.FAILED_IN_A_ROW and failure:
            many = f"the last {self.counts.in_a_row} questions failed, so no others are asked"
            raise InputError([f"{many}; the last one: {failure.kind}: {failure.message}"])

    def _sorted(
        self, conversation: Conversation, answer: Response | CallFailed
    ) -> tuple[Response | None, CallFailed | None]:
        """Return the response to write as a row, or else the failure."""
        keeps = self._on_failure == "keep-retrieval"
        if isinstance(answer, CallFailed):
            if not keeps or answer.partial is None or answer.partial.error is None:
                return None, answer
            partial = conversation.took(answer.partial, 0)
            return (partial, None) if partial is not None else (None, answer)
        if answer.error is None or keeps:
            return answer, None
        detail = answer.error_detail or {}
        kind = detail.get("kind")
        return None, CallFailed(kind if isinstance(kind, str) else "answer", answer.error, detail=answer.error_detail)


class _Known(Struct, frozen=True, kw_only=True):
    """The versions and facts of a system, known after it was asked."""

    versions: Mapping[str, Any] = {}
    facts: Mapping[str, Any] = {}
    warnings: tuple[str, ...] = ()
    error: BaseException | None = None  # what ended the asking early


def _start(journal: Journal, settings: RecordSettings, target: Target) -> None:
    """Read what the journal has; raises InputError or OutputError if the recording cannot go on with it."""
    start = settings.beginning
    header = settings.header(target)
    journal.start(header, start.questions, start.sources, fresh=settings.fresh, partial=settings.partial)
    journal.depend_on(start.sources.new())
    start.refuse_inputs(target.files)


def _session(settings: RecordSettings, journal: Journal, watch: Watch, secrets: Secrets) -> RecordingSession:
    return RecordingSession(
        journal,
        Rows(None if settings.out is None else str(settings.out), secrets),
        settings.beginning.sources,
        on_failure=settings.on_failure,
        total=len(settings.beginning.questions.chosen) * settings.repeats,
        watch=watch,
        secrets=secrets,
    )


def _asked(settings: RecordSettings, system: System, session: RecordingSession, stop: Stop) -> _Known:
    """Set the system up, ask the questions that have no row yet, and return what is known afterwards."""
    error: BaseException | None = None
    try:
        system.setup()
        versions: dict[str, str] = {}
        with suppress(Exception, SystemExit):  # users' code, which may not know them before it was asked
            versions = usable_versions(_without_nones(system.versions()))[0]
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
    """Tear a system down, and return a warning if that fails: the answers are still good."""
    try:
        system.teardown()
    except (Exception, SystemExit) as raised:  # noqa: BLE001 (users' code)
        return [shorten(f"the teardown failed: {type(raised).__name__}: {raised}", bounds.MESSAGE)]
    return []


def _without_nones(versions: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in versions.items() if value is not None}


def _written(
    settings: RecordSettings,
    session: RecordingSession,
    rows: Iterator[dict[str, Any]],
    system_versions: Mapping[str, str],
) -> str | Mapping[str, Mapping[str, Any]]:
    """Write the run and return its path, or return its rows; raises InputError if failed questions prevent a run."""
    counts = session.counts
    failed = counts.failures.total()
    if failed and (settings.on_failure == "stop" or failed == counts.total):
        raise InputError(problems_of(counts, None if settings.journal is None else str(settings.journal)))
    if settings.out is None:
        return {row.pop("query_id"): with_versions(row, system_versions, settings.versions) for row in rows}
    settings.beginning.refuse_inputs(())  # modules that a call has imported
    write_run(
        settings.out, rows, system_versions=system_versions, chosen=settings.versions, repeats=settings.repeats > 1
    )
    return os.fspath(settings.out)


def problems_of(counts: Counts, journal: str | None) -> list[str]:
    """Return why there is no run: how many questions failed, and an example of each kind of failure."""
    failed = counts.failures.total()
    had = counts.done - failed
    why = f"{failed:,} of {count(counts.total, 'question')} failed, so no run is written"
    if not had:
        advice = "the same command asks again"
    elif journal:
        advice = f"the others are in {journal}, and the same command asks only for these"
    else:
        advice = "on_failure='leave-out' leaves them out"
    return [
        f"{why}; {advice}",
        *(_example(kind, counts.failures[kind], example) for kind, example in counts.examples.items()),
    ]


def _example(kind: str, times: int, example: Failed) -> str:
    return f"{kind}: {times:,}, such as query {shorten(example.query_id, bounds.NAME)!r}: {example.failure.message}"


def reused(counts: Counts) -> str:
    """Return the warning that some answers come from an earlier recording."""
    part = f"{counts.kept:,} of {count(counts.total, 'answer')}"
    return f"{part} reused from an earlier recording (--fresh asks again)"


def lacking(counts: Counts) -> list[str]:
    """Return warnings about results, answers and questions that the run lacks."""
    return [*_without_results(counts), *_unanswered(counts), *_left_out(counts)]


def _without_results(counts: Counts) -> list[str]:
    if not counts.without_results:
        return []
    what = f"{count(counts.without_results, 'row')} without `results`, although golden queries name documents"
    return [f"{what}; `check` refuses such a run: let the target also return what it retrieved"]


def _unanswered(counts: Counts) -> list[str]:
    if not counts.unanswered:
        return []
    what = f"{count(counts.unanswered, 'question')} retrieved but did not answer"
    return [f"{what}: the run has `error` in place of the response, which breaks only rules about answers"]


def _left_out(counts: Counts) -> list[str]:
    failed = counts.failures.total()
    if not failed:
        return []
    kinds = ", ".join(f"{kind}: {times:,}" for kind, times in counts.failures.most_common())
    are = "is" if failed == 1 else "are"
    what = f"{count(failed, 'question')} failed and {are} left out ({kinds})"
    return [f"{what}; `check` refuses such a run unless the config has missing_queries: zero"]


def _doubts(counts: Counts, questions: Questions, ids: RandomIds) -> Iterator[str]:
    """Yield warnings about what the run lacks, and about its ids."""
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
