"""Append-only files of lines: what was answered is on disk as soon as it is known, so that nothing is asked twice.

A journal lies beside the file that is written at the end. A line that a killed process wrote in part does not count.
"""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

from ragcontract.core import bounds
from ragcontract.core.errors import InputError, OutputError
from ragcontract.files.locking import locked, not_ours
from ragcontract.files.writing import temporary_file, unwritable_temporary

SYNC_GAP = 1.0  # s; between two fsyncs


class Lines:
    """The lines of an open file, up to ``end``. Threads share it; close it at the end."""

    def __init__(self, file: IO[bytes], path: os.PathLike[str] | None, *, read_only: bool = False) -> None:
        """Use an open file that nobody else writes; ``path`` is None for a temporary file."""
        self.path = path
        self.end = 0
        self._file = file
        self._read_only = read_only
        self._lock = threading.Lock()
        self._synced = time.monotonic()
        self._unsynced = False

    def following(self) -> Iterator[tuple[int, bytes]]:
        """Yield each whole line from the end on, with its offset; it counts unless ``end`` is set back to that."""
        self._file.seek(self.end)
        while (line := self._file.readline(2 * bounds.LINE)).endswith(b"\n"):
            offset, self.end = self.end, self.end + len(line)
            yield offset, line

    def at(self, offset: int) -> bytes:
        self._file.seek(offset)
        return self._file.readline()

    def cut(self, end: int) -> None:
        """Remove everything from an offset on."""
        self.end = end
        self._file.truncate(end)

    def append(self, line: bytes) -> int:
        """Write a line and return its offset; raises OutputError. It survives if the machine stops a second later."""
        with self._lock:
            offset = self.end
            try:
                self._file.seek(offset)
                self._file.write(line)
                self._file.flush()
            except OSError as error:
                raise self._unwritable(error) from error
            self._unsynced = True
            if time.monotonic() - self._synced > SYNC_GAP:
                self._sync()
            self.end += len(line)
            return offset

    def sync(self) -> None:
        """Flush what is written to the disk; raises OutputError."""
        with self._lock:
            self._sync()

    def _sync(self) -> None:
        if self._unsynced and self.path is not None:
            try:
                os.fsync(self._file.fileno())
            except OSError as error:
                raise self._unwritable(error) from error
        self._unsynced, self._synced = False, time.monotonic()

    def _unwritable(self, error: OSError) -> OutputError:
        if self.path is None:
            return unwritable_temporary(error)
        return OutputError([f"{self.path}: cannot be written ({error.strerror or error})"])

    def close(self, *, remove: bool) -> None:
        """Close the file; delete it with ``remove``."""
        with self._lock:
            with suppress(OSError, OutputError):  # a failure to write was reported when it happened
                self._sync()
                if remove and self.path is not None and not self._read_only:
                    Path(self.path).unlink(missing_ok=True)
            with suppress(OSError):
                self._file.close()


def opened(path: os.PathLike[str], who: str, *, option: str = "") -> Lines:
    """Open or create a journal and lock it; raises InputError if another process has it, or OutputError.

    ``who`` is what writes it, for messages, and ``option`` is the one that names another file, with another journal.
    """
    try:
        file = locked(Path(path))
    except OSError as error:
        raise OutputError([f"{path}: cannot be written ({error.strerror or error})"]) from error
    if file is None:
        otherwise = f", or give another {option}" if option else ""
        raise InputError([f"{path}: another {who} writes it; wait for its end{otherwise}"])
    return Lines(file, path)


def to_read(path: os.PathLike[str]) -> Lines:
    """Open a journal for reading, even while another process writes it; raises InputError if that fails."""
    try:
        if problem := not_ours(Path(path)):
            raise InputError([f"{path}: cannot be read ({problem}; delete it)"])
        return Lines(Path(path).open("rb"), path, read_only=True)
    except OSError as error:
        raise InputError([f"{path}: cannot be read ({error.strerror or error})"]) from error


def temporary() -> Lines:
    """Return a journal in a temporary file."""
    return Lines(temporary_file(), None)
