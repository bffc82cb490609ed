"""Runs rag-contract as users do: by its arguments, in a folder, watching its exit code and what it prints."""

import contextlib
import io
import os
import pty
import select
import shutil
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from ragcontract.cli.main import main
from ragcontract.guard import guarded
from tests import forking
from tests.forking import plain_environ

COMMAND = (sys.executable, "-m", "ragcontract")
NOBODY = 65534

# Started by root, it gives up root's rights once all modules are loaded: the interpreter may be out of nobody's reach.
_AS_NOBODY = f"""
import difflib, encodings.ascii, gzip, json, os, platform, resource, sys, traceback, yaml
import ragcontract.cli.main, ragcontract.report.junit
for command in ragcontract.cli.main.COMMANDS:
    __import__("ragcontract.cli.commands." + command)
if os.getuid() == 0:
    os.setgroups([]), os.setgid({NOBODY}), os.setuid({NOBODY})
"""


class Ended(NamedTuple):
    """How a process ended, and what it printed."""

    code: int
    out: str
    err: str


def rag_contract(*argv: str) -> Ended:
    """Run a command in this process and folder."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = guarded(lambda: main(argv), err)
    return Ended(code, out.getvalue(), err.getvalue())


def spawn(
    *argv: str,
    cwd: Path,
    command: Sequence[str] = COMMAND,
    environ: Mapping[str, str] | None = None,
    stdin: str | None = None,
    before: str = "",
) -> Ended:
    """Run a command as a process of its own; ``environ`` is added to this process's environment.

    ``before`` is code that runs in the process before rag-contract does.
    """
    whole = plain_environ() | dict(environ or {})
    if command is COMMAND and forking.can_run(whole):
        return Ended(*forking.run(before + forking.ENTRY_POINT, argv, cwd=cwd, environ=whole, stdin=stdin))
    if before:
        command = (sys.executable, "-c", before + forking.ENTRY_POINT)
    done = subprocess.run(
        [*command, *argv],
        cwd=cwd,
        env=whole,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def spawn_as_nobody(*argv: str, cwd: Path) -> Ended:
    """Run a command without root's rights, to whom no permission is denied."""
    return spawn(*argv, cwd=cwd, before=_AS_NOBODY)


@contextlib.contextmanager
def folder_of_nobody() -> Iterator[Path]:
    """Make a folder that nobody can reach, which is not so for pytest's."""
    folder = Path(tempfile.mkdtemp()).resolve()
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def hand_to_nobody(folder: Path) -> None:
    """Make nobody the owner of a folder and all that is in it, where root runs the tests."""
    if os.getuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, NOBODY, NOBODY)


def shell(script: str, *, cwd: Path) -> Ended:
    """Run a bash script in which ``rag-contract`` is the command under test."""
    function = f'rag-contract() {{ "{sys.executable}" -m ragcontract "$@"; }}\n'
    done = subprocess.run(
        ["bash", "-c", function + script],
        check=False,
        cwd=cwd,
        env=plain_environ(),
        capture_output=True,
        text=True,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def on_a_terminal(*argv: str, cwd: Path, environ: Mapping[str, str] | None = None) -> Ended:
    """Run a command whose output goes to a terminal: all of it is in ``out``."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *argv],
        cwd=cwd,
        env=plain_environ() | {"TERM": "xterm"} | dict(environ or {}),
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError), os.fdopen(ours, "rb", buffering=0) as terminal:  # EIO: the other end is closed
        while chunk := terminal.read(65536):
            shown += chunk
    return Ended(process.wait(), shown.decode(), "")


# A process without a terminal makes the first one that it opens its own: from then on, Ctrl-C there is its signal.
# Tests that run in the background have signals ignored, which a person's shell does not hand on to a command.
_AT_A_TERMINAL = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
os.close(os.open(sys.argv.pop(1), os.O_RDWR))
from ragcontract.guard import entry_point
entry_point()
"""
PATIENCE = 30  # s; a process that prints nothing for so long hangs


class AtATerminal:
    """A command with a person at its terminal: what it shows is read, and keys are typed. Use it with ``with``."""

    def __init__(self, *argv: str, cwd: Path, columns: int = 80, lines: int = 24) -> None:
        """Start the command."""
        self._ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (lines, columns))
        self._process = subprocess.Popen(
            [sys.executable, "-c", _AT_A_TERMINAL, os.ttyname(theirs), *argv],
            cwd=cwd,
            env={name: value for name, value in plain_environ().items() if name not in {"COLUMNS", "LINES"}}
            | {"TERM": "xterm"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self.shown = ""
        self._read = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._ours)

    def expect(self, text: str) -> None:
        """Read until a text is shown that was not waited for before."""
        while (at := self.shown.find(text, self._read)) < 0:
            assert self._more(), f"{text!r} is not shown, but {self.shown!r}"
        self._read = at + len(text)

    def type(self, keys: str) -> None:
        """Press keys; ``\\x03`` is Ctrl-C, ``\\x04`` Ctrl-D."""
        os.write(self._ours, keys.encode())

    def end(self) -> int:
        """Read what is left, and return the exit code."""
        while self._more():
            pass
        return self._process.wait()

    def settings(self) -> list[Any]:
        """Return how the terminal is set: whether it shows keys, and hands over lines."""
        return termios.tcgetattr(self._ours)

    def interrupt(self, number: int) -> None:
        """Send the process a signal."""
        self._process.send_signal(number)

    def _more(self) -> bool:
        ready, _, _ = select.select([self._ours], [], [], PATIENCE)
        assert ready, f"it hangs after {self.shown!r}"
        try:
            chunk = os.read(self._ours, 65536)
        except OSError:  # EIO: the other end is closed
            return False
        self.shown += chunk.decode(errors="replace")
        return bool(chunk)


def files_in(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder with its bytes, to tell whether anything was touched, lost or left over."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
