"""Start and kill programs, without a shell, and exchange lines with those that are long-lived.

A line is JSON: a question, or its answer. Answers come in any order, each with the id of its question.

A process that does not answer in time is killed with all processes that it started, and is started again. After three
starts in a row without an answer, it is not started again.
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

import msgspec
from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.numbers import mebibytes
from ragcontract.core.safe_text import printable, shorten, visible
from ragcontract.files.json_lines import has_more_text
from ragcontract.files.streams import Unfailing
from ragcontract.net.secrets import NO_SECRETS, Secrets
from ragcontract.record.interface import CallFailed, Context, Response
from ragcontract.record.returned.response_forms import response_of
from ragcontract.record.returned.result_forms import DocumentIds
from ragcontract.record.returned.returned_messages import decoded_json, plain

log = logging.getLogger(__name__)
Line = Mapping[str, Any]


class Program(Struct, frozen=True, kw_only=True):
    """A program and how it is started."""

    arguments: Sequence[str]  # the first is the program
    folder: Path  # that it starts in
    environ: Mapping[str, str] = {}  # the variables that it has beside those that it inherits
    inherited: Mapping[str, str] | None = None  # None for ours

    def start(self, stdin: IO[bytes] | int = subprocess.PIPE) -> subprocess.Popen[bytes]:
        """Start the program as the head of a process group; raises InputError if that fails."""
        try:
            return subprocess.Popen(  # noqa: S603 (the user's own program, and no shell)
                list(self.arguments),
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self.folder,
                env={**(os.environ if self.inherited is None else self.inherited), **self.environ},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError([f"{self.arguments[0]}: cannot be started ({reason})"]) from error


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process with all that it started, unless it has ended: another process may have its number by now."""
    if process.poll() is None:
        with suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":  # which has no groups of processes
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def last_words(stderr: bytes) -> str:
    """Return the end of a process's standard error as a clause for a message; empty if it wrote nothing."""
    text = visible(stderr[-bounds.STDERR_TAIL :].decode(errors="replace").strip())
    return f"; its last words were: {text}" if text else ""


def pipe_of(stream: IO[bytes] | None) -> IO[bytes]:
    """Return a stream of a process that was started with pipes; raises TypeError if there is none."""
    if stream is None:
        raise TypeError("the process was started without pipes")
    return stream


def question(query: str, context: Context) -> dict[str, Any]:
    """Return the line for a question: its text and its context."""
    fields = {name: plain(context[name]) for name in context}
    return {"query": query, **fields, "seconds": context.seconds if context.seconds < bounds.MILLISECONDS else None}


def question_of(line: Line) -> tuple[str, Context]:
    """Return the question and the context in a line."""
    fields = {name: line[name] for name in Context.__struct_fields__ if line.get(name) is not None}
    if "messages" in fields:
        fields["messages"] = tuple(fields["messages"])
    return str(line["query"]), Context(**fields)


def answer(response: Response) -> dict[str, Any]:
    """Return the line for a response, without absent fields; raises CallFailed if it is too long."""
    fields = msgspec.structs.asdict(response)
    if has_more_text(fields, bounds.COMMAND_ANSWER):
        raise CallFailed("too_large", f"the answer is longer than {mebibytes(bounds.COMMAND_ANSWER)}")
    return {
        name: plain(value)
        for name, value in fields.items()
        if value is not msgspec.UNSET and (value is not None or name == "response")
    }


def failure(failed: CallFailed) -> dict[str, Any]:
    """Return the line for a failed attempt."""
    fields = {
        "kind": failed.kind,
        "message": str(failed),
        "again": failed.again,
        "pause": failed.pause,
        "detail": plain(failed.detail),
    }
    return {"failed": {name: value for name, value in fields.items() if value is not None}}


