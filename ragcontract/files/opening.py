"""Finding, opening and fingerprinting input files."""

import glob
import io
import os
import stat
import zlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from ragcontract.files.hashing import HashingReader
from ragcontract.files.problems import Diagnostics
from ragcontract.model import SourceFile

GZIP_MAGIC = b"\x1f\x8b"
UTF8_BOM = b"\xef\xbb\xbf"
BUFFER = 1 << 20
READ_ERRORS = (OSError, EOFError, zlib.error)

Progress = Callable[[int], object]


def no_progress(_bytes_read: int) -> None:
    """Show nothing: what a pipe gets."""


def resolve(patterns: Sequence[str], diagnostics: Diagnostics) -> list[str]:
    """Turn paths and globs into the paths of existing files, in order, each once.

    A path that exists is taken as it is, even if it has brackets in it; a glob's matches are sorted. ``**`` goes
    through no link to a folder, unlike the standard library's.
    """
    paths: dict[Path, str] = {}
    for pattern in patterns:
        matches = [pattern]
        if glob.has_magic(pattern) and not _exists(pattern):
            matches = sorted(_expand(pattern))
            if not matches:
                diagnostics.problem(pattern, "no file matches this pattern")
        for path in matches:
            if problem := not_readable(path):
                diagnostics.problem(path or "''", problem)
            else:
                paths.setdefault(Path(path).resolve(), path)
    return list(paths.values())


def not_readable(name: str) -> str | None:
    """Say why a path leads to no file; None if it does. Whether it may be read shows when it is opened."""
    path = Path(name)
    if not name:
        return "is an empty path; name a file"
    try:
        if stat.S_ISDIR(path.stat().st_mode):
            kind = "parquet" if name.rstrip(os.sep).endswith(".parquet") else "jsonl"
            return f"is a folder; name the files in it, as in 'folder/*.{kind}'"
    except (FileNotFoundError, NotADirectoryError):
        return _not_there(path)
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the name
        return read_problem(error)
    return None


def read_problem(error: Exception) -> str:
    """Say why opening or reading a file failed."""
    if isinstance(error, OSError) and error.errno is not None:
        return f"cannot be read ({error.strerror or error})"
    if isinstance(error, OSError | EOFError | zlib.error):  # gzip's own OSError has no number
        return f"the gzip data is damaged or cut off ({error})"
    return f"cannot be read ({error})"


def _expand(pattern: str) -> list[str]:
    # Links can lead in circles, which glob.glob's ** goes round in as many ways as there are, and out of the workspace.
    path = Path(pattern)
    *above, last = path.relative_to(path.anchor).parts
    folders = [path.anchor]
    for part in above:
        folders = _below(folders) if part == "**" else _matches(folders, part + os.sep)
    return [*filter(None, folders), *_matches(_below(folders), "*")] if last == "**" else _matches(folders, last)


def _matches(folders: Iterable[str], part: str) -> list[str]:
    return [folder + name for folder in folders for name in glob.glob(part, root_dir=folder or None)]  # noqa: PTH207 (pathlib's finds hidden files)


def _below(folders: Iterable[str]) -> list[str]:
    """Return folders and those in them, however deep, but no hidden ones and no links."""
    found = dict.fromkeys(folders)
    waiting = list(found)
    while waiting:
        folder = waiting.pop()
        with suppress(OSError), os.scandir(folder or None) as entries:
            for entry in entries:
                name = f"{folder}{entry.name}{os.sep}"
                if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False) and name not in found:
                    found[name] = None
                    waiting.append(name)
    return list(found)


def _exists(name: str) -> bool:
    try:
        return Path(name).exists()
    except (OSError, ValueError):
        return False


def _not_there(path: Path) -> str:
    if path.is_symlink():
        return "is a link to a file that is not there"
    near = _nearest_name(path)
    return "no such file" + (f"; did you mean {near}?" if near else "")


def _nearest_name(path: Path) -> str | None:
    import difflib  # only where something is wrong

    names: list[str] = []
    with suppress(OSError):
        names = [other.name for other in path.parent.iterdir()]
    close = difflib.get_close_matches(path.name, names, n=1, cutoff=0.8)
    return str(path.parent / close[0]) if close else None


class InputFile:
    """An open input file: unpacked where it is gzip (its content decides, not its name) and hashed as it is read."""

    def __init__(self, path: str, progress: Progress = no_progress) -> None:
        """Open the file; raises OSError."""
        self.path = path
        self._raw = HashingReader(io.FileIO(path), progress)
        packed = io.BufferedReader(self._raw, BUFFER)
        self.stream: io.BufferedReader[Any] = packed
        if packed.peek(2)[:2] == GZIP_MAGIC:
            from gzip import GzipFile  # only where something is packed

            self.stream = io.BufferedReader(GzipFile(fileobj=packed), BUFFER)

    def source(self) -> SourceFile:
        """Return the path and the digest of the bytes on disk; call it after the file was read to its end."""
        return SourceFile(path=self.path, sha256=self._raw.hexdigest())

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
    with InputFile(path, progress) as file:
        data = file.stream.read(-1 if limit is None else len(UTF8_BOM) + limit + 1)
        return data.removeprefix(UTF8_BOM), file.source()
