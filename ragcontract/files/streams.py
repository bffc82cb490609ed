"""Guards writing to standard output and standard error, which may be closed, full or a broken pipe."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO


@contextmanager
def reader_may_leave(stream: TextIO | None) -> Iterator[None]:
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


def _discard(stream: TextIO | None) -> None:
    with suppress(OSError, AttributeError):  # no descriptor: closed by the shell, or replaced by another object
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, stream.fileno())  # type: ignore[union-attr]
        finally:
            os.close(nowhere)
