"""Watch a recording, as the command line asks for it: progress, a stream of events, the details.

Progress is a bar on a terminal, and a line now and then in a pipe. The stream is a file with a line for each event,
written as it happens, for dashboards and for people who wait. A full disk, or a pipe whose reader has left, ends the
stream and not the recording. The details have what a run has no fields for: what was asked, how often, how long it
took, what failed. They have an entry for every question, which a file keeps until the document is written.
"""

import os
import platform
import select
import sys
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TextIO

import click
import msgspec
from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.errors import OutputError
from ragcontract.core.safe_text import shorten
from ragcontract.core.version import __version__
from ragcontract.files.git import Commit
from ragcontract.files.paths import AnchoredPath
from ragcontract.files.streams import Unfailing
from ragcontract.files.writing import check_outputs, descriptor_of, temporary_file, unwritable_temporary, write_files
from ragcontract.net.secrets import NO_SECRETS, Secrets
from ragcontract.record.events import Counts, End, Event, QuestionDone, RecordingProgress, Start, Watch
from ragcontract.record.interface import Response
from ragcontract.record.returned.returned_messages import as_json, plain, printable
from ragcontract.record.target import Target
from ragcontract.statistics.means import nearest_rank

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar

Format = Literal["jsonl", "json-seq"]


class WatchOptions(Struct, frozen=True, kw_only=True):
    """Where events go; None for nowhere."""

    every: float  # seconds between two lines of progress; 0 for no progress
    stream: AnchoredPath | None = None
    form: Format = "jsonl"  # of the stream
    answer_chars: int = 0  # at which answers in the stream are cut; 0 leaves them out
    details: AnchoredPath | None = None


@contextmanager
def watchers(
    watched: WatchOptions, target: Target, commit: Commit | None, secrets: Secrets, warn: Callable[[str], object]
) -> Iterator[Watch]:
    """Yield a function that takes events, and close everything afterwards.

    The details are written at the End event.
    """
    with ExitStack() as stack:
        every: list[Watch] = []
        if (progress := progress_shown(watched.every)) is not None:
            every.append(stack.enter_context(closing(progress)))
        if watched.stream is not None:
            stream = EventStream(
                watched.stream, watched.form, answer_chars=watched.answer_chars, secrets=secrets, warn=warn
            )
            every.append(stack.enter_context(closing(stream)))
        if watched.details is not None:
            details = Details(target, secrets=secrets, commit=commit, path=watched.details)
            every.append(stack.enter_context(closing(details)))

        def to_all(event: Event) -> None:
            for watch in every:
                watch(event)

        yield to_all


def progress_shown(
    every: float, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
) -> "Bar | Lines | None":
    """Return a bar if a stream is a terminal, otherwise lines; the stream is standard error by default.

    A line is written at most every ``every`` seconds; 0 shows nothing. ``clock`` counts seconds.
    """
    stream = stream or sys.stderr
    if every <= 0 or stream is None:
        return None
    return Bar(stream) if stream.isatty() else Lines(stream, every, clock)


class Lines:
    """Writes a line now and then, as ``412/1000 asked, 3 retried, 0 failed, 8.1/s, p95 210 ms, about 1 min left``."""

    def __init__(self, stream: TextIO, every: float, clock: Callable[[], float]) -> None:
        """Prepare to write; the first line comes after ``every`` seconds."""
        self._stream = Unfailing(stream)
        self._every = every
        self._clock = clock
        self._next = clock() + every

    def __call__(self, event: Event) -> None:
        if isinstance(event, RecordingProgress) and self._clock() >= self._next:
            self._next = self._clock() + self._every
            self._stream.write(line_of(event) + "\n")

    def close(self) -> None:
        """Do nothing: every line is complete."""


