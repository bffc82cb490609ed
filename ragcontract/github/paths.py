"""Paths in a container: the workspace has another name there, and nothing outside of it is ours."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec.structs import replace

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
        return f"input working-directory: {folder!r} is not a folder in the workspace"
    return None


def for_next_step(path: str, context: Context) -> str:
    """Return a path as the next step can use it: relative to the workspace, since /github/workspace is not there."""
    full = Path(os.path.normpath(Path.cwd() / path))
    for workspace in (context.workspace, context.workspace.resolve()):
        if full.is_relative_to(workspace):
            return str(full.relative_to(workspace))
    return str(full)


def in_repository(path: str, context: Context) -> str:
    """Return a path, which may end with a line (``golden.jsonl:17``), relative to its repository: an annotation's.

    The repository may be checked out into a folder of the workspace. Where there is none, it is as for the next step.
    """
    location = Path(for_next_step(path, context))
    workspace_only = replace(context, temporary=None)
    for folder in location.parents:
        above = context.workspace / folder
        if not outside([str(above)], workspace_only) and os.path.lexists(above / ".git"):
            return str(location.relative_to(folder))
    return str(location)


@contextmanager
def owned_like_workspace(outputs: Iterable[str], context: Context) -> Iterator[None]:
    """Give what is written inside the owner and group of the workspace: docker actions are root, later steps are not.

    Where writing fails, the folders that were made have them too.
    """
    files = [Path(output).resolve() for output in outputs]
    made = sorted({folder for file in files for folder in file.parents if not folder.exists()})
    try:
        yield
    finally:
        if os.geteuid() == 0:
            _hand_over([*made, *files], context.workspace)


def _hand_over(paths: Iterable[Path], workspace: Path) -> None:
    with suppress(OSError):  # a workspace that is gone has no owner
        owner = workspace.stat()
        for path in paths:
            with suppress(OSError):  # not made, or on a mount that knows no owners
                os.chown(path, owner.st_uid, owner.st_gid)
