"""A program that is recorded: how it is started, without a shell, and killed with all that it started."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.text import visible


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

    def ready(self) -> Line:
        """Wait until it is ready, and return the line that says so; raises InputError."""
        if self._ready is not None:
            return self._ready
        try:
            found = self._readiness.get(timeout=bounds.READY)
        except queue.Empty:
            self._end("was not ready")
            raise InputError([f"{self._name}: was not ready after {bounds.READY} s{self.last_words}"]) from None
        if isinstance(found, CallFailed):
            raise InputError([f"{self._name}: {found}"])
        self._ready = found
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


def pipe_of(stream: IO[bytes] | None) -> IO[bytes]:
    """Return a stream of a process that was started with pipes; raises TypeError if there is none."""
    if stream is None:
        raise TypeError("the process was started without pipes")
    return stream