def response_in(line: Any, ids: DocumentIds) -> Response:
    """Return the response for an answer, which may be anything that a function may return, as JSON.

    Raises CallFailed for ``{"failed": {"message": …, "kind": …, "again": true}}``, also with true or a text in it, and
    for an ``{"error": …}`` alone, and InputError for ``{"unusable": […]}``.
    """
    fields = line if isinstance(line, dict) else {}
    if isinstance(problems := fields.get("unusable"), list):
        raise InputError([str(problem) for problem in problems])
    failed = fields.get("failed")
    if failed is True or (isinstance(failed, str) and failed):
        failed = {"message": failed if isinstance(failed, str) else None}
    if isinstance(failed, dict):
        pause, detail = failed.get("pause"), failed.get("detail")
        raise CallFailed(
            str(failed.get("kind") or "error"),
            shorten(str(failed.get("message") or "it says that it failed"), bounds.FAILURE),
            again=failed.get("again") is True,
            pause=pause if isinstance(pause, int | float) else None,
            detail=detail if isinstance(detail, dict) else None,
        )
    content = {name: value for name, value in fields.items() if name != "id"} if "id" in fields else line
    if isinstance(content, dict) and set(content) == {"error"} and content["error"]:
        raise CallFailed("error", shorten(str(content["error"]), bounds.FAILURE))
    return response_of(content, ids)


class ServedProcess:
    """Starts the process when it is needed, and again when it was killed or ended."""

    def __init__(
        self,
        program: Program,
        *,
        says_ready: bool = False,
        secrets: Secrets = NO_SECRETS,
        ready_seconds: float | None = None,
    ) -> None:
        """Store the program; if it ``says_ready``, it writes a line ``{"ready": true}`` before it takes questions.

        It is killed if it does not do so within ``ready_seconds``; None for ``bounds.READY``.
        ``secrets`` are taken out of the lines that are passed on, but not out of failures, which quote the program.
        """
        self._program = program
        self._secrets = secrets
        self._says_ready = says_ready
        self._ready_seconds = bounds.READY if ready_seconds is None else ready_seconds
        self._lock = threading.Lock()
        self._process: _Process | None = None
        self._in_a_row = 0
        self._stopped = threading.Event()
        self._numbers = itertools.count(1)
        self._stray = 0

    @property
    def stray(self) -> int:
        """How many lines were not answers."""
        return self._stray + (self._process.stray if self._process else 0)

    def start(self) -> Line:
        """Start the process, wait until it is ready, and return the line that says so; raises InputError."""
        with self._lock:
            return self._started().ready(self._ready_seconds)

    def exchange(self, line: Line, seconds: float) -> Line:
        """Send a line and return its answer; raises CallFailed, also if there is no answer in time."""
        until = time.monotonic() + seconds
        if not self._lock.acquire(timeout=max(0, min(seconds, threading.TIMEOUT_MAX))):
            raise CallFailed("read_timeout", f"the process was not started within {seconds:.3g} s", again=True)
        try:
            process = self._started()
        finally:
            self._lock.release()
        left = until - time.monotonic()
        if left <= 0:  # not a reason to kill the process
            raise CallFailed("read_timeout", f"the process was not started within {seconds:.3g} s", again=True)
        try:
            answer = process.exchange(next(self._numbers), line, left)
        except CallFailed:
            if not process.lives:  # start another one while the loop pauses before the next attempt
                threading.Thread(target=self._start_again, daemon=True).start()
            raise
        self._in_a_row = 0
        return answer

    def stop(self) -> None:
        """Let the process end by itself for a moment, then kill it; it is not started again."""
        self._stopped.set()  # without the lock, which is held while a process gets ready
        if self._process is not None:
            self._process.stop()
        with self._lock:  # a process that was being started
            if self._process is not None:
                self._process.stop()

    def _start_again(self) -> None:
        with suppress(CallFailed, InputError), self._lock:  # the next question reports the failure
            self._started()

    def _started(self) -> "_Process":
        if self._stopped.is_set():
            raise CallFailed("process_ended", "the process was stopped")
        if self._process is not None and self._process.lives:
            return self._process
        if self._process is not None:
            if self._in_a_row == bounds.RESTARTS:
                why = f"ended, or was killed, {self._in_a_row + 1} times in a row without an answer"
                raise InputError([f"{self._program.arguments[0]}: {why}{self._process.last_words}"])
            self._in_a_row += 1
            self._stray += self._process.stray
        self._process = _Process(self._program, says_ready=self._says_ready, secrets=self._secrets)
        if self._stopped.is_set():  # while it was being started, so that ``stop`` did not know of it
            self._process.stop()
        self._process.ready(self._ready_seconds)
        return self._process


