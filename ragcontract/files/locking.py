"""Files that one process at a time writes."""

import errno
import os
import stat
from pathlib import Path
from typing import IO


def locked(path: Path) -> IO[bytes] | None:
    """Open or create a file to read and write that no other process has locked; None if one has. Raises OSError.

    The lock is gone when the file is closed. Missing folders are created. A link is refused, and so is a file that has
    a second name: nobody names these files, so one that is there may be of somebody who wants what it leads to
    overwritten. A pipe is refused, too: reading it could block.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        file = _opened(path)
        if not _lock(file):
            file.close()
            return None
        if path.exists() and path.stat().st_ino == os.fstat(file.fileno()).st_ino:
            return file
        file.close()  # the other process ended in the meantime, and deleted it


def _opened(path: Path) -> IO[bytes]:
    if problem := not_ours(path):  # said plainly; where the system can, opening it refuses links, too
        raise OSError(errno.ELOOP, f"{problem}; delete it")
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666), "r+b")


def not_ours(path: Path) -> str | None:
    """Return why what is at a path that nobody names is not a file that we made there; None also if nothing is."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(found.st_mode):
        return "it is a link"
    if stat.S_ISREG(found.st_mode):
        return "it has a second name, a hard link" if found.st_nlink > 1 else None
    return None if stat.S_ISDIR(found.st_mode) else "it is not a regular file"


def _lock(file: IO[bytes]) -> bool:
    try:
        from fcntl import LOCK_EX, LOCK_NB, flock
    except ImportError:  # Windows
        return True
    try:
        flock(file, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        return False
    return True
