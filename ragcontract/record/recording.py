"""Record a system, as `rag-contract record` does: questions → system → journal → run.

Each answer becomes a row in the journal, an event and a number. The run appears whole at the end, or not at all.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Any, TypedDict, Unpack, cast

from msgspec import UNSET, Raw, Struct

from ragcontract.core import bounds
from ragcontract.core.errors import InputError, OutputError, RagContractError
from ragcontract.core.ids import Path as AnyPath
from ragcontract.core.ids import paths_of, several
from ragcontract.core.numbers import count
from ragcontract.core.safe_text import shorten
from ragcontract.core.version import __version__
from ragcontract.net import journal as journals
from ragcontract.net.journal import SYNC_GAP
from ragcontract.net.pool import Stop, by_signals
from ragcontract.net.secrets import NO_SECRETS, Secrets
from ragcontract.record.adapters.framework import redacting
from ragcontract.record.asking import Asking, Conversation, failure_of
from ragcontract.record.events import Counts, Event, Failed, QuestionDone, Start, Watch
from ragcontract.record.interface import CallFailed, Response, System
from ragcontract.record.record_options import OnFailure, RecordOptions, RecordSettings, settled
from ragcontract.record.recording_journal import Entry, Journal, begin, undo
from ragcontract.record.run_rows import OddIds, Rows, usable_versions, with_versions, write_run
from ragcontract.record.sources import other_checkout
from ragcontract.record.target import Target, read_target


class Recording(Struct, frozen=True, kw_only=True):
    """How a recording ended."""

    details: Mapping[str, Any]  # what else is known of the recording
    # The run for `check(run=…)`: its path, or the rows by query id if it is not written. None if no run was made.
    rows: str | Mapping[str, Mapping[str, Any]] | None = None
    failures: tuple[Failed, ...] = ()  # the first of the questions that failed
    warnings: tuple[str, ...] = ()
    error: BaseException | None = None  # the reason, if the run is missing


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
    journal = _journal(settings, target)
    rows = None
    try:
        ids = OddIds(settings.out, settings.questions.doc_ids)
        session = RecordingSession(settings, journal, watch, secrets)
        counts = session.counts
        watch(Start(target=target.name, total=counts.total, kept=journal.kept))
        try:
            known = session.asked(target.system, stop or Stop())
            versions, strange = usable_versions(
                {"retriever_version": settings.version, **secrets.redacted(dict(known.versions))}
            )
            error = known.error
            try:
                rows = None if error else _written(settings, counts, journal, ids, versions)
            except RagContractError as raised:
                error = raised
            session.note(counts.end(written=rows is not None))
        finally:
            trouble = _released(target.system)
        return Recording(
            rows=rows,
            error=error,
            failures=tuple(counts.failed),
            warnings=(
                *([reused(counts)] if journal.kept else ()),
                *secrets.redacted([*known.warnings, *strange, *trouble]),
                *(_doubts(counts, settings, ids) if rows is not None else ()),
            ),
            details=_details(settings, target, counts)
            | {"versions": {**versions, **settings.options.versions}, **secrets.redacted(dict(known.facts))},
        )
    finally:
        journal.close(remove=rows is not None)


def _journal(settings: RecordSettings, target: Target) -> Journal:
    """Return the journal to go on with; raises InputError or OutputError if the recording cannot begin."""
    path, options, sources = settings.journal, settings.options, settings.sources.new()
    try:
        settings.refuse_inputs(target.files)
    except OutputError:
        if path is not None:
            undo(path)
        raise
    journal = Journal(journals.opened(path, "recording", option="--out") if path else journals.temporary())
    try:
        header = settings.header(target)
        journal.start(header, settings.questions, settings.sources, fresh=options.fresh, partial=options.partial)
        journal.depend_on(sources)
    except BaseException:
        journal.close()
        raise
    return journal


class RecordingPlan(Struct, frozen=True, kw_only=True):
    """The questions that a recording would ask."""

    questions: int  # how many are chosen
    of: int  # how many questions the golden files have
    answers: int  # how many are wanted: the questions times the repeats
    kept: int  # how many of these answers the journal has


def planned(settings: RecordSettings, target: Target) -> RecordingPlan:
    """Return what would be asked, without asking or writing; raises what :func:`record` raises before it asks."""
    questions, options = settings.questions, settings.options
    settings.sources.new()
    settings.refuse_inputs(target.files)
    kept = 0
    if settings.journal and Path(settings.journal).exists() and not options.fresh:
        journal = Journal(journals.to_read(settings.journal))
        journal.read(settings.header(target), questions, settings.sources, partial=options.partial)
        kept = journal.kept
        journal.close()
    asked = len(questions.chosen)
    return RecordingPlan(questions=asked, of=questions.of, answers=asked * options.repeats, kept=kept)


PROGRESS_GAP = 0.2  # s; between two Progress events


class _Known(Struct, frozen=True, kw_only=True):
    """The versions and facts of a system, known after it was asked."""

    versions: Mapping[str, Any] = {}
    facts: Mapping[str, Any] = {}
    warnings: tuple[str, ...] = ()
    error: BaseException | None = None  # what ended the asking early


class RecordingSession:
    """A recording under way: asks the questions and keeps the answers."""

    def __init__(self, settings: RecordSettings, journal: Journal, watch: Watch, secrets: Secrets) -> None:
        self._journal = journal
        self._sources = settings.sources
        self._outputs = settings.outputs
        self._options = settings.options
        self._rows = Rows(None if settings.out is None else str(settings.out), secrets)
        self._watch = watch
        self._secrets = secrets
        self._synced = self._shown = monotonic()
        total = len(settings.questions.chosen) * settings.options.repeats
        self.counts = Counts(total=total, kept=journal.kept, now=monotonic())

    def asked(self, system: System, stop: Stop) -> _Known:
        """Set the system up, ask the questions that have no row yet, and return what is known afterwards."""
        error: BaseException | None = None
        try:
            system.setup()
            versions: dict[str, str] = {}
            with suppress(Exception, SystemExit):  # users' code, which may not know them before it was asked
                versions = usable_versions(system.versions())[0]
            self._journal.prepared(self._secrets.redacted(versions))
            self._ask(system, stop)
        except (RagContractError, KeyboardInterrupt) as raised:
            error = raised
        except SystemExit as raised:
            error = InputError([f"the target ended the program (exit code {raised.code})"])
        try:
            return _Known(versions=system.versions(), facts=system.facts(), error=error)
        except (Exception, SystemExit) as raised:  # noqa: BLE001 (users' code; what was answered must not be lost)
            unknown = f"the versions of the system are not known: {type(raised).__name__}: {raised}"
            return _Known(warnings=() if error else (shorten(unknown, bounds.MESSAGE),), error=error)

    def _ask(self, system: System, stop: Stop) -> None:
        self.counts.restart(monotonic())
        asking = Asking(system, self._options, watch=self.note, stop=stop, tick=self._tick, secrets=self._secrets)
        try:
            with by_signals(stop):
                first = islice(self._journal.lacking(), self._options.warmup)
                asking.ask_all((Conversation(question, 0) for question, _ in first), lambda *_: None)
                asking.ask_all(
                    (Conversation(question, repeat) for question, repeat in self._journal.lacking()), self._done
                )
            self._journal.depend_on(self._sources.last(self._outputs))
        finally:
            asking.close()
            self._journal.sync()
        if stop.asked:
            raise KeyboardInterrupt

    def note(self, event: Event) -> None:
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
        row, failure = None, None
        question, response = conversation.question, None
        try:
            response = self._accepted(conversation, answer)
            row = self._rows.encoded(question.id, response, conversation.ms)
        except CallFailed as failed:
            response, failure = None, failure_of(failed, self._secrets)
        if response is not None and response.results is None and question.names_documents:
            self.counts.without_results += 1
        self._journal.depend_on(self._sources.new())
        self._journal.add(
            Entry(
                query_id=question.id,
                question_sha=question.digest,
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
                query_id=question.id,
                repeat=conversation.repeat,
                attempts=conversation.attempts,
                ms=conversation.ms,
                response=response,
                failure=failure,
            )
        )
        if self._options.on_failure == "stop" and self.counts.in_a_row >= bounds.FAILED_IN_A_ROW and failure:
            many = f"the last {self.counts.in_a_row} questions failed, so no others are asked"
            raise InputError([f"{many}; the last one: {failure.kind}: {failure.message}"])

    def _accepted(self, conversation: Conversation, answer: Response | CallFailed) -> Response:
        """Return the response to write as a row; raises CallFailed if there is none."""
        keeps = self._options.partial
        if isinstance(answer, CallFailed):
            if keeps and answer.partial is not None and answer.partial.error is not None:
                partial = conversation.took(answer.partial, 0)
                if partial is not None:
                    return partial
            raise answer
        if answer.error is None or keeps:
            return answer
        detail = answer.error_detail or {}
        kind = detail.get("kind")
        raise CallFailed(kind if isinstance(kind, str) else "answer", answer.error, detail=answer.error_detail)


def _released(system: System) -> list[str]:
    """Tear a system down, and return a warning if that fails: the answers are still good."""
    try:
        system.teardown()
    except (Exception, SystemExit) as raised:  # noqa: BLE001 (users' code)
        return [shorten(f"the teardown failed: {type(raised).__name__}: {raised}", bounds.MESSAGE)]
    return []


def _written(
    settings: RecordSettings, counts: Counts, journal: Journal, ids: OddIds, system_versions: Mapping[str, str]
) -> str | Mapping[str, Mapping[str, Any]]:
    """Write the run and return its path, or return its rows; raises InputError if failed questions prevent a run."""
    options, failed = settings.options, counts.failures.total()
    if failed and (options.on_failure == "stop" or not journal.has_rows):
        raise InputError(problems_of(counts, None if settings.journal is None else str(settings.journal)))
    rows = ids.passing(journal.rows())
    if settings.out is None:
        return {row.pop("query_id"): with_versions(row, system_versions, options.versions) for row in rows}
    settings.refuse_inputs(())  # modules that a call has imported
    repeats = options.repeats > 1
    write_run(settings.out, rows, system_versions=system_versions, chosen=options.versions, repeats=repeats)
    return os.fspath(settings.out)


def problems_of(counts: Counts, journal: str | None) -> list[str]:
    """Return the reasons why no run was made: how many questions failed, and an example of each kind of failure."""
    failed = counts.failures.total()
    had = counts.done - failed
    why = f"{failed:,} of {count(counts.total, 'question')} failed, so no run is written"
    if not had:
        advice = "the same command asks again"
    elif journal:
        advice = f"the others are in {journal}, and the same command asks only for these"
    else:
        advice = "on_failure='leave-out' leaves them out"
    problems = [f"{why}; {advice}"]
    for kind, example in counts.examples.items():
        query = shorten(example.query_id, bounds.NAME)
        problems.append(f"{kind}: {counts.failures[kind]:,}, such as query {query!r}: {example.failure.message}")
    return problems


def reused(counts: Counts) -> str:
    """Return the warning that some answers come from an earlier recording."""
    part = f"{counts.kept:,} of {count(counts.total, 'answer')}"
    return f"{part} reused from an earlier recording (--fresh asks again)"


def lacking(counts: Counts, repeats: int) -> Iterator[str]:
    """Yield warnings about results, answers and questions that the run lacks."""
    if counts.without_results:
        what = f"{count(counts.without_results, 'row')} without `results`, although golden queries name documents"
        yield f"{what}; `check` refuses such a run: let the target also return what it retrieved"
    if counts.unanswered:
        what = f"{count(counts.unanswered, 'question')} retrieved but did not answer"
        yield f"{what}: the run has `error` in place of the response, which breaks only rules about answers"
    if failed := len(counts.questions):
        kinds = ", ".join(f"{kind}: {times:,}" for kind, times in counts.failures.most_common())
        are = f"{'is' if failed == 1 else 'are'} left out{', with all repeats' if repeats > 1 else ''}"
        what = f"{count(failed, 'question')} failed and {are} ({kinds})"
        yield f"{what}; `check` refuses such a run unless the config has missing_queries: zero"


def _doubts(counts: Counts, settings: RecordSettings, ids: OddIds) -> Iterator[str]:
    """Yield warnings about other code, what the run lacks, and its ids."""
    questions = settings.questions
    yield from other_checkout(settings.sources)
    yield from lacking(counts, settings.options.repeats)
    if questions.are_a_part:
        part = f"{len(questions.chosen):,} of {count(questions.of, 'golden query')}"
        yield f"the run has only {part}; `check` refuses it as incomplete, unless --tag names the same part"
    yield from ids.warnings()


def _details(settings: RecordSettings, target: Target, counts: Counts) -> dict[str, Any]:
    return {
        "tool": __version__,
        "target": target.name,
        "target_sha256": target.sha256,
        "git": settings.version,
        "top": settings.options.top,
        "concurrency": settings.options.concurrency or target.system.concurrency,
        "repeats": settings.options.repeats,
        "wanted": counts.total,
        "kept": counts.kept,
        "done": counts.done,
        "retried": counts.retried,
        "answered_after_retries": counts.again,
        "failures": dict(counts.failures),
    }


SEVERAL = frozenset({"tags", "queries", "secrets", "watch_files"})  # options that take one or several texts


class RecordKeywords(TypedDict, total=False):
    """The options of the command line, with the same defaults."""

    top: int
    concurrency: int | None
    rate: str | None
    timeout: float
    connect_timeout: float
    retries: int
    repeats: int
    warmup: int
    tags: str | Sequence[str]
    queries: str | Sequence[str]
    limit: int | None
    on_failure: OnFailure
    versions: Mapping[str, str]
    doc_id: str | None
    secrets: str | Sequence[str]
    fresh: bool
    watch_files: str | Sequence[str]
    offline: bool
    isolate: bool


def record_run(
    target: object,
    *,
    golden: AnyPath | Sequence[AnyPath],
    out: AnyPath | None = None,
    watch: Watch | None = None,
    **options: Unpack[RecordKeywords],
) -> Recording:
    """Ask a system every golden query, as ``rag-contract record`` does, and return the run.

    ``target`` is a function, an object with ``run``, or text as on the command line. With ``out``, the run is written
    there and ``rows`` of the result is its path; without it, ``rows`` is the run itself. Pass either to
    ``check(run=…)``. ``watch`` is called with each event.

    The other options are those of the command line: ``top`` (10), ``timeout`` in seconds (30), ``rate`` as text such as
    ``"5/s"``, ``secrets`` as names of environment variables, ``watch_files`` as the patterns of ``--watch``.

    Raises :class:`~ragcontract.InputError` if questions failed. Then no run is written. The answers to the others stay
    in the journal beside ``out``.
    """
    lists = {name: several(cast("str | Sequence[str]", value)) for name, value in options.items() if name in SEVERAL}
    record_options = RecordOptions(
        golden=paths_of(golden),
        out=None if out is None else os.fspath(out),
        **{**options, **lists},  # type: ignore[arg-type]
    )
    wrong = [f"{name}: {problem}" for name, problem in record_options.wrong(os.environ)]
    if record_options.repeats != 1 and out is None:
        wrong.append("repeats: a run in memory has one row a query; name a file with `out`")
    if wrong:
        raise InputError(wrong)
    secrets = record_options.known(os.environ)
    with redacting(secrets):
        settings = settled(record_options)
        if settings.journal is not None:
            begin(settings.journal)
        resolved_target = read_target(target, record_options.surroundings(os.environ, settings.sources))
        recording = record(settings, resolved_target, secrets=secrets, watch=watch or (lambda _: None))
        if recording.error is not None:
            raise recording.error
        return recording
