"""Reads the rows of a contract's files. Only this module chooses the format by the file name."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, TypeAlias, TypeVar, Unpack

import msgspec

from ragcontract.core.errors import OutputError
from ragcontract.core.lines import Line
from ragcontract.core.phrase import Location
from ragcontract.core.safe_text import encodable
from ragcontract.files.json_lines import How
from ragcontract.files.problems import Event, Problem

INSTALL = "install it: pip install 'rag-contract[parquet]'"

T = TypeVar("T", bound=msgspec.Struct)
Reader: TypeAlias = Callable[..., Iterator[Event[Any]]]
PARQUET: Line[Reader] = Line(names=(".parquet",), home="ragcontract.files.parquet:read_parquet")
COLUMNS: Line[Callable[[str], list[str]]] = Line(home="ragcontract.files.parquet:column_names")
# The formats of rows, by the ends of file names. A file with any other name is read as the first one.
FORMATS: tuple[Line[Reader], ...] = (
    Line(names=(".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz"), home="ragcontract.files.json_lines:read_jsonl"),
    PARQUET,
)
FILE_BITS = 40  # of the integer that is the place of a row: the file is above them


class Places:
    """The places of rows as integers, to save memory."""

    def __init__(self) -> None:
        self._paths: list[str] = []

    def at(self, path: str, line: int) -> int:
        """Return the place of a line; those of the following lines of the file follow one by one."""
        if path not in self._paths[-1:]:
            self._paths.append(path)
        return (len(self._paths) - 1 << FILE_BITS) + line

    def location(self, at: int) -> Location:
        """Return the location of a place, such as ``run.jsonl:17``."""
        file, line = divmod(at, 1 << FILE_BITS)
        return Location(encodable(self._paths[file]), line)

    @staticmethod
    def in_one_file(at: int, other: int) -> bool:
        """Return whether two places are in the same file."""
        return at >> FILE_BITS == other >> FILE_BITS


def format_of(path: str) -> Line[Reader] | None:
    """Return the format of a file's rows according to its name; None if no format has such names."""
    return next((line for line in FORMATS if path.lower().endswith(line.names)), None)


def is_parquet(path: str) -> bool:
    """Return whether a file is Parquet according to its name."""
    return format_of(path) is PARQUET


def read_rows(paths: Sequence[str], row_type: type[T], **how: Unpack[How]) -> Iterator[Event[T]]:
    """Yield the rows of files as ``row_type``, in file order, and the problems in them."""
    for line, group in groupby(paths, lambda path: format_of(path) or FORMATS[0]):
        files = list(group)
        try:
            read = line.load()
        except ImportError:
            yield from (Problem(path, f"is Parquet, which pyarrow reads; {INSTALL}") for path in files)
        else:
            yield from read(files, row_type, **how)


def parquet_columns(path: str) -> list[str]:
    """Return the names of a Parquet file's columns, or none if it cannot be read, which ``read_rows`` reports."""
    try:
        return COLUMNS.load()(path)
    except ImportError:
        return []


def needs_pyarrow(name: str) -> OutputError:
    """Return the error for a file that cannot be written as Parquet without pyarrow."""
    return OutputError([f"{name}: cannot be written as Parquet without pyarrow; {INSTALL}"])
