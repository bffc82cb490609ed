"""Writing to standard output and standard error, which a shell may have closed, filled up or piped into nothing."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO


@contextmanager
def reader_may_leave(stream: TextIO | None) -> Iterator[None]:
    """Let a closed pipe (``| head``) change nothing; other errors, such as a full disk, are raised.

    Either way what is still in the stream's buffer goes nowhere: Python would fail on it once more when it exits, and
    turn every exit code into 120.
    """
    try:
        yield
    except BrokenPipeError:
        _discard(stream)
    except OSError:
        _discard(stream)
        raise


def _discard(stream: TextIO | None) -> None:
    with suppress(OSError, AttributeError):  # no descriptor: closed by the shell, or a stand-in
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, stream.fileno())  # type: ignore[union-attr]
        finally:
            os.close(nowhere)
