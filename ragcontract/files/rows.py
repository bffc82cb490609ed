"""Reads the rows of a contract's files. Only this module chooses the format by the file name."""

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import TypeVar

import msgspec

from ragcontract.core.errors import OutputError
from ragcontract.files.json_lines import read_jsonl, whole_type
from ragcontract.files.opening import Progress, no_progress
from ragcontract.files.problems import Event, Problem

PARQUET = ".parquet"
INSTALL = "install it: pip install 'rag-contract[parquet]'"

T = TypeVar("T", bound=msgspec.Struct)


def is_parquet(path: str) -> bool:
    """Return whether a file is Parquet according to its name."""
    return path.lower().endswith(PARQUET)


def read_rows(
    paths: Sequence[str],
    row_type: type[T],
    *,
    known: type[msgspec.Struct] | None = None,
    spell_check: int | None = None,
    compare_keys: int | None = None,
    unread: Collection[str] = (),
    may_be_empty: bool = False,
    progress: Progress = no_progress,
) -> Iterator[Event[T]]:
    """Yield the rows of files as ``row_type``, in file order; see :func:`~ragcontract.files.json_lines.read_jsonl`.

    Fields in ``unread``, such as ``results.metadata``, are not loaded if the format can skip them. A file without rows
    is a problem, unless it ``may_be_empty``.
    """
    for parquet, group in groupby(paths, is_parquet):
        if parquet:
            try:
                from ragcontract.files.parquet import read_parquet
            except ImportError:
                yield from (Problem(path, f"is Parquet, which pyarrow reads; {INSTALL}") for path in group)
                continue
            yield from read_parquet(list(group), whole_type(row_type), known=known, unread=unread, progress=progress)
        else:
            yield from read_jsonl(
                list(group),
                row_type,
                known=known,
                spell_check=spell_check,
                compare_keys=compare_keys,
                may_be_empty=may_be_empty,
                progress=progress,
            )


def parquet_columns(path: str) -> list[str]:
    """Return the names of a Parquet file's columns, or none if it cannot be read, which ``read_rows`` reports."""
    try:
        from ragcontract.files.parquet import column_names
    except ImportError:
        return []
    return column_names(path)


def needs_pyarrow(name: str) -> OutputError:
    """Return the error for a file that cannot be written as Parquet without pyarrow."""
    return OutputError([f"{name}: cannot be written as Parquet without pyarrow; {INSTALL}"])
