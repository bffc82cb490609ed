"""Reader for Parquet: one record per row, with each problem reported by file, row and column.

Only the columns of the record are read, and only part of a row group at a time, so memory use depends neither on the
texts in the rows nor on the size of the file.
"""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from ragcontract.files.arrow import Columns
from ragcontract.files.events import Batch, Event, FileRead
from ragcontract.files.jsonl import unread_fields
from ragcontract.files.opening import BUFFER, READ_ERRORS, InputFile, Progress, no_progress, read_problem
from ragcontract.files.problems import Problem, Warned
from ragcontract.files.schema import Mismatch

MAGIC = b"PAR1"
ROWS = 1_000  # rows per batch: enough to make its overhead negligible, few enough for rows with a thousand results

T = TypeVar("T", bound=msgspec.Struct)


def read_parquet(
    paths: Sequence[str],
    row_type: type[T],
    *,
    known: type[msgspec.Struct] | None = None,
    unread: Collection[str] = (),
    progress: Progress = no_progress,
) -> Iterator[Event[T]]:
    """Yield the rows of one or more files as ``row_type``, and the problems in them.

    Fields in ``unread``, such as ``results.metadata``, are not loaded. There is one warning for each column name that
    looks like a misspelled field of ``known`` (by default, the row type).
    """
    spelled = _SpellCheck(row_type, known or row_type)
    for path in paths:
        try:
            with InputFile(path) as file:
                if file.stream.peek(len(MAGIC))[: len(MAGIC)] != MAGIC:
                    yield Problem(path, _no_parquet(file))
                else:
                    yield from _events_of(path, row_type, unread, progress, spelled)
                while file.stream.read(BUFFER):  # the digest covers the whole file
                    pass
                yield FileRead(file.source())
        except READ_ERRORS as error:
            yield Problem(path, read_problem(error))


def column_names(path: str) -> list[str]:
    """Return the names of a file's columns; none if it cannot be read, which reading its rows reports."""
    try:
        return list(pq.read_schema(path).names)
    except (pa.ArrowException, OSError):
        return []


class _SpellCheck:
    """Warns once about each column name that looks like a misspelled field."""

    def __init__(self, row_type: type, known: type) -> None:
        self._type, self._known = row_type, known
        self._reported: set[str] = set()

    def warnings(self, path: str, example: dict[str, Any]) -> Iterator[Warned]:
        for name, meant, advice in unread_fields(example, self._type, self._known):
            if name not in self._reported:
                self._reported.add(name)
                yield Warned.of_field(path, name, meant, advice)


def _events_of(
    path: str, row_type: type[T], unread: Collection[str], progress: Progress, spelled: _SpellCheck
) -> Iterator[Event[T]]:
    read = 0
    try:
        # Pre-buffering would load the columns of a whole row group at once.
        with pq.ParquetFile(path, pre_buffer=False, buffer_size=BUFFER, page_checksum_verification=True) as file:
            columns = Columns(file.schema_arrow, row_type, unread)
            for mismatch in columns.mismatches:
                yield Problem.of(path, mismatch)
            if columns.mismatches:
                return
            yield from spelled.warnings(path, columns.example)
            if not file.metadata.num_rows:
                yield Problem(path, "has no rows")
                return
            bytes_of_row = Path(path).stat().st_size // file.metadata.num_rows
            for batch in file.iter_batches(ROWS, columns=_needed(file, columns)):
                yield from _rows(path, columns.rows(batch), read + 1)
                read += len(batch)
                progress(len(batch) * bytes_of_row)
    except (pa.ArrowException, OSError) as error:
        location = f"{path}:{read + 1}" if read else path
        yield Problem(location, f"cannot be read as Parquet; the file is damaged ({_first_line(error)})")


def _rows(path: str, rows: Sequence[T | list[Mismatch]], first: int) -> Iterator[Event[T]]:
    """Yield the valid rows in batches, and the problems of the invalid ones between them."""
    good: list[T] = []
    for number, row in enumerate(rows, first):
        if not isinstance(row, list):
            good.append(row)
            continue
        if good:
            yield Batch(path, number - len(good), good)
            good = []
        for mismatch in row:
            yield Problem.of(f"{path}:{number}", mismatch)
    if good:
        yield Batch(path, first + len(rows) - len(good), good)


def _needed(file: pq.ParquetFile, columns: Columns[T]) -> list[str]:
    return [file.schema.column(index).path for index, read in enumerate(columns.read) if read]


def _no_parquet(file: InputFile) -> str:
    if not file.stream.peek(1):
        return "is empty; expected Parquet"
    return "is not a Parquet file, although its name ends in .parquet; name JSON lines something.jsonl"


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(". ")
