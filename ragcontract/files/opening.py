"""Opening, decompressing and hashing of input files."""

import gzip
import hashlib
import io
import zlib
from collections.abc import Callable
from typing import Any, Self

from ragcontract.core.run import SourceFile

GZIP_MAGIC = b"\x1f\x8b"
UTF8_BOM = b"\xef\xbb\xbf"
BUFFER = 1 << 18  # bytes; a block of this size fits into the processor cache
READ_ERRORS = (OSError, EOFError, zlib.error)

Progress = Callable[[int], object]


def no_progress(_bytes_read: int) -> None:
    """Ignore progress, for output that is not a terminal."""


def read_problem(error: Exception) -> str:
    """Return the reason why a file could not be opened or read."""
    if isinstance(error, OSError) and error.errno is not None:
        return f"cannot be read ({error.strerror or error})"
    if isinstance(error, OSError | EOFError | zlib.error):  # gzip's own OSError has no errno
        return f"the gzip data is damaged or cut off ({error})"
    return f"cannot be read ({error})"


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

    def close(self) -> None:
        self._file.close()
        super().close()


class InputFile:
    """An open input file, decompressed if its content (not its name) is gzip, and hashed while it is read."""

    def __init__(self, path: str, progress: Progress = no_progress) -> None:
        """Open the file; raises OSError."""
        self.path = path
        self._raw = _HashingReader(io.FileIO(path), progress)
        packed = io.BufferedReader(self._raw, BUFFER)
        self.stream: io.BufferedReader[Any] = packed
        if packed.peek(2)[:2] == GZIP_MAGIC:
            self.stream = io.BufferedReader(gzip.GzipFile(fileobj=packed), BUFFER)

    def source(self) -> SourceFile:
        """Return the path and the digest of the bytes on disk; call this after reading the file to its end."""
        return SourceFile(path=self.path, sha256=self._raw.digest.hexdigest())

    def __enter__(self) -> Self:
        """Return the open file."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file, whether or not it was read to its end."""
        self.stream.close()
        self._raw.close()


def read_whole(path: str, progress: Progress = no_progress, *, limit: int | None = None) -> tuple[bytes, SourceFile]:
    """Read a whole file without its byte order mark; with a ``limit``, little more than that many bytes.

    Raises one of ``READ_ERRORS``.
    """
    if limit is not None:
        with InputFile(path, progress) as file:
            return file.stream.read(len(UTF8_BOM) + limit + 1).removeprefix(UTF8_BOM), file.source()
    with _HashingReader(io.FileIO(path), progress) as raw:
        data = raw.readall()
        source = SourceFile(path=path, sha256=raw.digest.hexdigest())
    unpacked = gzip.decompress(data) if data.startswith(GZIP_MAGIC) else data
    return unpacked.removeprefix(UTF8_BOM), source
