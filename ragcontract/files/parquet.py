"""Reading Parquet: one row a record, with every problem told by file, row and column.

Only the columns that the record has are read, a part of a row group at a time, so neither the texts that rows carry nor
the size of a file matter to memory.
"""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from ragcontract.files.arrow import Columns
from ragcontract.files.jsonl import strange_fields
from ragcontract.files.opening import BUFFER, READ_ERRORS, InputFile, Progress, no_progress, read_problem
from ragcontract.files.problems import Diagnostics
from ragcontract.files.rows import INSTALL
from ragcontract.files.schema import Mismatch
from ragcontract.model import SourceFile

if TYPE_CHECKING:
    import pyarrow.parquet as pq

MAGIC = b"PAR1"
_A_PART_AT_A_TIME: dict[str, Any] = {"pre_buffer": False, "buffer_size": BUFFER}  # not the columns of a whole row group
ROWS = 1_000  # of a batch: many enough that its overhead is nothing, few enough for rows of a thousand results

T = TypeVar("T", bound=msgspec.Struct)


class ParquetRows(Generic[T]):
    """The rows of one or more files.

    ``path`` and ``number`` say where the row that came last stands; ``files`` has the digests once all are read.
    """

    def __init__(
        self,
        paths: Sequence[str],
        row_type: type[T],
        diagnostics: Diagnostics,
        *,
        unread: Collection[str] = (),
        progress: Progress = no_progress,
    ) -> None:
        """Read ``paths`` as rows of ``row_type``, but for its fields that are ``unread``, as ``results.metadata``."""
        self.files: list[SourceFile] = []
        self.path = ""
        self.number = 0
        self._paths = paths
        self._type = row_type
        self._diagnostics = diagnostics
        self._unread = unread
        self._progress = progress
        self._misspelled: set[str] = set()

    @property
    def location(self) -> str:
        """Where the row that came last stands, as ``run.parquet:17``."""
        return f"{self.path}:{self.number}"

    def __iter__(self) -> Iterator[T]:
        """Yield each good row; a bad one is told to the diagnostics and left out."""
        for rows in self.batches():
            for row in rows:
                yield row
                self.number += 1

    def batches(self) -> Iterator[list[T]]:
        """Yield good rows that follow each other, of which ``path`` and ``number`` tell the first."""
        for path in self._paths:
            self.path, self.number = path, 1
            try:
                with InputFile(path) as file:
                    if file.stream.peek(len(MAGIC))[: len(MAGIC)] == MAGIC:
                        yield from self._of_file()
                    else:
                        self._diagnostics.problem(path, _no_parquet(file))
                    while file.stream.read(BUFFER):  # the digest is that of the whole file
                        pass
                    self.files.append(file.source())
            except READ_ERRORS as error:
                self._diagnostics.problem(path, read_problem(error))

    def _of_file(self) -> Iterator[list[T]]:
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            self._diagnostics.problem(self.path, f"is Parquet, which pyarrow reads; {INSTALL}")
            return
        read = 0
        try:
            # Without buffers, the columns of a whole row group would be held at once.
            with pq.ParquetFile(
                self.path, pre_buffer=False, buffer_size=BUFFER, page_checksum_verification=True
            ) as file:
                columns = Columns(file.schema_arrow, self._type, self._unread)
                if not self._fits(file, columns):
                    return
                bytes_of_row = Path(self.path).stat().st_size // file.metadata.num_rows
                for batch in file.iter_batches(ROWS, columns=_needed(file, columns)):
                    yield from self._good(columns.rows(batch), read + 1)
                    read += len(batch)
                    self._progress(len(batch) * bytes_of_row)
        except (pa.ArrowException, OSError) as error:
            location = f"{self.path}:{read + 1}" if read else self.path
            self._diagnostics.problem(
                location, f"cannot be read as Parquet; the file is damaged ({_first_line(error)})"
            )

    def _fits(self, file: "pq.ParquetFile", columns: Columns[T]) -> bool:
        """Tell whether the file's rows can be asked for, and the diagnostics why not."""
        for mismatch in columns.mismatches:
            self._diagnostics.mismatch(self.path, mismatch)
        if columns.mismatches:
            return False
        for name, meant in strange_fields(columns.example, self._type):
            if name not in self._misspelled:
                self._misspelled.add(name)
                self._diagnostics.warning(f"{self.path}: unknown field {name!r} is not read; did you mean {meant!r}?")
        if not file.metadata.num_rows:
            self._diagnostics.problem(self.path, "has no rows")
        return bool(file.metadata.num_rows)

    def _good(self, rows: Sequence[T | list[Mismatch]], first: int) -> Iterator[list[T]]:
        """Yield what lies between the bad rows, which are told to the diagnostics."""
        good: list[T] = []
        for number, row in enumerate(rows, first):
            if not isinstance(row, list):
                good.append(row)
                continue
            for mismatch in row:
                self._diagnostics.mismatch(f"{self.path}:{number}", mismatch)
            if good:
                self.number = number - len(good)
                yield good
                good = []
        if good:
            self.number = first + len(rows) - len(good)
            yield good


def _needed(file: "pq.ParquetFile", columns: Columns[T]) -> list[str]:
    return [file.schema.column(index).path for index, read in enumerate(columns.read) if read]


def _no_parquet(file: InputFile) -> str:
    if not file.stream.peek(1):
        return "is empty; expected Parquet"
    return "is no Parquet file, though its name says so; JSON lines are called something.jsonl"


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(". ")
