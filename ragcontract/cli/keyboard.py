"""Keys and lines from a person: single keys on a terminal, lines where standard input is a pipe or a file."""

import os
import select
import sys
from contextlib import suppress
from typing import Any, Self, TextIO

import click

try:
    import termios
    import tty
except ImportError:  # Windows
    termios = tty = None  # type: ignore[assignment]

END_OF_INPUT, ESCAPE = "\x04", "\x1b"
SOON = 0.2  # s; how late a Ctrl-C can be noticed
TYPED_AHEAD = 1024  # bytes that are read at once


class Keyboard:
    """Reads keys from standard input. Both methods raise EOFError at its end, and KeyboardInterrupt on Ctrl-C.

    Within a ``with`` block, the terminal hands over each key at once and shows none. click.getchar() switches this on
    and off with every key, and drops what is typed in between.
    """

    def __init__(self, stdin: TextIO | None) -> None:
        self._stdin = stdin  # None if the shell closed it
        with suppress(AttributeError):  # replaced by another object
            stdin.reconfigure(errors="replace")  # type: ignore[union-attr]
        self.is_terminal = stdin is not None and stdin is sys.stdin and stdin.isatty()
        self._descriptor = stdin.fileno() if stdin is not None and self.is_terminal else None
        self._before: list[Any] = []
        self._typed = ""

    def __enter__(self) -> Self:
        """Set up the terminal before anything is asked, and remember how it was."""
        if termios and self._descriptor is not None:
            self._before = termios.tcgetattr(self._descriptor)
            tty.setcbreak(self._descriptor, termios.TCSADRAIN)
        return self

    def __exit__(self, *_: object) -> None:
        """Restore the terminal."""
        self._show_lines()

    def key(self) -> str:
        """Return the next key in lower case or, without a terminal, the first character of the next line, or ""."""
        if not self.is_terminal:
            return self._line().strip()[:1].lower()
        if not self._typed:
            keys = self._keys()
            if keys.startswith(ESCAPE):  # an arrow or a function key is one key of several characters
                return ESCAPE
            self._typed = keys
        key, self._typed = self._typed[0], self._typed[1:]
        if key == END_OF_INPUT:
            raise EOFError
        return key.lower()

    def _keys(self) -> str:
        if not self._before or self._descriptor is None:
            return click.getchar()
        # Before every key: after Ctrl-Z and `fg`, the terminal may be as the shell wants it.
        tty.setcbreak(self._descriptor, termios.TCSADRAIN)
        self._wait()
        try:
            keys = os.read(self._descriptor, TYPED_AHEAD)
        except OSError as error:  # the terminal was closed
            raise EOFError from error
        if not keys:
            raise EOFError
        return keys.decode(errors="replace")

    def line(self) -> str:
        self._show_lines()
        typed, self._typed = self._typed, ""
        first, end, rest = typed.replace("\r", "\n").partition("\n")
        if end:
            self._typed = rest
            return first
        return first + self._line()

    def _show_lines(self) -> None:
        if self._before and self._descriptor is not None:
            with suppress(termios.error):  # the terminal was closed
                termios.tcsetattr(self._descriptor, termios.TCSADRAIN, self._before)

    def _wait(self) -> None:
        """Wait for input. A Ctrl-C just before a read that blocks would be noticed only after the next key."""
        if termios and self._descriptor is not None:
            while not select.select([self._descriptor], [], [], SOON)[0]:
                pass

    def _line(self) -> str:
        self._wait()
        line = self._stdin.readline() if self._stdin is not None else ""
        if not line:
            raise EOFError
        return line.rstrip("\r\n")
