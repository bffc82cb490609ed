"""One or several texts or paths, as functions for users take them."""

import os
from collections.abc import Iterable

Path = str | os.PathLike[str]


def several(given: str | Iterable[str]) -> list[str]:
    """Return one or several texts as a list."""
    return [given] if isinstance(given, str) else [*given]


def paths_of(given: Path | Iterable[Path]) -> list[str]:
    """Return one or several paths as a list of texts."""
    return [os.fspath(path) for path in ([given] if isinstance(given, str | os.PathLike) else given)]
