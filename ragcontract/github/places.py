"""Paths in a container: the workspace has another name there, and nothing outside of it is ours."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from ragcontract.github.context import Context


def in_container(path: str, context: Context) -> str:
    """Map a path of the machine, as ``${{ github.workspace }}/run.jsonl`` gives it, to the container's.

    The runner does so itself for an input that is one path, not for the later lines of one that has several.
    """
    host = context.host_workspace
    if host and (path == host or path.startswith(f"{host}/")):
        return str(context.workspace) + path[len(host) :]
    return path


def outside(paths: Iterable[str], context: Context) -> list[str]:
    """Return a problem for every path that leads, links followed, out of the workspace and the temporary folder."""
    allowed = [folder.resolve() for folder in (context.workspace, context.temporary) if folder is not None]
    return [
        f"{path}: leads out of the workspace; the action reads and writes nothing outside of it"
        for path in paths
        if not any(Path(os.path.realpath(path)).is_relative_to(folder) for folder in allowed)
    ]


def wrong_folder(folder: str, context: Context) -> str | None:
    """Say what is wrong with the input working-directory; None if it can be worked in."""
    if problems := outside([folder], context):
        return f"input working-directory: {problems[0]}"
    if folder and not os.path.isdir(folder):  # noqa: PTH112 (pathlib's raises where a name is too long)
        return f"input working-directory: {folder!r} is no folder in the workspace"
    return None


def for_next_step(path: str, context: Context) -> str:
    """Return a path as the next step can use it: relative to the workspace, since /github/workspace is not there."""
    full = Path(os.path.normpath(Path.cwd() / path))
    for workspace in (context.workspace, context.workspace.resolve()):
        if full.is_relative_to(workspace):
            return str(full.relative_to(workspace))
    return str(full)


def missing_folders(outputs: Iterable[str]) -> list[Path]:
    """Return the folders that writing ``outputs`` will have to make."""
    parents = {parent for output in outputs for parent in Path(output).resolve().parents}
    return sorted(parent for parent in parents if not parent.exists())


def hand_over(paths: Iterable[Path], workspace: Path) -> None:
    """Give files and folders the owner and group of the workspace: docker actions are root, later steps are not."""
    if os.geteuid() != 0:
        return
    with suppress(OSError):  # a mount that knows no owners; the files are there all the same
        owner = workspace.stat()
        for path in paths:
            os.chown(path, owner.st_uid, owner.st_gid)
