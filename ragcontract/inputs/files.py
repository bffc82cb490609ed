"""Finding, opening and fingerprinting input files."""

import glob
import gzip
import hashlib
import io
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

from ragcontract.inputs.diagnostics import Diagnostics

GZIP_MAGIC = b"\x1f\x8b"
BUFFER = 1 << 20

Progress = Callable[[int], object]


def no_progress(_bytes_read: int) -> None:
    """Show nothing: what a pipe gets."""


def resolve(patterns: Sequence[str], diagnostics: Diagnostics) -> list[str]:
    """Turn paths and globs into the paths of existing files, in order, each once.

    A path that exists is taken as it is, even if it has brackets in it; a glob's matches are sorted.
    """
    paths: dict[Path, str] = {}
    for pattern in patterns:
        matches = [pattern]
        if not Path(pattern).exists() and glob.has_magic(pattern):
            matches = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 (pathlib has none for absolute patterns)
            if not matches:
                diagnostics.problem(pattern, "no file matches this pattern")
        for path in matches:
            if problem := _not_readable(Path(path)):
                diagnostics.problem(path, problem)
            else:
                paths.setdefault(Path(path).resolve(), path)
    return list(paths.values())


def _not_readable(path: Path) -> str | None:
    try:
        if path.is_dir():
            return "is a folder; name the files in it, as in 'folder/*.jsonl'"
        if not path.exists():
            near = _nearest_name(path)
            return "no such file" + (f"; did you mean {near}?" if near else "")
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the name
        return _reason(error)
    return None if os.access(path, os.R_OK) else "may not be read: permission denied"


def _nearest_name(path: Path) -> str | None:
    import difflib  # only where something is wrong

    names = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
    close = difflib.get_close_matches(path.name, names, n=1, cutoff=0.8)
    return str(path.parent / close[0]) if close else None


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


class InputFile:
    """An open input file: unpacked where it is gzip (its content decides, not its name) and hashed as it is read."""

    def __init__(self, path: str, progress: Progress = no_progress) -> None:
        """Open the file; raises OSError."""
        self.path = path
        self._raw = _HashingReader(io.FileIO(path), progress)
        packed = io.BufferedReader(self._raw, BUFFER)
        is_gzip = packed.peek(2)[:2] == GZIP_MAGIC
        self.stream: BinaryIO = io.BufferedReader(gzip.GzipFile(fileobj=packed), BUFFER) if is_gzip else packed

    def sha256(self) -> str:
        """Return the digest of the bytes on disk; call it after the file was read to its end."""
        return self._raw.digest.hexdigest()

    def close(self) -> None:
        """Close the file; reading may have stopped anywhere."""
        self.stream.close()
        self._raw.close()


class _HashingReader(io.RawIOBase):
    """Passes a raw file through, hashing and counting each buffer: one read of the file serves both ends."""

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

    def close(self) -> None:
        self._file.close()
        super().close()
