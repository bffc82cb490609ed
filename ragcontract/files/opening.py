"""Opening, decompressing and hashing of input files."""

import gzip
import hashlib
import io
import os
import stat
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Self

from ragcontract.core import bounds
from ragcontract.core.numbers import mebibytes
from ragcontract.core.run import SourceFile

GZIP_MAGIC = b"\x1f\x8b"
UTF8_BOM = b"\xef\xbb\xbf"
BUFFER = 1 << 18  # bytes; a block of this size fits into the processor cache
READ_ERRORS = (OSError, EOFError, zlib.error)
Progress = Callable[[int], object]
# A file may become a link or a pipe after it was looked at. Windows has neither flag, and opens no pipe by a path.
_REGULAR = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def no_progress(_bytes_read: int) -> None:
    """Do nothing; for output that is not a terminal."""


class InputFile:
    """An open input file, decompressed if its content (not its name) is gzip, and hashed while it is read.

    Opening it raises OSError. ``longest`` is the most bytes that one line, or the whole file if it is read at once, may
    have in memory; None if only the reader sets a limit. A small gzip file can unpack to a thousand times its size.
    """

    def __init__(self, path: str, progress: Progress = no_progress) -> None:
        self.path = path
        self.longest: int | None = None
        file = io.FileIO(path)
        self._raw = _HashingReader(file, progress)
        packed = io.BufferedReader(self._raw, BUFFER)
        self.stream: io.BufferedReader[Any] = packed
        if packed.peek(2)[:2] == GZIP_MAGIC:
            size = os.fstat(file.fileno()).st_size  # 0 for a pipe, in which only the fixed limits hold
            self.longest = max(bounds.UNPACKED, bounds.UNPACKED_RATIO * size)
            total = max(bounds.UNPACKED_TOTAL, bounds.UNPACKED_TOTAL_RATIO * size)
            self.stream = io.BufferedReader(_Unpacker(packed, total), BUFFER)

    def source(self) -> SourceFile:
        """Return the path and the digest of the bytes on disk; call this after reading the file to its end."""
        return SourceFile(path=self.path, sha256=self._raw.digest.hexdigest())

    @property
    def position(self) -> int:
        """The number of bytes that were read from the disk."""
        return self._raw.position

    def __enter__(self) -> Self:
        """Return the open file."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file, whether or not it was read to its end."""
        self.stream.close()
        self._raw.close()


def read_whole(path: str, progress: Progress = no_progress) -> tuple[bytes, SourceFile]:
    """Read a whole file without its byte order mark.

    Raises one of ``READ_ERRORS``, among them TooLargeError if a gzip file unpacks to far more than its size.
    """
    with InputFile(path, progress) as file:
        if file.longest is None:
            data = file.stream.read()
        elif len(data := file.stream.read(file.longest + 1)) > file.longest:
            raise TooLargeError(too_large(file.longest))
        return data.removeprefix(UTF8_BOM), file.source()


def read_within(
    limit: int, path: str, progress: Progress = no_progress, *, beyond: str = ""
) -> tuple[bytes, SourceFile]:
    """Read a file of at most ``limit`` bytes without its byte order mark; of a larger one, little more is read.

    Raises one of ``READ_ERRORS``, among them TooLargeError for a larger file; ``beyond`` ends its message.
    """
    with InputFile(path, progress) as file:
        data = file.stream.read(len(UTF8_BOM) + limit + 1).removeprefix(UTF8_BOM)
        if len(data) > limit:
            raise TooLargeError(f"is larger than {mebibytes(limit)}{beyond}")
        return data, file.source()


def read_regular(path: Path, limit: int) -> bytes | None:
    """Read at most ``limit`` + 1 bytes of a file as it is on disk; None if it is a link, a pipe or anything else.

    Raises OSError if there is no such file, or if it cannot be read.
    """
    if not stat.S_ISREG(path.lstat().st_mode):
        return None
    with open(os.open(path, _REGULAR), "rb") as stream:  # noqa: PTH123 (it has flags)
        status = os.fstat(stream.fileno())
        # Reading takes as much memory as is asked for, so little is asked for of a small file.
        return stream.read(min(status.st_size, limit) + 1) if stat.S_ISREG(status.st_mode) else None


def unpacked_size(path: str) -> int:
    """Return how many bytes a file has once it is unpacked, without holding them.

    Raises one of ``READ_ERRORS``, among them TooLargeError if a gzip file unpacks to far more than its size.
    """
    with InputFile(path) as file:
        if file.longest is None:
            return Path(path).stat().st_size
        return sum(map(len, iter(partial(file.stream.read, BUFFER), b"")))


def read_problem(error: Exception) -> str:
    """Return the reason why a file could not be opened or read."""
    if isinstance(error, TooLargeError):
        return str(error)
    if isinstance(error, OSError) and error.errno is not None:
        return f"cannot be read ({error.strerror or error})"
    if isinstance(error, OSError | EOFError | zlib.error):  # gzip's own OSError has no errno
        return f"the gzip data is damaged or cut off ({error})"
    return f"cannot be read ({error})"


class TooLargeError(OSError):
    """A file is too large, or unpacks to too much, so that reading on could exhaust memory or take hours."""


def too_large(most: int) -> str:
    """Return the message about a gzip file of which the whole or a line unpacks to more than ``most`` bytes."""
    return f"unpacks to more than {mebibytes(most)}, which is too much for a gzip file of its size; give it unpacked"


class _HashingReader(io.RawIOBase):
    """Reads a raw file while hashing and counting its bytes, so that one pass gives the rows and the digest."""

    def __init__(self, raw: io.FileIO, progress: Progress) -> None:
        self._file = raw
        self._progress = progress
        self.digest = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        count = self._file.readinto(buffer) or 0
        self.digest.update(memoryview(buffer)[:count])
        self._progress(count)
        return count

    def readall(self) -> bytes:
        data = self._file.readall() or b""  # in one read; the inherited method reads 8 KiB at a time
        self.digest.update(data)
        self._progress(len(data))
        return data

    @property
    def position(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        self._file.close()
        super().close()


class _Unpacker(io.RawIOBase):
    """Decompresses gzip; raises TooLargeError beyond ``most`` bytes."""

    def __init__(self, packed: "io.BufferedReader[Any]", most: int) -> None:
        self._file = gzip.GzipFile(fileobj=packed)
        self._most = most
        self._unpacked = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        count = self._file.readinto(buffer)
        self._unpacked += count
        if self._unpacked > self._most:
            raise TooLargeError(too_large(self._most))
        return count
