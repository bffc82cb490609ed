"""Disks that are nearly full: one in memory, where root may mount it, and a limit on the size of files."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.process import Ended, spawn

SIZE = 256 << 10  # bytes
PAGE = 4 << 10  # bytes; what such a disk gives a file at once

# What a command calls that wants a larger file: an error, as on a full disk, and not the signal.
_LIMITED = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))
"""


@contextmanager
def small_disk(folder: Path, size: int = SIZE) -> Iterator[bool]:
    """Mount a disk of 256 KiB, or another size, at a folder; false, and nothing, where that is not permitted."""
    folder.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    try:
        mounted = os.getuid() == 0 and subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def room_left(folder: Path, room: int) -> Iterator[None]:
    """Fill the disk that a folder is on, up to some bytes."""
    found = os.statvfs(folder)
    filler = folder / "filler"
    filler.write_bytes(b"x" * max(0, found.f_bavail * found.f_frsize - room))
    try:
        yield
    finally:
        filler.unlink()


def with_files_up_to(size: int, *argv: str, cwd: Path, environ: Mapping[str, str], stdin: str | None = None) -> Ended:
    """Run a command that cannot make a file larger than a size."""
    return spawn(*argv, cwd=cwd, before=_LIMITED.format(size=size), environ=environ, stdin=stdin)
