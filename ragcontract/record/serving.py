"""A long-lived process that answers lines with lines, in any order, each with the id of its question.

Never through a shell. A process that does not answer in time is killed with all that it started, and another one takes
its place; after three in a row without an answer, there is no other.
"""

import itertools
import json
import logging
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.numbers import mebibytes
from ragcontract.core.text import printable, shorten, visible
from ragcontract.files.streams import Unfailing
from ragcontract.record.failed import CallFailed

log = logging.getLogger(__name__)
Line = Mapping[str, Any]


class Program(Struct, frozen=True, kw_only=True):
    """A program with its arguments, the folder that it starts in, and what its environment has beside ours."""

    arguments: Sequence[str]
    folder: Path
    environ: Mapping[str, str] = {}

    def start(self, stdin: IO[bytes] | int = subprocess.PIPE) -> subprocess.Popen[bytes]:
        """Start it as the head of a process group; raises InputError if that is not possible."""
        try:
            return subprocess.Popen(  # noqa: S603 (the user's own program, and no shell)
                list(self.arguments),
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self.folder,
                env={**os.environ, **self.environ},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError([f"{self.arguments[0]}: cannot be started ({reason})"]) from error


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process with what it started, unless it has ended: its number may mean another one by now."""
    if process.poll() is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class Serving:
    """Starts the process when it is needed, and again when it was killed or ended."""

    def __init__(self, program: Program, *, says_ready: bool = False) -> None:
        """Store the program; one that ``says_ready`` writes a line ``{"ready": true}`` before it takes questions."""
        self._program = program
        self._says_ready = says_ready
        self._lock = threading.Lock()
        self._process: _Process | None = None
        self._in_a_row = 0
        self._stopped = False
        self._numbers = itertools.count(1)
        self.stray = 0

    def start(self) -> Line:
        """Start the process and wait until it is ready; returns the line that says so. Raises InputError."""
        with self._lock:
            return self._started().ready

    def exchange(self, line: Line, seconds: float) -> Line:
        """Send a line and return the one that answers it; raises CallFailed, also if there is none in time."""
        until = time.monotonic() + seconds
        if not self._lock.acquire(timeout=max(0, min(seconds, threading.TIMEOUT_MAX))):
            raise CallFailed("read_timeout", "the process was not started in time", again=True)
        try:
            process = self._started()
        finally:
            self._lock.release()
        left = until - time.monotonic()
        if left <= 0:  # not a reason to kill the process
            raise CallFailed("read_timeout", "the process was not started in time", again=True)
        answer = process.exchange(next(self._numbers), line, left)
        with self._lock:
            self._in_a_row = 0
        return answer

    def stop(self) -> None:
        """Let the process end by itself for a moment, then kill it; it is not started again."""
        with self._lock:
            self._stopped = True
            if self._process is not None:
                self._process.stop()
                self.stray += self._process.stray
                self._process = None

    def _started(self) -> "_Process":
        if self._stopped:
            raise CallFailed("process_ended", "the process was stopped")
        if self._process is not None and self._process.lives:
            return self._process
        if self._process is not None:
            self.stray += self._process.stray
            self._in_a_row += 1
            if self._in_a_row > bounds.RESTARTS:
                why = f"ended, or was killed, {self._in_a_row} times in a row without an answer"
                raise InputError([f"{self._program.arguments[0]}: {why}{self._process.last_words}"])
        self._process = _Process(self._program, self._says_ready)
        return self._process


class _Process:
    """One process, with a thread for each of its streams, so that none of them can block another."""

    def __init__(self, program: Program, says_ready: bool) -> None:  # noqa: FBT001
        self._name = program.arguments[0]
        self._popen = program.start()
        self._to_write: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._waiting: dict[int, queue.SimpleQueue[Line | CallFailed]] = {}
        self._lock = threading.Lock()
        self._highest = 0
        self._tail: deque[int] = deque(maxlen=bounds.STDERR_TAIL)
        self._ended = ""
        self.stray = 0
        self._readiness: queue.SimpleQueue[Line | CallFailed] = queue.SimpleQueue()
        self._awaits_ready = says_ready
        writes, reads, self._errors = [
            threading.Thread(target=run, name=f"{self._name} {run.__name__}", daemon=True)
            for run in (self._write, self._read, self._read_errors)
        ]
        for thread in (writes, reads, self._errors):
            thread.start()
        self.ready: Line = self._get_ready() if says_ready else {}

    @property
    def lives(self) -> bool:
        """Whether it can be asked."""
        return not self._ended

    @property
    def last_words(self) -> str:
        """The end of what it wrote to standard error, to add to a message."""
        return last_words(bytes(self._tail))

    def exchange(self, number: int, line: Line, seconds: float) -> Line:
        answer: queue.SimpleQueue[Line | CallFailed] = queue.SimpleQueue()
        with self._lock:
            if self._ended:
                raise self._failure(self._ended)
            self._waiting[number] = answer
            self._highest = max(self._highest, number)
        self._to_write.put(json.dumps({"id": number, **line}).encode() + b"\n")
        try:
            found = answer.get(timeout=max(0, min(seconds, threading.TIMEOUT_MAX)))
        except queue.Empty:
            self._end("was killed, because another question was not answered in time")
            raise CallFailed("read_timeout", f"no answer within {seconds:.3g} s{self.last_words}", again=True) from None
        if isinstance(found, CallFailed):
            raise found
        return found

    def stop(self) -> None:
        self._to_write.put(None)
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(bounds.STOPPING)
        self._end("was stopped")

    def _get_ready(self) -> Line:
        try:
            found = self._readiness.get(timeout=bounds.READY)
        except queue.Empty:
            self._end("was not ready")
            raise InputError([f"{self._name}: was not ready after {bounds.READY} s{self.last_words}"]) from None
        if isinstance(found, CallFailed):
            raise InputError([f"{self._name}: {found}"])
        return found

    def _end(self, why: str) -> None:
        """Kill the process if it lives, and fail the questions that it has not answered."""
        with self._lock:
            if self._ended:
                return
            self._ended = why
            waiting, self._waiting = self._waiting, {}
        self._to_write.put(None)
        kill(self._popen)
        for answer in (*waiting.values(), self._readiness):
            answer.put(self._failure(why))

    def _failure(self, why: str) -> CallFailed:
        return CallFailed("process_ended", f"the process {why}{self.last_words}", again=True)

    def _write(self) -> None:
        stdin = _stream(self._popen.stdin)
        with suppress(OSError), stdin:
            while (data := self._to_write.get()) is not None:
                stdin.write(data)
                stdin.flush()

    def _read(self) -> None:
        stdout = _stream(self._popen.stdout)
        with suppress(OSError, ValueError), stdout:
            while line := stdout.readline(bounds.COMMAND_ANSWER + 1):
                if len(line) > bounds.COMMAND_ANSWER:
                    self._end(f"was killed, because it wrote a line of more than {mebibytes(bounds.COMMAND_ANSWER)}")
                    return
                self._take(line)
        if not self._ended:
            code = self._exit_code()
            self._end(f"ended with exit code {code}" if code is not None else "closed its standard output")

    def _exit_code(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            code = self._popen.wait(bounds.STOPPING)
            self._errors.join(bounds.STOPPING)  # so that its last words are read
            return code
        return None

    def _take(self, line: bytes) -> None:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            value = None
        fields = value if isinstance(value, dict) else {}
        if self._awaits_ready and fields.get("ready") is True:
            self._awaits_ready = False
            self._readiness.put(fields)
            return
        number = fields.get("id")
        number = number if type(number) is int else 0
        known = 0 < number <= self._highest
        with self._lock:
            answer = self._waiting.pop(number, None)
        if answer is not None:
            answer.put(fields)
        elif not known:
            self._stray(line)

    def _stray(self, line: bytes) -> None:
        stream = Unfailing(sys.stderr)
        if not self.stray:
            stream.write(f"{self._name}: lines that answer no question are passed on:\n")
        self.stray += 1
        if self.stray <= bounds.STRAY_LINES:
            text = visible(line.decode(errors="replace").rstrip("\r\n"))
            stream.write(printable(shorten(text, bounds.MESSAGE)) + "\n")

    def _read_errors(self) -> None:
        stderr = _stream(self._popen.stderr)
        with suppress(OSError, ValueError), stderr:
            while line := stderr.readline(bounds.STDERR_TAIL):
                self._tail.extend(line)
                log.debug("%s: %s", self._name, line.decode(errors="replace").rstrip())


def last_words(stderr: bytes) -> str:
    """Return the end of what a process wrote to standard error as a clause, to add to a message; empty if nothing."""
    text = visible(stderr[-bounds.STDERR_TAIL :].decode(errors="replace").strip())
    return f"; its last words were: {text}" if text else ""


def _stream(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise TypeError("the process was started without pipes")
    return stream
