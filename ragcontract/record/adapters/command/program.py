"""A program that is recorded: how it is started, without a shell, and killed with all that it started."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.text import visible


class Program(Struct, frozen=True, kw_only=True):
    """A program with its arguments, the folder that it starts in, and what its environment has beside ours."""

    arguments: Sequence[str]
    folder: Path
    environ: Mapping[str, str] = {}

    def start(self, stdin: IO[bytes] | int = subprocess.PIPE) -> subprocess.Popen[bytes]:
        """Start it as the head of a process group; raises InputError if that is not possible."""
        try:
            return subprocess.Popen(  # noqa: S603 (the user's own program, and no shell)
                list(self.arguments),
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self.folder,
                env={**os.environ, **self.environ},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError([f"{self.arguments[0]}: cannot be started ({reason})"]) from error


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process with what it started, unless it has ended: its number may mean another one by now."""
    if process.poll() is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def last_words(stderr: bytes) -> str:
    """Return the end of what a process wrote to standard error as a clause, to add to a message; empty if nothing."""
    text = visible(stderr[-bounds.STDERR_TAIL :].decode(errors="replace").strip())
    return f"; its last words were: {text}" if text else ""


def pipe_of(stream: IO[bytes] | None) -> IO[bytes]:
    """Return a stream of a process that was started with pipes; raises TypeError if there is none."""
    if stream is None:
        raise TypeError("the process was started without pipes")
    return stream
