"""Paths that lead to the same file after the current folder has changed."""

import os
from contextlib import suppress
from pathlib import Path


class AnchoredPath(os.PathLike[str]):
    """A path as a person typed it. As text it is that, for messages; opened, it is where it led when it was made."""

    def __init__(self, typed: str | os.PathLike[str]) -> None:
        """Find out where the path leads now."""
        self._typed = str(typed) if isinstance(typed, AnchoredPath) else os.fspath(typed)
        self._absolute = os.fspath(typed)
        with suppress(FileNotFoundError):  # the current folder was deleted: writing to it will say so
            self._absolute = str(Path(typed).absolute())

    def __fspath__(self) -> str:
        """Return the absolute path."""
        return self._absolute

    def __str__(self) -> str:
        """Return what was typed."""
        return self._typed
