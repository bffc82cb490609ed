"""Restricts which files the action reads and writes: a pull request controls the workspace, including its links."""

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from ragcontract.github.context import Context

GIT = ".git"


def outside(paths: Iterable[str], context: Context) -> list[str]:
    """Return a problem for every path that leads, with links resolved, out of the workspace.

    A path in the runner's temporary folder is allowed only if it is written as such: a link must not lead there.
    """
    return [
        f"{path}: leads out of the workspace; the action reads and writes nothing outside of it"
        for path in paths
        if not any(Path(os.path.realpath(path)).is_relative_to(folder) for folder in _allowed(path, context))
    ]


def _allowed(path: str, context: Context) -> list[Path]:
    folders = [context.workspace]
    if context.temporary is not None and Path(os.path.normpath(Path.cwd() / path)).is_relative_to(context.temporary):
        folders.append(context.temporary)
    return [folder.resolve() for folder in folders]


def is_linked(path: str, context: Context) -> bool:
    """Return whether the path is a symbolic link, or leads through one, below the workspace or the temporary folder."""
    return any(map(os.path.islink, _steps(path, context)))  # Path.is_symlink raises if a name is too long


def _steps(path: str, context: Context) -> list[Path]:
    """Return the path and the folders on the way to it, as it is written, but for the workspace and what is above."""
    full = Path.cwd() / path
    tops = {top for folder in (context.workspace, context.temporary) if folder for top in (folder, folder.resolve())}
    return [step for step in (full, *full.parents) if not any(top.is_relative_to(step) for top in tops)]


def _is_in_git(path: str, context: Context) -> bool:
    return any(step.name.lower() == GIT for step in _steps(path, context))


def is_special(path: str) -> bool:
    """Return whether there is something at a path that is neither a file nor a folder; reading it could block."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 (Path.stat raises if a name has a NUL)
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def unsafe_output(path: str, context: Context) -> str | None:
    """Return why the action must not write to a path in the workspace, or None."""
    if is_linked(path, context):
        return f"{path}: is a symbolic link, or behind one; the action writes through none, so name another file"
    if _is_in_git(path, context):
        return f"{path}: is in {GIT}; name a file outside of it"
    if is_special(path):
        return f"{path}: is not a regular file; name another file"
    return None


def can_be_replaced(path: str, context: Context) -> bool:
    """Return whether there is a link, a pipe or the like at a path in the workspace, in whose stead a file may be put.

    What leads there must not be a link, and not be in ``.git``.
    """
    if not _is_in_the_way(path):
        return False
    folder = os.path.dirname(path) or "."  # noqa: PTH120 (Path would remove a final `..`)
    return not (outside([folder], context) or is_linked(folder, context) or _is_in_git(path, context))


def _is_in_the_way(path: str) -> bool:
    return os.path.islink(path) or is_special(path)  # noqa: PTH114 (see is_linked)


def make_room(path: str) -> None:
    """Remove a link, a pipe or the like, but no file and no folder."""
    if _is_in_the_way(path):
        os.unlink(path)  # noqa: PTH108 (see above)


def wrong_folder(folder: str, context: Context) -> str | None:
    """Return the problem with the input working-directory, or None."""
    if problems := outside([folder], context):
        return f"input working-directory: {problems[0]}"
    if folder and not os.path.isdir(folder):  # noqa: PTH112 (pathlib raises if a name is too long)
        return f"input working-directory: {folder!r} is not a folder in the workspace"
    return None
