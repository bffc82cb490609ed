"""A long-lived process that answers lines with lines, in any order, each with the id of its question.

A process that does not answer in time is killed with all that it started, and another one takes
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
from ragcontract.record.program import Program, kill, last_words, pipe_of

log = logging.getLogger(__name__)
Line = Mapping[str, Any]


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
        self._stray = 0

    @property
    def stray(self) -> int:
        """How many lines were no answers."""
        return self._stray + (self._process.stray if self._process else 0)

    def start(self) -> Line:
        """Start the process and wait until it is ready; returns the line that says so. Raises InputError."""
        with self._lock:
            return self._started().ready()

    def exchange(self, line: Line, seconds: float) -> Line:
        """Send a line and return the one that answers it; raises CallFailed, also if there is none in time."""
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
            if not process.lives:  # get another one going while the loop pauses before the next attempt
                threading.Thread(target=self._start_again, daemon=True).start()
            raise
        self._in_a_row = 0
        return answer

    def stop(self) -> None:
        """Let the process end by itself for a moment, then kill it; it is not started again."""
        self._stopped = True  # without the lock, which whoever waits for the process to be ready has
        if self._process is not None:
            self._process.stop()
        with self._lock:  # one that was just being started
            if self._process is not None:
                self._process.stop()

    def _start_again(self) -> None:
        with suppress(CallFailed, InputError), self._lock:  # the next question finds out, too
            self._started()

    def _started(self) -> "_Process":
        if self._stopped:
            raise CallFailed("process_ended", "the process was stopped")
        if self._process is not None and self._process.lives:
            return self._process
        if self._process is not None:
            if self._in_a_row == bounds.RESTARTS:
                why = f"ended, or was killed, {self._in_a_row + 1} times in a row without an answer"
                raise InputError([f"{self._program.arguments[0]}: {why}{self._process.last_words}"])
            self._in_a_row += 1
            self._stray += self._process.stray
        self._process = _Process(self._program, says_ready=self._says_ready)
        self._process.ready()
        return self._process


class _Process:
    """One process, with a thread for each of its streams, so that none of them can block another."""

    def __init__(self, program: Program, *, says_ready: bool) -> None:
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
        for thread in (writes, reads, self._errors):
            thread.start()

    @property
    def lives(self) -> bool:
        """Whether it can be asked."""
        return not self._ended

    @property
