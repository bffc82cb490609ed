"""Locks and turns for files that several processes write, so that nothing is lost.

A process locks a file, or waits for its turn to write in a folder. The lock is gone with the process that has it,
however the process ends. Our commands write in turns. Other programs ignore turns, so directly before a file is
replaced, it is compared with the content that was read.
"""

import errno
import hashlib
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO

from ragcontract.core import bounds
from ragcontract.core.errors import OutputError
from ragcontract.files.writing import PART, Content, is_device, write_files

PAUSE = 0.02  # s
LOCKS = Path("/proc/locks")  # on Linux


@contextmanager
def turn(path: Path) -> Iterator[None]:
    """Wait for the turn to write in the folder of a file, and keep it until the block ends.

    Raises OutputError if another process does not end its turn. The folder itself is locked, so no file is left over.
    Where that is not possible (on Windows, and on some network file systems), nobody waits.
    """
    try:
        folder = os.open(path.parent, os.O_RDONLY)
    except OSError:  # Windows; or the folder does not exist yet, which is reported when the file is written
        yield
        return
    try:
        end = time.monotonic() + bounds.TURN
        while not _lock(folder, where_possible=True):
            if time.monotonic() > end:
                holder = _holder(folder)
                why = f"{holder} has been writing in this folder for {bounds.TURN:,} s"
                raise OutputError([f"{path}: cannot be written now: {why}; end it, or try again later"])
            time.sleep(PAUSE)
        yield
    finally:
        os.close(folder)


def _holder(folder: int) -> str:
    """Name the process that has the lock of a folder, if the system shows it."""
    try:
        locks = [line.split() for line in LOCKS.read_text().splitlines()]
    except OSError:
        locks = []
    inode = f":{os.fstat(folder).st_ino}"
    numbers = (lock[4] for lock in locks if len(lock) > 5 and lock[1] == "FLOCK" and lock[5].endswith(inode))  # noqa: PLR2004
    number = next(numbers, "")
    return f"the process {number}" if number else "another process"


def locked(path: Path) -> IO[bytes] | None:
    """Open or create a file, lock it and return it; return None if another process has locked it. Raises OSError.

    The lock is gone when the file is closed. Missing folders are created. A link is refused, and so is a file that has
    a second name. Nobody names these files, so somebody may have put a link there to have its target overwritten. A
    pipe is refused because reading it could block.
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
    if problem := not_ours(path):  # for a clear message; where the system can, opening refuses links, too
        raise OSError(errno.ELOOP, f"{problem}; delete it")
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666), "r+b")


def not_ours(path: Path) -> str | None:
    """Return why a path that nobody names does not have a file that we made; None if it does, or has nothing."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(status.st_mode):
        return "it is a link"
    if stat.S_ISREG(status.st_mode):
        return "it has a second name, a hard link" if status.st_nlink > 1 else None
    return None if stat.S_ISDIR(status.st_mode) else "it is not a regular file"


def _lock(file: IO[bytes] | int, *, where_possible: bool = False) -> bool:
    try:
        from fcntl import LOCK_EX, LOCK_NB, flock
    except ImportError:  # Windows
        return True
    try:
        flock(file, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        if not where_possible:
            raise
    return True


Digest = bytes


def digest_of(data: bytes) -> Digest:
    """Return the digest of a file's content."""
    return hashlib.blake2b(data).digest()


def file_digest(path: str) -> Digest:
    """Return the digest of a file. A missing file counts as empty. Raises OutputError."""
    digest = hashlib.blake2b()
    if not is_device(path):
        try:
            with Path(path).open("rb") as file:
                while part := file.read(PART):
                    digest.update(part)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise OutputError([f"{path}: cannot be read ({error.strerror or error})"]) from error
    return digest.digest()


@contextmanager
def in_turn(path: str) -> Iterator[None]:
    """Keep our other commands from writing a file until the block ends; raises OutputError if one of them hangs."""
    if is_device(path):
        yield
        return
    with turn(Path(path).resolve()):
        yield


def require_unchanged(path: str, read: Digest) -> None:
    """Raise OutputError if a file has changed since it was ``read``."""
    if file_digest(path) != read:
        changed = "was changed by another program since it was read, so it is not overwritten"
        raise OutputError([f"{path}: {changed}; run the command again to go on from what is in it"])


def rewrite(path: str, content: Content, read: Digest) -> None:
    """Replace a file in turn, whole or not at all; raises OutputError if it has changed since it was ``read``."""
    with in_turn(path):
        write_files({path: content}, before=partial(require_unchanged, path, read))
