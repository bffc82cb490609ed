"""Keys and lines from a person, single keys on a terminal and lines elsewhere, and texts for a person on a terminal."""

import os
import select
import sys
import textwrap
import unicodedata
from contextlib import suppress
from typing import Any, Self, TextIO

import click

from ragcontract.core.safe_text import printable, visible

try:
    import termios
    import tty
except ImportError:  # Windows
    termios = tty = None  # type: ignore[assignment]

END_OF_INPUT, ESCAPE = "\x04", "\x1b"
SOON = 0.2  # s; how late a Ctrl-C can be noticed
TYPED_AHEAD = 1024  # bytes that are read at once
NARROWEST, TAB, NARROW, WIDE = 20, 4, 1, 2  # columns


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


def room(text: str, columns: int) -> int:
    """Return how many characters of a text fit on a line; Chinese, Japanese and Korean ones take two columns."""
    is_wide = not text.isascii() and any(unicodedata.east_asian_width(char) in "WF" for char in text)
    return max(columns, NARROWEST) // (WIDE if is_wide else NARROW)


def text_lines(text: str, columns: int, indent: str = "", *, most: int | None = None) -> list[str]:
    """Return a text in lines that fit on a terminal, on which nothing in it acts.

    The text keeps its own lines and their indentation, because code cannot be read without them; blank lines are left
    out. Of more than ``most`` lines, an ellipsis stands for the last ones.
    """
    lines: list[str] = []
    for line in text.split("\n"):
        shown = printable(visible(line.rstrip().expandtabs(TAB)))
        words, width = shown.lstrip(), room(shown, columns)
        margin = indent + " " * min(len(shown) - len(words), (width - len(indent)) // 2)
        lines += textwrap.wrap(words, width, initial_indent=margin, subsequent_indent=margin, break_on_hyphens=False)
    return lines if most is None or len(lines) <= most else [*lines[: most - 1], f"{indent}…"]