class Bar:
    """Draws a bar on a terminal, with the same figures beside it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._bar: ProgressBar[Any] | None = None

    def __call__(self, event: Event) -> None:
        if isinstance(event, Start) and event.total:
            bar = click.progressbar(
                length=event.total,
                label="asking",
                file=self._stream,
                show_eta=False,
                show_pos=True,
                item_show_func=_beside,
                width=0,  # as wide as the figures beside it allow
            )
            self._bar = bar.__enter__()
        elif isinstance(event, RecordingProgress) and self._bar is not None:
            self._bar.update(event.done - self._bar.pos, event)
        elif isinstance(event, End):
            self.close()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.__exit__(None, None, None)
            self._bar = None


MINUTE, HOUR = 60, 3_600  # s


def line_of(progress: RecordingProgress) -> str:
    """Return the progress of a recording as a line of text."""
    parts = [f"{progress.done}/{progress.total} asked", f"{progress.retried} retried", f"{progress.failed} failed"]
    parts.append(f"{progress.rate:.1f}/s")
    if progress.p95_ms is not None:
        parts.append(f"p95 {progress.p95_ms:,.0f} ms")
    return ", ".join([*parts, *_left(progress)])


def _beside(progress: RecordingProgress | None) -> str | None:
    """Return the figures beside a bar: few, because the bar needs most of the line."""
    if progress is None:
        return None
    counts = {"retried": progress.retried, "failed": progress.failed}
    notable = [f"{count} {what}" for what, count in counts.items() if count]
    return ", ".join([*notable, f"{progress.rate:.1f}/s", *_left(progress)])


def _left(progress: RecordingProgress) -> list[str]:
    return [] if progress.seconds_left is None else [f"about {duration(progress.seconds_left)} left"]


def duration(seconds: float) -> str:
    """Return a time in the unit that a person would use: ``40 s``, ``12 min``, ``3.5 h``."""
    if seconds < MINUTE:
        return f"{seconds:.0f} s"
    return f"{seconds / MINUTE:.0f} min" if seconds < 2 * HOUR else f"{seconds / HOUR:.1f} h"


RECORD_SEPARATOR = b"\x1e"  # RFC 7464: before each text, so that a text that was cut off spoils no other


def _now() -> datetime:
    return datetime.now(UTC)


class EventStream:
    """Writes events to a file, each with ``event``, ``at`` (UTC) and ``seq``, which counts from 1."""

    def __init__(
        self,
        path: str | AnchoredPath,
        form: Format = "jsonl",
        *,
        answer_chars: int = 0,
        secrets: Secrets = NO_SECRETS,
        warn: Callable[[str], object],
        clock: Callable[[], datetime] = _now,
    ) -> None:
        """Open the file, which the first event overwrites; raises OutputError if it cannot be written.

        Answers are cut at ``answer_chars`` characters; 0 leaves them out. ``warn`` is called once if the stream ends
        early.
        """
        if problems := check_outputs([path], []):
            raise OutputError(problems)
        self._path = path
        self._start = RECORD_SEPARATOR if form == "json-seq" else b""
        self._answer_chars = answer_chars
        self._secrets = secrets
        self._warn = warn
        self._clock = clock
        self._seq = self._end = 0
        self._is_ours = descriptor_of(path) is None
        self._file: BinaryIO | None = self._opened()

    def __call__(self, event: Event) -> None:
        """Write an event, unless the stream has ended."""
        if self._file is None:
            return
        self._seq += 1
        at = self._clock().isoformat(timespec="milliseconds").replace("+00:00", "Z")
        fields = self._of_case(event) if isinstance(event, QuestionDone) else plain(event)
        line = {"event": fields.pop("event"), "at": at, "seq": self._seq, **self._secrets.redacted(fields)}
        data = self._start + printable(as_json(line)) + b"\n"
        end = self._end + len(data)
        if self._seq == 1 and self._is_ours:  # not before: until then, it may be another recording's
            with suppress(OSError):  # a pipe has nothing to lose
                self._file.truncate(0)
        try:
            while data:  # a pipe may take only a part, or nothing for now if somebody made it non-blocking
                taken = self._file.write(data)
                if not taken:
                    select.select([], [self._file], [])
                data = data[taken or 0 :]
            self._end = end
        except OSError as error:
            if self._is_ours:
                with suppress(OSError):  # leave no half of an event
                    self._file.truncate(self._end)
            reason = "its reader has left" if isinstance(error, BrokenPipeError) else error.strerror or error
            self._warn(f"{self._path}: the stream of events ends here ({reason}); the recording goes on")
            self.close()

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _opened(self) -> BinaryIO:
        try:
            descriptor = descriptor_of(self._path)
            if descriptor is not None:  # opening it by name would truncate a file that it is redirected to
                return os.fdopen(os.dup(descriptor), "wb", buffering=0)
            Path(self._path).parent.mkdir(parents=True, exist_ok=True)
            return os.fdopen(os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o666), "wb", buffering=0)
        except OSError as error:
            raise OutputError([f"{self._path}: cannot be written ({error.strerror or error})"]) from error

    def _of_case(self, case: QuestionDone) -> dict[str, Any]:
        made = {"event": "case", **_entry(case)}
        response = case.response
        if response is not None and response.results is not None:
            made["documents"] = [_document(result) for result in response.results[: bounds.STREAMED_DOCUMENTS]]
        if response is not None and isinstance(response.response, str) and self._answer_chars > 0:
            made["response"] = shorten(response.response, self._answer_chars)
        if response is not None and response.error is not None:
            made["error"] = shorten(response.error, bounds.FAILURE)
        if case.failure is not None:
            made["failure"] = plain(case.failure)
        return made


def _entry(case: QuestionDone) -> dict[str, Any]:
    """Return what a stream and the details say of every question."""
    times = {"ms": round(case.ms, 3), "attempts": case.attempts}
    return {"query_id": case.query_id, "repeat": case.repeat, "ok": case.ok, **times}


def _document(result: Mapping[str, Any] | str | int) -> Any:
    return result["doc_id"] if isinstance(result, Mapping) else result


class Details:
    """Collects events; after the last one, ``document`` is what `--details` writes."""

    def __init__(
        self,
        target: Target,
        *,
        secrets: Secrets = NO_SECRETS,
        commit: Commit | None = None,
        path: AnchoredPath | None = None,
    ) -> None:
        """Note the time; ``commit`` is the one that is checked out, and ``path`` is written at the end."""
        self._path = path
        self._target = target
        self._secrets = secrets
        self._commit = commit
        self._began = datetime.now(UTC)
        self._start: Start | None = None
        self._end: End | None = None
        self._times = array("d")
        self._counts = Counts(total=0, kept=0, now=0.0)
        self._usage: Counter[str] = Counter()
        self._models: Counter[str] = Counter()
        self._cases = temporary_file()

    def __call__(self, event: Event) -> None:
        self._counts.count(event)
        if isinstance(event, Start):
            self._start = event
        elif isinstance(event, QuestionDone):
            self._case(event)
        elif isinstance(event, End):
            self._end = event
            if self._path is not None:
                write_files({self._path: self.document()})

    def document(self) -> Iterator[bytes]:
        """Yield the document as JSON, part by part; call it after the last question, before the teardown."""
        head = msgspec.json.format(as_json(self._secrets.redacted(plain(self._head()))), indent=2)
        yield printable(head).rstrip().removesuffix(b"}").rstrip() + b',\n  "cases": ['
        self._cases.seek(0)
        first = True
        for line in self._cases:
            yield (b"\n    " if first else b",\n    ") + line.rstrip()
            first = False
        yield b"\n  ]\n}\n"

    def close(self) -> None:
        with suppress(OSError):  # what could not be written to it is not needed any more
            self._cases.close()

    def _case(self, case: QuestionDone) -> None:
        entry = _entry(case)
        if case.response is not None:
            self._times.append(case.ms)
            entry |= self._of_response(case.response)
        try:
            self._cases.write(printable(as_json(self._secrets.redacted(entry))) + b"\n")
        except OSError as error:
            raise unwritable_temporary(error) from error

    def _of_response(self, response: Response) -> dict[str, Any]:
        if response.llm_model is not None:
            self._models[response.llm_model] += 1
        usage = plain(response.usage or {})
        self._usage.update({name: value for name, value in usage.items() if type(value) in {int, float}})
        fields = {"usage": usage or None, "metadata": plain(response.metadata), "error": response.error}
        return {name: value for name, value in fields.items() if value is not None}

    def _head(self) -> dict[str, Any]:
        commit, end, start, counts = self._commit, self._end, self._start, self._counts
        failed = counts.failures.total()
        facts = _reported(self._target.system.facts)
        return {
            "details": 1,
            "tool": {"name": "rag-contract", "version": __version__},
            "began_at": self._began.isoformat(timespec="seconds").replace("+00:00", "Z"),
            "ended_at": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            "target": {"name": self._target.name, "sha256": self._target.sha256},
            "git": {"sha": commit.sha, "dirty": commit.dirty} if commit else None,
            "python": platform.python_version(),
            "packages": facts.pop("packages", None) or packages(),
            "versions": _reported(self._target.system.versions),
            **facts,
            "counts": {
                "wanted": start.total if start else None,
                "kept_from_before": start.kept if start else None,
                "asked": counts.done,
                "failed": failed,
                "with_error": counts.unanswered,
                "needed_more_than_one_attempt": counts.again,
                "attempts_repeated": end.retried if end else None,
            },
            "written": end.written if end else False,
            "failures_by_kind": dict(end.failures) if end else {},
            "latency_ms": latency(self._times),
            "models": dict(self._models.most_common(bounds.NEAR_COMPARED)),
            "usage": dict(self._usage),
            "failures": [
                {"query_id": case.query_id, "repeat": case.repeat, **plain(case.failure)} for case in counts.failed
            ],
            "more_failures": failed - len(counts.failed),
        }


def _reported(ask: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
    """Return what a system reports; nothing if its code fails, of which the recording itself warns."""
    try:
        return dict(ask())
    except (Exception, SystemExit):  # noqa: BLE001 (users' code; the run is written already)
        return {}


def latency(times: "array[float]") -> Mapping[str, float] | None:
    """Return the time of the first question, and percentiles and the maximum of the others; None without responses.

    The first question often pays for what is loaded, so it does not count among the others.
    """
    if not times:
        return None
    rest = sorted(times[1:])
    if not rest:
        return {"first": round(times[0], 3)}
    percentiles = {f"p{percent}": nearest_rank(rest, percent) for percent in (50, 95, 99)} | {"max": rest[-1]}
    return {name: round(value, 3) for name, value in {"first": times[0], **percentiles}.items()}


def packages() -> dict[str, str]:
    """Return the versions of the distributions from which this process has imported modules."""
    known = packages_distributions()
    loaded = {name.partition(".")[0] for name in list(sys.modules)}
    names = sorted({distribution for name in loaded for distribution in known.get(name, ())}, key=str.lower)
    return {name: version(name) for name in names}
