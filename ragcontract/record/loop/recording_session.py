"""What becomes of each answer in a recording: a row in the journal, an event, a number."""

from collections.abc import Mapping
from itertools import islice
from time import monotonic

from msgspec import UNSET, Raw

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.numbers import count
from ragcontract.core.text import shorten
from ragcontract.http.secrets import Secrets
from ragcontract.http.stopping import Stop, by_signals
from ragcontract.record.interface import CallFailed, Response, System
from ragcontract.record.loop.dialogue import Conversation
from ragcontract.record.loop.event_counts import Counts, Failed
from ragcontract.record.loop.journal import Journal
from ragcontract.record.loop.journal_lines import Entry
from ragcontract.record.loop.loop import CallSettings, Loop, failure_of
from ragcontract.record.record_settings import OnFailure
from ragcontract.record.run_rows import Rows
from ragcontract.record.sources import Sources
from ragcontract.record.watching.recording_events import Case, Event, Watch

SYNC_GAP, PROGRESS_GAP = 1.0, 0.2  # s; between two fsyncs, and between two Progress events


class Session:
    """One recording under way."""

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
        """Go on from what the journal has; ``total`` answers are wanted in all."""
        self._journal = journal
        self._sources = sources
        self._rows = rows
        self._on_failure = on_failure
        self._watch = watch
        self._secrets = secrets
        self._synced = self._shown = monotonic()
        self.counts = Counts(total=total, kept=journal.kept, now=monotonic())

    def prepared(self, versions: Mapping[str, str]) -> None:
        """Note what the system says of itself; raises InputError if the rows in the journal are of another one."""
        self._journal.prepared(self._secrets.redacted(dict(versions)))

    def run(self, system: System, calls: CallSettings, warmup: int, stop: Stop) -> None:
        """Ask what is lacking; raises KeyboardInterrupt if somebody asked to stop."""
        self.counts.restart(monotonic())
        loop = Loop(system, calls, watch=self.note, stop=stop, tick=self._tick, secrets=self._secrets)
        try:
            with by_signals(stop):
                first = islice(self._journal.lacking(), warmup)
                loop.ask_all((Conversation(one, 0) for one, _ in first), lambda _conversation, _answer: None)
                loop.ask_all((Conversation(one, repeat) for one, repeat in self._journal.lacking()), self._done)
            self._journal.depend_on(self._sources.new())
        finally:
            loop.close()
            self._journal.sync()
        if stop.asked:
            raise KeyboardInterrupt

    def note(self, event: Event) -> None:
        """Count an event, and hand it to those who watch."""
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
        """Keep what was answered; raises InputError if nothing at all is."""
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
            Case(
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
        """Return the response of which to write a row, or why there is none."""
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


def problems_of(counts: Counts, journal: str | None) -> list[str]:
    """Return why there is no run, as sentences: how many questions failed, and of each kind of failure an example."""
    failed = counts.failures.total()
    had = counts.done - failed
    why = f"{failed:,} of {count(counts.total, 'question')} failed, so no run is written"
    if not had:
        advice = "the same command asks again"
    elif journal:
        advice = f"the others are in {journal}, and the same command asks only for these"
    else:
        advice = "on_failure='leave-out' leaves them out"
    return [f"{why}; {advice}", *(_example(kind, counts.failures[kind], one) for kind, one in counts.examples.items())]


def _example(kind: str, times: int, one: Failed) -> str:
    return f"{kind}: {times:,}, such as query {shorten(one.query_id, bounds.NAME)!r}: {one.failure.message}"


def reused(counts: Counts) -> str:
    """Return the warning that answers are not of this recording."""
    part = f"{counts.kept:,} of {count(counts.total, 'answer')}"
    return f"{part} reused from an earlier recording (--fresh asks again)"


def lacking(counts: Counts) -> list[str]:
    """Return warnings about what the run does not have: results, answers, or questions that failed."""
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
