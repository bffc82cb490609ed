"""Reading Parquet: one row a record, with every problem reported by file, row and column.

Only the columns that the record has are read, a part of a row group at a time, so neither the texts that rows carry nor
the size of a file matter to memory.
"""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from ragcontract.files.arrow import Columns
from ragcontract.files.events import Batch, Event, FileRead
from ragcontract.files.jsonl import strange_fields
from ragcontract.files.opening import BUFFER, READ_ERRORS, InputFile, Progress, no_progress, read_problem
from ragcontract.files.problems import Problem, Warned
from ragcontract.files.schema import Mismatch

MAGIC = b"PAR1"
ROWS = 1_000  # of a batch: many enough that its overhead is nothing, few enough for rows of a thousand results

T = TypeVar("T", bound=msgspec.Struct)


def read_parquet(
    paths: Sequence[str],
    row_type: type[T],
    *,
    known: type[msgspec.Struct] | None = None,
    unread: Collection[str] = (),
    progress: Progress = no_progress,
) -> Iterator[Event[T]]:
    """Yield the rows of one or more files as ``row_type``, and what is wrong with them.

    Fields of the record that are ``unread``, as ``results.metadata``, are not loaded. A column that looks like a
    misspelled field of the ``known`` record (the row type) is warned about once.
    """
    spelled = _SpellCheck(known or row_type)
    for path in paths:
        try:
            with InputFile(path) as file:
                if file.stream.peek(len(MAGIC))[: len(MAGIC)] != MAGIC:
                    yield Problem(path, _no_parquet(file))
                else:
                    yield from _events_of(path, row_type, unread, progress, spelled)
                while file.stream.read(BUFFER):  # the digest is that of the whole file
                    pass
                yield FileRead(file.source())
        except READ_ERRORS as error:
            yield Problem(path, read_problem(error))


class _SpellCheck:
    """Warns of names of columns that look like misspelled fields, of each once."""

    def __init__(self, known: type) -> None:
        self._known = known
        self._reported: set[str] = set()

    def warnings(self, path: str, example: dict[str, Any]) -> Iterator[Warned]:
        for name, meant in strange_fields(example, self._known):
            if name not in self._reported:
                self._reported.add(name)
                yield Warned(f"{path}: unknown field {name!r} is not read; did you mean {meant!r}?")


def _events_of(
    path: str, row_type: type[T], unread: Collection[str], progress: Progress, spelled: _SpellCheck
) -> Iterator[Event[T]]:
    read = 0
    try:
        # Without buffers, the columns of a whole row group would be held at once.
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
    """Yield the good rows between the bad ones, and what is wrong with those."""
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
    return "is no Parquet file, though its name says so; JSON lines are called something.jsonl"


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(". ")