class _Process:
    """One process, with a thread for each of its streams, so that none of them can block another."""

    def __init__(self, program: Program, *, says_ready: bool, secrets: Secrets) -> None:
        self._secrets = secrets
        self._name = program.arguments[0]
        self._popen = program.start()
        self._to_write: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._waiting: dict[int, queue.SimpleQueue[Line | CallFailed]] = {}
        self._lock = threading.Lock()
        self._tail: deque[int] = deque(maxlen=bounds.STDERR_TAIL)
        self._ended = ""
        self.stray = 0
        self._readiness: queue.SimpleQueue[Line | CallFailed] = queue.SimpleQueue()
        self._awaits_ready = says_ready
        self._ready: Line | None = None if says_ready else {}
        writes, reads, self._errors = [
            threading.Thread(target=run, name=f"{self._name} {run.__name__}", daemon=True)
            for run in (self._write, self._read, self._read_errors)
        ]
        for thread in (self._errors, writes, reads):  # the reader waits for the errors of a process that ends at once
            thread.start()

    @property
    def lives(self) -> bool:
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
        self._to_write.put(json.dumps({"id": number, **line}).encode() + b"\n")
        try:
            reply = answer.get(timeout=max(0, min(seconds, threading.TIMEOUT_MAX)))
        except queue.Empty:
            self._end("was killed, because another question was not answered in time")
            raise CallFailed("read_timeout", f"no answer within {seconds:.3g} s{self.last_words}", again=True) from None
        if isinstance(reply, CallFailed):
            raise reply
        return reply

    def stop(self) -> None:
        self._to_write.put(None)
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(bounds.STOPPING)
        self._end("was stopped")

    def ready(self, seconds: float) -> Line:
        """Wait until it is ready, and return the line that says so; raises InputError."""
        if self._ready is not None:
            return self._ready
        try:
            line = self._readiness.get(timeout=seconds)
        except queue.Empty:
            self._end("was not ready")
            raise InputError([f"{self._name}: was not ready after {seconds:.3g} s{self.last_words}"]) from None
        if isinstance(line, CallFailed):
            raise InputError([f"{self._name}: {line}"])
        self._ready = line
        return line

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
        stdin = pipe_of(self._popen.stdin)
        with suppress(OSError), stdin:
            while (data := self._to_write.get()) is not None:
                stdin.write(data)
                stdin.flush()

    def _read(self) -> None:
        stdout = pipe_of(self._popen.stdout)
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
        fields = _fields(line)
        if self._awaits_ready and fields.get("ready") is True:
            self._awaits_ready = False
            self._readiness.put(fields)
            return
        number = fields.get("id")
        number = number if type(number) is int else 0
        with self._lock:
            answer = self._waiting.pop(number, None)
        if answer is not None:
            answer.put(fields)
        else:
            self._stray(line)

    def _stray(self, line: bytes) -> None:
        stream = Unfailing(sys.stderr)
        if not self.stray:
            stream.write(f"{self._name}: lines that answer no question, or one again, are passed on:\n")
        self.stray += 1
        if self.stray <= bounds.STRAY_LINES:
            text = visible(self._secrets.redacted(line.decode(errors="replace").rstrip("\r\n")))
            stream.write(printable(shorten(text, bounds.MESSAGE)) + "\n")

    def _read_errors(self) -> None:
        stderr = pipe_of(self._popen.stderr)
        with suppress(OSError, ValueError), stderr:
            while line := stderr.readline(bounds.STDERR_TAIL):
                self._tail.extend(line)
                log.debug("%s: %s", self._name, self._secrets.redacted(line.decode(errors="replace").rstrip()))


def _fields(line: bytes) -> dict[str, Any]:
    """Return the object in a line. If a key is in it twice, return its id and an error; for other lines, nothing."""
    try:
        value = decoded_json(line)
    except CallFailed as failure:
        value = json.loads(line)
        value = {"id": value.get("id"), "error": str(failure)} if isinstance(value, dict) else None
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {}
