"""The rows of a contract's files, in whichever format: the one place where a file's name decides how it is read."""

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import Generic, Protocol, TypeVar

import msgspec

from ragcontract.files.jsonl import JsonLines
from ragcontract.files.opening import Progress, no_progress
from ragcontract.files.problems import Diagnostics
from ragcontract.model import SourceFile

PARQUET = ".parquet"
INSTALL = "install it: pip install 'rag-contract[parquet]'"

T = TypeVar("T", bound=msgspec.Struct)


class Rows(Protocol[T]):
    """Typed rows, and where they stand.

    ``path`` and ``number`` say where the row that came last stands, ``location`` as ``golden.jsonl:17``; ``files`` has
    the digests once all are read.
    """

    @property
    def files(self) -> list[SourceFile]: ...  # noqa: D102

    @property
    def path(self) -> str: ...  # noqa: D102

    @property
    def number(self) -> int: ...  # noqa: D102

    @property
    def location(self) -> str: ...  # noqa: D102

    def __iter__(self) -> Iterator[T]: ...  # noqa: D105

    def batches(self) -> Iterator[list[T]]:
        """Yield rows that follow each other, of which ``path`` and ``number`` tell the first."""
        ...


def is_parquet(path: str) -> bool:
    """Tell by its name whether a file is Parquet."""
    return path.lower().endswith(PARQUET)


def rows_of(
    paths: Sequence[str],
    row_type: type[T],
    diagnostics: Diagnostics,
    *,
    spell_check: int | None = None,
    unread: Collection[str] = (),
    progress: Progress = no_progress,
) -> Rows[T]:
    """Read ``paths`` as rows of ``row_type``; see :class:`JsonLines`.

    Fields that are ``unread``, as ``results.metadata``, are not loaded where the format can do without.
    """
    if not any(map(is_parquet, paths)):
        return JsonLines(paths, row_type, diagnostics, spell_check=spell_check, progress=progress)
    from ragcontract.files.parquet import ParquetRows

    parts: list[Rows[T]] = []
    for parquet, group in groupby(paths, is_parquet):
        if parquet:
            parts.append(ParquetRows(list(group), row_type, diagnostics, unread=unread, progress=progress))
        else:
            parts.append(JsonLines(list(group), row_type, diagnostics, spell_check=spell_check, progress=progress))
    return _OneAfterTheOther(parts) if len(parts) > 1 else parts[0]


class _OneAfterTheOther(Generic[T]):
    """Rows of files of several formats, in the files' order."""

    def __init__(self, parts: Sequence[Rows[T]]) -> None:
        self._parts = parts
        self._now = parts[0]

    @property
    def files(self) -> list[SourceFile]:
        return [file for part in self._parts for file in part.files]

    @property
    def path(self) -> str:
        return self._now.path

    @property
    def number(self) -> int:
        return self._now.number

    @property
    def location(self) -> str:
        return self._now.location

    def __iter__(self) -> Iterator[T]:
        for part in self._parts:
            self._now = part
            yield from part

    def batches(self) -> Iterator[list[T]]:
        for part in self._parts:
            self._now = part
            yield from part.batches()
