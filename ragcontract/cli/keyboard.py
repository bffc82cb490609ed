"""Keys and lines from a person: single keys on a terminal, lines where standard input is a pipe or a file."""

import sys
from contextlib import suppress
from typing import TextIO

import click

INTERRUPT, END_OF_INPUT, ESCAPE = "\x03", "\x04", "\x1b"


class Keyboard:
    """Reads keys from standard input. Both methods raise EOFError at its end, and KeyboardInterrupt on Ctrl-C."""

    def __init__(self, stdin: TextIO | None) -> None:
        """Read from a stream; None if the shell closed it."""
        self._stdin = stdin
        with suppress(AttributeError):  # replaced by another object
            stdin.reconfigure(errors="replace")  # type: ignore[union-attr]
        self.is_terminal = stdin is not None and stdin.isatty() and stdin is sys.stdin
        self._typed_ahead = ""

    def key(self) -> str:
        """Return the next key in lower case; of a line, its first character, or "" if it is empty."""
        if not self.is_terminal:
            return self._line().strip()[:1].lower()
        if not self._typed_ahead:
            keys = click.getchar()
            if keys.startswith(ESCAPE):  # an arrow or a function key is one key of several characters
                return ESCAPE
            self._typed_ahead = keys
        key, self._typed_ahead = self._typed_ahead[0], self._typed_ahead[1:]
        if key == INTERRUPT:
            raise KeyboardInterrupt
        if key == END_OF_INPUT:
            raise EOFError
        return key.lower()

    def line(self) -> str:
        """Return the next line, without its end."""
        typed, self._typed_ahead = self._typed_ahead, ""
        first, end, rest = typed.replace("\r", "\n").partition("\n")
        if end:
            self._typed_ahead = rest
            return first
        return first + self._line()

    def _line(self) -> str:
        line = self._stdin.readline() if self._stdin is not None else ""
        if not line:
            raise EOFError
        return line.rstrip("\r\n")
