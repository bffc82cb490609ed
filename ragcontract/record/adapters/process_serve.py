"""Exchange lines with a long-lived process, which answers in any order, each line with the id of its question.

A process that does not answer in time is killed with all processes that it started, and is started again. After three
starts in a row without an answer, it is not started again. Python code that is isolated runs in such a process.
"""

import itertools
import json
import logging
import queue
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.numbers import mebibytes
from ragcontract.core.safe_text import printable, shorten, visible
from ragcontract.files.streams import Unfailing
from ragcontract.net.secrets import NO_SECRETS, Secrets
from ragcontract.record.adapters.framework import redacting
from ragcontract.record.adapters.program import Program, kill, last_words, pipe_of, question, response_in
from ragcontract.record.interface import CallFailed, Context, Response, Surroundings, System
from ragcontract.record.returned.result_forms import DocumentIds
from ragcontract.record.returned.returned_messages import decoded_json
from ragcontract.record.sources import Source

log = logging.getLogger(__name__)
Line = Mapping[str, Any]


class ServedProcess:
    """Starts the process when it is needed, and again when it was killed or ended."""

    def __init__(self, program: Program, *, says_ready: bool = False, secrets: Secrets = NO_SECRETS) -> None:
        """Store the program; if it ``says_ready``, it writes a line ``{"ready": true}`` before it takes questions.

        ``secrets`` are taken out of the lines that are passed on, but not out of failures, which quote the program.
        """
        self._program = program
        self._secrets = secrets
        self._says_ready = says_ready
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
            return self._started().ready()

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
        self._process.ready()
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
        self._highest = 0
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
            self._highest = max(self._highest, number)
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

    def ready(self) -> Line:
        """Wait until it is ready, and return the line that says so; raises InputError."""
        if self._ready is not None:
            return self._ready
        try:
            line = self._readiness.get(timeout=bounds.READY)
        except queue.Empty:
            self._end("was not ready")
            raise InputError([f"{self._name}: was not ready after {bounds.READY} s{self.last_words}"]) from None
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


DESCRIBING = 30  # s; how long the process may take to report its versions


class IsolatedCode(System):
    """A system whose Python code runs in :mod:`ragcontract.record.adapters.isolated_child`."""

    def __init__(self, named: str, surroundings: Surroundings) -> None:
        options = {"folder": str(surroundings.folder.resolve()), "doc_id": surroundings.doc_id}
        arguments = [
            sys.executable,
            "-m",
            "ragcontract.record.adapters.isolated_child",
            named,
            json.dumps(options),
        ]
        program = Program(arguments=arguments, folder=Path.cwd())
        self._serving = ServedProcess(program, says_ready=True, secrets=surroundings.secrets)
        self._ids = DocumentIds(None)  # the process has found the ids already
        self._secrets = surroundings.secrets
        self._sources = surroundings.sources
        self._is_set_up = False

    def setup(self) -> None:
        with redacting(self._secrets):
            if isinstance(problems := self._serving.start().get("unusable"), list):
                self._serving.stop()
                raise InputError([str(problem) for problem in problems])
        self._is_set_up = True

    def ask(self, query: str, context: Context) -> Response:
        with redacting(self._secrets):
            return response_in(self._exchange(question(query, context), context.seconds), self._ids)

    def versions(self) -> Mapping[str, str]:
        versions: dict[str, str] = self._description.get("versions", {})
        return versions

    def facts(self) -> Mapping[str, Any]:
        return {**self._description.get("facts", {}), "stray_lines": self._serving.stray}

    def teardown(self) -> None:
        self._serving.stop()

    def _exchange(self, line: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """Send a line and return its answer, without the modules that the process has imported since the last one."""
        answer = {**self._serving.exchange(line, seconds)}
        imported = msgspec.convert(answer.pop("sources", []), list[Source])
        if self._sources is not None:
            self._sources.add(imported)
        return answer

    @cached_property
    def _description(self) -> Mapping[str, Any]:
        if not self._is_set_up:  # somebody interrupted the setup, and must not wait until the imports end
            return {}
        try:
            return self._exchange({"describe": True}, DESCRIBING)
        except (CallFailed, InputError):
            return {}
