"""Writes what happens to a file as it happens, for dashboards and for people who wait: an event a line.

A full disk or a pipe whose reader has left ends the stream, and not the recording.
"""

import os
import select
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Literal

from ragcontract.core import bounds
from ragcontract.core.errors import OutputError
from ragcontract.core.text import shorten
from ragcontract.files.anchored_path import AnchoredPath
from ragcontract.files.writing import check_outputs, descriptor_of
from ragcontract.http.secrets import NO_SECRETS, Secrets
from ragcontract.record.returned.plain_values import as_json, plain, printable
from ragcontract.record.watching.recording_events import Case, Event

Format = Literal["jsonl", "json-seq"]
RECORD_SEPARATOR = b"\x1e"  # RFC 7464: before each text, so that one that was cut off spoils no other


def _now() -> datetime:
    return datetime.now(UTC)


class EventStream:
    """A file of events; each has ``event``, ``at`` (UTC) and ``seq``, which counts from 1."""

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

        The answers in it are cut at ``answer_chars`` characters, and left out with 0. ``warn`` is called once if the
        stream ends early.
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
        fields = self._of_case(event) if isinstance(event, Case) else plain(event)
        line = {"event": fields.pop("event"), "at": at, "seq": self._seq, **self._secrets.redacted(fields)}
        data = self._start + printable(as_json(line)) + b"\n"
        end = self._end + len(data)
        if self._seq == 1 and self._is_ours:  # only now: until a recording has begun, the file may be another one's
            with suppress(OSError):  # a pipe has nothing to lose
                self._file.truncate(0)
        try:
            while data:  # a pipe may take a part, or nothing now if somebody made it so that it does not block
                taken = self._file.write(data)
                if not taken:
                    select.select([], [self._file], [])
                data = data[taken or 0 :]
            self._end = end
        except OSError as error:
            if self._is_ours:
                with suppress(OSError):  # no half of an event
                    self._file.truncate(self._end)
            reason = "its reader has left" if isinstance(error, BrokenPipeError) else error.strerror or error
            self._warn(f"{self._path}: the stream of events ends here ({reason}); the recording goes on")
            self.close()

    def close(self) -> None:
        """End the stream."""
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

    def _of_case(self, case: Case) -> dict[str, Any]:
        made: dict[str, Any] = {
            "event": "case",
            "query_id": case.query_id,
            "repeat": case.repeat,
            "ok": case.ok,
            "ms": round(case.ms, 3),
            "attempts": case.attempts,
        }
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


def _document(result: Mapping[str, Any] | str | int) -> Any:
    return result["doc_id"] if isinstance(result, Mapping) else result
