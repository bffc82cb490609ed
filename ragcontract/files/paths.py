"""Resolves paths and patterns to input files, and keeps paths that a later change of the current folder cannot move."""

import difflib
import glob
import os
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from ragcontract.files.opening import read_problem
from ragcontract.files.problems import Problem


def existing_files(patterns: Sequence[str]) -> tuple[list[str], list[Problem]]:
    """Return the files for paths and globs, in order and without duplicates, and a problem for each that fails.

    An existing path is used literally, even if it contains brackets; the matches of a glob are sorted. Unlike in the
    standard library, ``**`` does not follow links to folders.
    """
    paths: dict[Path, str] = {}
    problems = []
    for pattern in patterns:
        matches = [pattern]
        if glob.has_magic(pattern) and not _exists(pattern):
            matches = sorted(_expand(pattern))
            if not matches:
                problems.append(Problem(pattern, "no file matches this pattern"))
        for path in matches:
            if problem := not_readable(path):
                problems.append(Problem(path or "''", problem))
            else:
                paths.setdefault(Path(path).resolve(), path)
    return list(paths.values()), problems


def not_readable(name: str) -> str | None:
    """Return why a path is not a file, or None if it is one. Permission to read is checked only when it is opened."""
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


class AnchoredPath(os.PathLike[str]):
    """A path that leads where it led when this was made, even after the current folder has changed.

    As text, for messages, it is what a person typed.
    """

    def __init__(self, typed: str | os.PathLike[str]) -> None:
        self._typed = str(typed) if isinstance(typed, AnchoredPath) else os.fspath(typed)
        self._absolute = os.fspath(typed)
        with suppress(FileNotFoundError):  # the current folder was deleted, which an attempt to write reports
            self._absolute = str(Path(typed).absolute())

    def __fspath__(self) -> str:
        """Return the absolute path."""
        return self._absolute

    def __str__(self) -> str:
        """Return what was typed."""
        return self._typed


def _expand(pattern: str) -> list[str]:
    # Not glob.glob, which follows links in `**`. It visits circular links repeatedly, and can leave the workspace.
    path = Path(pattern)
    *above, last = path.relative_to(path.anchor).parts
    folders = [path.anchor]
    for part in above:
        folders = _below(folders) if part == "**" else _matches(folders, part + os.sep)
    return [*filter(None, folders), *_matches(_below(folders), "*")] if last == "**" else _matches(folders, last)


def _matches(folders: Iterable[str], part: str) -> list[str]:
    return [folder + name for folder in folders for name in glob.glob(part, root_dir=folder or None)]  # noqa: PTH207 (Path.glob also matches hidden files)


def _below(folders: Iterable[str]) -> list[str]:
    """Return the folders and all their subfolders, except hidden ones and links."""
    known = dict.fromkeys(folders)
    waiting = list(known)
    while waiting:
        folder = waiting.pop()
        with suppress(OSError), os.scandir(folder or None) as entries:
            for entry in entries:
                name = f"{folder}{entry.name}{os.sep}"
                if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False) and name not in known:
                    known[name] = None
                    waiting.append(name)
    return list(known)


def _exists(name: str) -> bool:
    try:
        return Path(name).exists()
    except (OSError, ValueError):
        return False


def _not_there(path: Path) -> str:
    if path.is_symlink():
        return "is a link to a file that is not there"
    near = nearest_name(path)
    return "no such file" + (f"; did you mean {near}?" if near else "")


def nearest_name(path: Path) -> str | None:
    """Return the path of a file or folder beside a path that is nearly called the same; None if there is none."""
    names: list[str] = []
    with suppress(OSError):
        names = [other.name for other in path.parent.iterdir()]
    close = difflib.get_close_matches(path.name, names, n=1, cutoff=0.8)
    return str(path.parent / close[0]) if close else None
