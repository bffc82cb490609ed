"""Standard output and standard error, which may be closed, full or a broken pipe, and the log for maintainers."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Protocol, TextIO

from ragcontract.core.safe_text import printable, visible


class Writable(Protocol):
    """A stream of text, of which only this is used."""

    def write(self, text: str, /) -> object:
        """Write the text."""


class Unfailing:
    """A stream whose reader may leave and whose disk may be full: what cannot be written is dropped."""

    def __init__(self, stream: Writable | None) -> None:
        """Wrap a stream; None if the shell closed it."""
        self._stream = stream

    def write(self, text: str) -> None:
        """Write and flush, or drop the text."""
        with suppress(OSError, ValueError, AttributeError), reader_may_leave(self._stream):  # ValueError: it is closed
            self._stream.write(text)  # type: ignore[union-attr]
            self._stream.flush()  # type: ignore[union-attr]


@contextmanager
def reader_may_leave(stream: object) -> Iterator[None]:
    """Ignore a closed pipe (``| head``); other errors, such as a full disk, are raised.

    In both cases the rest of the stream's buffer is discarded: otherwise Python would fail on it again at exit and
    change every exit code to 120.
    """
    try:
        yield
    except BrokenPipeError:
        _discard(stream)
    except OSError:
        _discard(stream)
        raise


def _discard(stream: object) -> None:
    with suppress(OSError, AttributeError):  # no descriptor: closed by the shell, or replaced by another object
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, stream.fileno())  # type: ignore[attr-defined]
        finally:
            os.close(nowhere)


class _OneLine(logging.Formatter):
    """Formats a record as one line, without control sequences or workflow commands."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(visible(f"{record.name}: {record.getMessage()}"))


def log_to(stream: TextIO | None) -> None:
    """Log everything to a stream; does nothing if it is None, which means that the shell closed it."""
    if stream is None:
        return
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_OneLine())
    logger = logging.getLogger("ragcontract")
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
