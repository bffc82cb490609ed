"""Writing files: all or none, whole or not at all, and never over an input.

Knows nothing of scores. A file is written beside its place under a temporary name and then renamed, so a reader never
sees half a report and a failure leaves what was there.
"""

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from ragcontract.errors import OutputError


def check_outputs(outputs: Iterable[str], inputs: Iterable[str]) -> list[str]:
    """Return what is wrong with the places to write to, before any work is done."""
    problems = []
    taken = {_identity(Path(path)): "an input" for path in inputs}
    for output in outputs:
        path = Path(output)
        if problem := _not_writable(path):
            problems.append(f"{output}: {problem}")
        elif _is_device(path):
            continue
        elif use := taken.get(_identity(path)):
            problems.append(f"{output}: is {use}; write to another file")
        else:
            taken[_identity(path)] = "another output"
    return problems


def write_files(contents: Mapping[str, bytes]) -> list[Path]:
    """Write all files, or none; returns them. Raises :class:`OutputError`.

    Missing folders are made. Links are followed, devices such as ``/dev/stdout`` written to as they are.
    """
    staged: list[tuple[Path, Path]] = []
    current = ""
    try:
        for current, data in contents.items():
            path = Path(current)
            if _is_device(path):
                path.write_bytes(data)
                continue
            staged.append((_stage(path.resolve(), data), path.resolve()))
        for temporary, path in staged:
            current = str(path)
            temporary.replace(path)
    except OSError as error:
        for temporary, _ in staged:
            with contextlib.suppress(OSError):
                temporary.unlink()
        raise OutputError([f"{current}: cannot be written ({error.strerror or error})"]) from error
    return [path for _, path in staged]


def _stage(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o666 & ~_umask()
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(name).chmod(mode)
    except OSError:
        Path(name).unlink()
        raise
    return Path(name)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _not_writable(path: Path) -> str | None:
    try:
        if path.is_dir():
            return "is a folder; name a file in it"
        if path.exists() and not os.access(path, os.W_OK):
            return "may not be written: permission denied"
        folder = next(parent for parent in path.absolute().parents if parent.exists())
        if not folder.is_dir():
            return f"cannot be written: {folder} is a file"
        if not _is_device(path) and not os.access(folder, os.W_OK | os.X_OK):
            return f"cannot be written: permission denied in {folder}"
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the name
        return f"cannot be written ({getattr(error, 'strerror', None) or error})"
    return None


def _is_device(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()


def _identity(path: Path) -> tuple[int, int] | Path:
    """Tell a file by what it is, so that links and other spellings of its path do not hide it."""
    try:
        found = path.stat()
    except OSError:
        return path.resolve()
    return found.st_dev, found.st_ino
