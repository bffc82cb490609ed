"""The folder that executions run in, and what they print. Everything outside of the workspace has to stay as it is."""

import io
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from msgspec import Struct

MEMORY = Path("/dev/shm")  # where files cost no disk
FOLDERS = ("workspace", "outside", "commands", "temp")
SECRET = "s3cr3t-0f-an0ther-pr0ject"


class Ended(Struct, frozen=True, kw_only=True):
    """How an execution ended: its exit code and what it printed."""

    code: int
    out: str
    err: str


class Sandbox:
    """A workspace with a neighbour that must not be touched. Use it as a context manager; it changes the folder."""

    def __init__(self) -> None:
        """Make the folders."""
        self.home = Path(tempfile.mkdtemp(prefix="fuzz-", dir=MEMORY if os.access(MEMORY, os.W_OK) else None)).resolve()
        for name in FOLDERS:
            (self.home / name).mkdir()
        self.workspace = self.home / "workspace"
        self._secret = self.home / "outside" / "secret"
        self._before = Path.cwd()

    def __enter__(self) -> Self:
        """Enter the workspace."""
        os.chdir(self.workspace)
        return self

    def __exit__(self, *_: object) -> None:
        """Leave and remove it."""
        os.chdir(self._before)
        shutil.rmtree(self.home, ignore_errors=True)

    def fill(self, files: Mapping[str, bytes]) -> None:
        """Replace all that is in the workspace by these files."""
        for folder in (self.workspace, self.home / "commands", self.home / "temp"):
            empty(folder)
        self._secret.write_text(SECRET)
        for name, data in files.items():
            path = self.workspace / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def escaped(self) -> str | None:
        """Return what was changed outside of the workspace, or None."""
        if self._secret.read_text() != SECRET or _names(self._secret.parent) != {"secret"}:
            return "the neighbour was changed"
        if strange := _names(self.home) - set(FOLDERS):
            return f"beside the workspace there is {sorted(strange)}"
        return None

    def remove(self) -> None:
        """Remove the folders, from any process."""
        shutil.rmtree(self.home, ignore_errors=True)


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def empty(folder: Path) -> None:
    """Remove all that is in a folder."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


@contextmanager
def captured() -> Iterator[Callable[[], tuple[str, str]]]:
    """Replace standard output and error by streams that encode as a process's do; yields what returns their text."""
    before = sys.stdout, sys.stderr
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in before]
    sys.stdout, sys.stderr = streams

    def texts() -> tuple[str, str]:
        for stream in streams:
            stream.flush()
        out, err = (stream.buffer.getvalue().decode() for stream in streams)
        return out, err

    try:
        yield texts
    finally:
        sys.stdout, sys.stderr = before
