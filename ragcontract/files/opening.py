"""Opening, unpacking and fingerprinting input files."""

import gzip
import hashlib
import io
import zlib
from collections.abc import Callable
from typing import Any, Self

from ragcontract.core.run import SourceFile

GZIP_MAGIC = b"\x1f\x8b"
UTF8_BOM = b"\xef\xbb\xbf"
BUFFER = 1 << 18  # bytes: a block that stays in a processor's cache
READ_ERRORS = (OSError, EOFError, zlib.error)

Progress = Callable[[int], object]


def no_progress(_bytes_read: int) -> None:
    """Show nothing: what a pipe gets."""


def read_problem(error: Exception) -> str:
    """Say why opening or reading a file failed."""
    if isinstance(error, OSError) and error.errno is not None:
        return f"cannot be read ({error.strerror or error})"
    if isinstance(error, OSError | EOFError | zlib.error):  # gzip's own OSError has no number
        return f"the gzip data is damaged or cut off ({error})"
    return f"cannot be read ({error})"


class _HashingReader(io.RawIOBase):
    """Passes a raw file through, hashing and counting each block: one read gives the rows and the digest."""

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
        data = self._file.readall() or b""  # at once: the inherited method asks for 8 KiB at a time
        self.digest.update(data)
        self._progress(len(data))
        return data

    def close(self) -> None:
        self._file.close()
        super().close()


class InputFile:
    """An open input file: unpacked where it is gzip (its content decides, not its name) and hashed as it is read."""

    def __init__(self, path: str, progress: Progress = no_progress) -> None:
        """Open the file; raises OSError."""
        self.path = path
        self._raw = _HashingReader(io.FileIO(path), progress)
        packed = io.BufferedReader(self._raw, BUFFER)
        self.stream: io.BufferedReader[Any] = packed
        if packed.peek(2)[:2] == GZIP_MAGIC:
            self.stream = io.BufferedReader(gzip.GzipFile(fileobj=packed), BUFFER)

    def source(self) -> SourceFile:
        """Return the path and the digest of the bytes on disk; call it after the file was read to its end."""
        return SourceFile(path=self.path, sha256=self._raw.digest.hexdigest())

    def __enter__(self) -> Self:
        """Return the open file."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file; reading may have stopped anywhere."""
        self.stream.close()
        self._raw.close()


def read_whole(path: str, progress: Progress = no_progress, *, limit: int | None = None) -> tuple[bytes, SourceFile]:
    """Read a file, its byte order mark taken off; of one larger than ``limit`` a little more than that.

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
