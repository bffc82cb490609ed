"""Docker actions run as root, the steps after them do not: what we write is handed to the workspace's owner."""

import os
from collections.abc import Iterable
from pathlib import Path


def missing_folders(outputs: Iterable[str]) -> list[Path]:
    """Return the folders that writing ``outputs`` will have to make."""
    parents = {parent for output in outputs for parent in Path(output).resolve().parents}
    return sorted(parent for parent in parents if not parent.exists())


def hand_over(paths: Iterable[Path], workspace: Path) -> None:
    """Give files and folders the owner and group of the workspace; only root can, and only root needs to."""
    if os.geteuid() != 0:
        return
    owner = workspace.stat()
    for path in paths:
        os.chown(path, owner.st_uid, owner.st_gid)
