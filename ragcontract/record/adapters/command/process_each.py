"""Runs a program once for each question: it reads the question and writes the answer, within a time and a size."""

import os
import selectors
import subprocess
import time
from collections import deque
from contextlib import ExitStack, suppress
from typing import IO

from ragcontract.core import bounds
from ragcontract.core.numbers import mebibytes
from ragcontract.files.temporary import temporary_file, unwritable_temporary
from ragcontract.record.adapters.command.program import Program, kill, last_words
from ragcontract.record.interface import CallFailed

PART = 1 << 16  # bytes that are read at once
GLANCE = 0.05  # s; how often a program is looked at that ended while something that it started holds its output


class Programs:
    """The programs that run, so that all of them can be stopped."""

    def __init__(self) -> None:
        """Start without any."""
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def output(self, program: Program, given: bytes, seconds: float) -> bytes:
        """Return what a program writes to standard output for what it is given on standard input.

        Raises CallFailed if it ends with another exit code than 0, takes too long or writes too much, InputError if it
        cannot be started. What it wrote to standard error is in the message.
        """
        until = time.monotonic() + seconds
        with ExitStack() as stack:
            stdin = stack.enter_context(_to_read(given))  # unlike a pipe, it needs nobody who writes to it
            process = program.start(stdin)
            self._running.add(process)
            stack.callback(self._running.discard, process)
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stack.callback(stream.close)
            stack.callback(kill, process)
            if self._stopped:  # while it was started
                raise CallFailed("process_ended", "the process was stopped")
            return _output(process, until, seconds)

    def stop(self) -> None:
        """Kill all that run, and those that are just being started."""
        self._stopped = True
        for process in list(self._running):
            kill(process)


def _to_read(data: bytes) -> IO[bytes]:
    """Return a temporary file with data; raises OutputError."""
    file = temporary_file()
    try:
        file.write(data)
        file.seek(0)
    except OSError as error:
        with suppress(OSError):
            file.close()
        raise unwritable_temporary(error) from error
    return file


def _output(process: subprocess.Popen[bytes], until: float, seconds: float) -> bytes:
    output = bytearray()
    tail: deque[int] = deque(maxlen=bounds.STDERR_TAIL)
    with selectors.DefaultSelector() as selector:
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                os.set_blocking(stream.fileno(), False)
                selector.register(stream, selectors.EVENT_READ)
        while selector.get_map():
            left = until - time.monotonic()
            if left <= 0:
                raise CallFailed(
                    "read_timeout", f"no answer within {seconds:.3g} s{last_words(bytes(tail))}", again=True
                )
            ended = process.poll() is not None  # before looking for output: what it wrote is there then
            ready = selector.select(min(left, GLANCE))
            for key, _ in ready:
                part = _part(key.fd)
                if not part:
                    selector.unregister(key.fileobj)
                elif key.fileobj is process.stdout:
                    output += part
                else:
                    tail.extend(part)
            if len(output) > bounds.COMMAND_ANSWER:
                raise CallFailed("too_large", f"wrote more than {mebibytes(bounds.COMMAND_ANSWER)} for one question")
            if ended and not ready:
                break
    return _ended(process, bytes(output), bytes(tail), max(0, until - time.monotonic()))


def _part(descriptor: int) -> bytes:
    with suppress(BlockingIOError):
        return os.read(descriptor, PART)
    return b""


def _ended(process: subprocess.Popen[bytes], output: bytes, tail: bytes, left: float) -> bytes:
    words = last_words(tail)
    try:
        code = process.wait(left)
    except subprocess.TimeoutExpired:
        raise CallFailed("read_timeout", f"did not end after its answer{words}", again=True) from None
    if code:
        raise CallFailed("exit_code", f"ended with exit code {code}{words}", detail={"exit_code": code})
    return output
