"""Maps paths between the runner, the container and the repository."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec.structs import replace

from ragcontract.github.access import outside
from ragcontract.github.context import Context


def in_container(path: str, context: Context) -> str:
    """Map a path on the runner, such as ``${{ github.workspace }}/run.jsonl``, to the path in the container.

    The runner does this itself for an input with a single path, but not for further lines of an input.
    """
    host = context.host_workspace
    if host and (path == host or path.startswith(f"{host}/")):
        return str(context.workspace) + path[len(host) :]
    return path


def for_next_step(path: str, context: Context) -> str:
    """Return a path relative to the workspace: in other steps, the container's /github/workspace does not exist."""
    full = Path(os.path.normpath(Path.cwd() / path))
    for workspace in (context.workspace, context.workspace.resolve()):
        if full.is_relative_to(workspace):
            return str(full.relative_to(workspace))
    return str(full)


def in_repository(path: str, context: Context) -> str:
    """Return a path, optionally with a line (``golden.jsonl:17``), relative to its repository, as annotations need it.

    The repository may be checked out into a subfolder of the workspace. Without one, it is relative to the workspace.
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
    """Give files written in this context the owner of the workspace: docker actions run as root, later steps do not.

    Folders created on the way get the same owner, even if writing fails.
    """
    files = [Path(output).resolve() for output in outputs]
    made = sorted({folder for file in files for folder in file.parents if not folder.exists()})
    try:
        yield
    finally:
        if os.geteuid() == 0:
            _hand_over([*made, *files], context.workspace)


def _hand_over(paths: Iterable[Path], workspace: Path) -> None:
    with suppress(OSError):  # the workspace does not exist any more
        owner = workspace.stat()
        for path in paths:
            with suppress(OSError):  # not written, or on a file system without owners
                os.chown(path, owner.st_uid, owner.st_gid)
