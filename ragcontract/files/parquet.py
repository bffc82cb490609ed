"""The reader for Parquet: one record per row, with each problem reported by file, row and column.

Only the columns of the record are read, and only part of a row group at a time, so memory use depends neither on the
texts in the rows nor on the size of the file.

Arrow record batches, from Parquet files or from Spark, are converted column by column to values, and the values in one
call to records, with the same validation as for JSON lines. If a batch fails validation, its rows are validated one by
one.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Generic, TypeVar, Unpack

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ragcontract.core.phrase import Location, Message, private
from ragcontract.files.arrow_types import Kind, column_mismatches, is_text, kind_of, leaves
from ragcontract.files.json_lines import How, unread_fields, whole_type
from ragcontract.files.json_text import doubled_key, fault, first_doubled
from ragcontract.files.opening import BUFFER, READ_ERRORS, InputFile, no_progress, read_problem
from ragcontract.files.problems import Batch, Event, FileRead, Problem, Warned
from ragcontract.files.schema import Mismatch, mismatches

MAGIC = b"PAR1"
ROWS = 1_000  # rows per batch: enough to make its overhead negligible, few enough for rows with a thousand results
Record = TypeVar("Record", bound=msgspec.Struct)


def read_parquet(paths: Sequence[str], row_type: type[Record], **how: Unpack[How]) -> Iterator[Event[Record]]:
    """Yield the rows of one or more files as ``row_type``, and the problems in them.

    There is one warning for each column name that looks like a misspelled field of ``known``.
    """
    row_type = whole_type(row_type)
    warned: set[str] = set()
    for path in paths:
        try:
            with InputFile(path) as file:
                if file.stream.peek(len(MAGIC))[: len(MAGIC)] != MAGIC:
                    yield Problem(path, _no_parquet(file))
                else:
                    for event in _events_of(path, row_type, how):
                        if not isinstance(event, Warned) or event.field not in warned:
                            yield event
                        if isinstance(event, Warned):
                            warned.add(event.field)
                while file.stream.read(BUFFER):  # the digest covers the whole file
                    pass
                yield FileRead(file.source())
        except READ_ERRORS as error:
            yield Problem(path, read_problem(error))


def column_names(path: str) -> list[str]:
    """Return the names of a file's columns, or none if it cannot be read, which the reader of its rows reports."""
    try:
        return list(pq.read_schema(path).names)
    except (pa.ArrowException, OSError):
        return []


class _DoubledKeyError(Exception):
    """A map, or an object as JSON text, has a key twice."""


class _AsWritten(dict[Any, Any]):
    """A map, or an object as JSON text: unlike in a struct, somebody wrote the nulls in it."""


class Columns(Generic[Record]):
    """A schema matched against the record type of its rows; ``unread`` fields (``results.metadata``) are skipped.

    ``mismatches`` are the problems. ``read`` says of each leaf column whether it is needed. Call ``rows`` only if there
    are no mismatches.
    """

    def __init__(self, schema: pa.Schema, record: type[Record], unread: Collection[str] = ()) -> None:
        self._record = record
        self._kind = kind_of(record)
        for name in unread:
            _leave_out(self._kind, name.split("."))
        self.mismatches = list(column_mismatches(self._kind, schema))
        self.read = leaves(self._kind, schema)
        self.example: dict[str, Any] = {field.name: _example(field.type) for field in schema}

    def rows(self, batch: pa.RecordBatch) -> list[Record | list[Mismatch]]:
        """Return the rows of a batch, with a list of mismatches in place of each invalid row."""
        try:
            values = self._values(batch)
            if not any(map(_has_infinite, batch.columns)):
                rows: list[Record | list[Mismatch]] = msgspec.convert(values, list[self._record])  # type: ignore[name-defined]
                return rows
        except (UnicodeDecodeError, _DoubledKeyError):
            return [row for number in range(len(batch)) for row in self._rows_alone(batch.slice(number, 1))]
        except msgspec.ValidationError:
            pass
        return [self._row(value) for value in values]

    def _rows_alone(self, batch: pa.RecordBatch) -> list[Record | list[Mismatch]]:
        try:
            return [self._row(value) for value in self._values(batch)]
        except UnicodeDecodeError as error:
            return [[Mismatch((), f"is not UTF-8 (byte 0x{error.object[error.start]:02x} in a text)")]]
        except _DoubledKeyError as error:
            return [[Mismatch((), fault(str(error)))]]

    def _row(self, value: dict[str, Any]) -> Record | list[Mismatch]:
        value = _without_nulls(value)
        if infinite := list(_infinite(value, ())):
            return infinite
        try:
            return msgspec.convert(value, self._record)
        except msgspec.ValidationError as error:
            return mismatches(value, self._record) or [Mismatch((), str(error))]

    def _values(self, batch: pa.RecordBatch) -> list[dict[str, Any]]:
        known = {name: kind for name, (kind, _) in self._kind.fields.items() if name in batch.schema.names}
        return _dicts(list(known), [_values(batch.column(name), kind) for name, kind in known.items()])


def _events_of(path: str, row_type: type[Record], how: How) -> Iterator[Event[Record]]:
    read, progress = 0, how.get("progress", no_progress)
    try:
        # Pre-buffering would load the columns of a whole row group at once.
        with pq.ParquetFile(path, pre_buffer=False, buffer_size=BUFFER, page_checksum_verification=True) as file:
            columns = Columns(file.schema_arrow, row_type, how.get("unread", ()))
            for mismatch in columns.mismatches:
                yield Problem.of(path, mismatch)
            if columns.mismatches:
                return
            for name, meant, advice in unread_fields(columns.example, row_type, how.get("known") or row_type):
                yield Warned.of_field(Location(path), name, meant, advice)
            if not file.metadata.num_rows:
                yield Problem(path, "has no rows")
                return
            bytes_of_row = Path(path).stat().st_size // file.metadata.num_rows
            for batch in file.iter_batches(ROWS, columns=_needed(file, columns)):
                yield from _rows(path, columns.rows(batch), read + 1)
                read += len(batch)
                progress(len(batch) * bytes_of_row)
    except (pa.ArrowException, OSError) as error:
        location = Location(path, read + 1) if read else path
        yield Problem(location, f"cannot be read as Parquet; the file is damaged ({_first_line(error)})")


def _rows(path: str, rows: Sequence[Record | list[Mismatch]], first: int) -> Iterator[Event[Record]]:
    """Yield the valid rows in batches, and the problems of the invalid ones between them."""
    good: list[Record] = []
    for number, row in enumerate(rows, first):
        if not isinstance(row, list):
            good.append(row)
            continue
        if good:
            yield Batch(path, number - len(good), good)
            good = []
        for mismatch in row:
            yield Problem.of(Location(path, number), mismatch)
    if good:
        yield Batch(path, first + len(rows) - len(good), good)


def _needed(file: pq.ParquetFile, columns: Columns[Record]) -> list[str]:
    return [file.schema.column(index).path for index, read in enumerate(columns.read) if read]


def _no_parquet(file: InputFile) -> str:
    if not file.stream.peek(1):
        return "is empty; expected Parquet"
    return "is not a Parquet file, although its name ends in .parquet; name JSON lines something.jsonl"


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(". ")


def _leave_out(kind: Kind, path: Sequence[str]) -> None:
    for name in path[:-1]:
        kind = kind.fields[name][0]
        kind = kind.items or kind
    del kind.fields[path[-1]]


def _values(array: pa.Array, kind: Kind) -> list[Any]:
    if is_text(array.type):
        texts = _texts(array)
        if kind.has_texts_of_objects:
            return [_object(text) if text and text.lstrip().startswith("{") else text for text in texts]
        return [_object(text) for text in texts] if kind.is_object else texts
    if kind.items and not pa.types.is_null(array.type):
        return _lists(array, kind.items)
    if kind.fields and pa.types.is_struct(array.type):
        return _structs(array, kind)
    if pa.types.is_decimal(array.type):
        array = array.cast(pa.float64())
    values: list[Any] = array.to_pylist()
    if pa.types.is_map(array.type):
        return [None if pairs is None else _mapping(pairs) for pairs in values]
    return values


def _mapping(pairs: Sequence[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return the pairs of a map as a dictionary; raises _DoubledKeyError if a key occurs twice."""
    made = dict(pairs)
    if len(made) < len(pairs):
        raise _DoubledKeyError(first_doubled(key for key, _ in pairs))
    return _AsWritten({key: _without_nulls(value) for key, value in made.items()})


def _texts(array: pa.Array) -> list[str | None]:
    """Decode each distinct text once, because ids repeat and copying references is cheap."""
    encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    if encoded.indices.null_count:
        return [None if index is None else texts[index] for index in encoded.indices.to_pylist()]
    return [texts[index] for index in encoded.indices.to_pylist()]


def _lists(array: pa.Array, kind: Kind) -> list[list[Any] | None]:
    if pa.types.is_fixed_size_list(array.type):
        array = array.cast(pa.list_(array.type.value_type))
    offsets = array.offsets.to_pylist()  # the offsets of a slice do not start at 0
    items = _values(array.values.slice(offsets[0], offsets[-1] - offsets[0]), kind)
    start = offsets[0]
    cut: list[list[Any] | None] = [items[begin - start : end - start] for begin, end in pairwise(offsets)]
    return _with_nulls(cut, array)


def _structs(array: pa.StructArray, kind: Kind) -> list[dict[str, Any] | None]:
    present = {field.name for field in array.type}
    known = {name: inner for name, (inner, _) in kind.fields.items() if name in present}
    columns = [_values(array.field(name), inner) for name, inner in known.items()]
    return _with_nulls(_dicts(list(known), columns), array)


def _dicts(names: list[str], columns: list[list[Any]]) -> list[dict[str, Any]]:
    if len(names) == 2:  # noqa: PLR2004 (most results have an id and a score, and there can be tens of millions)
        first, second = names
        return [{first: value, second: other} for value, other in zip(*columns, strict=True)]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _with_nulls(values: list[Any], array: pa.Array) -> list[Any]:
    if not array.null_count:
        return values
    valid = array.is_valid().to_pylist()
    return [value if there else None for value, there in zip(values, valid, strict=True)]


def _object(text: str | None) -> Any:
    """Return the object that a JSON text encodes. Other text is returned as it is, so that validation reports it."""
    if text and (key := doubled_key(text.encode())) is not None:
        raise _DoubledKeyError(key)
    try:
        value = text and msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
    return _AsWritten(value) if isinstance(value, dict) else value


def _has_infinite(array: pa.Array) -> bool:
    """Return whether there is NaN or infinity at any depth. Validation accepts them, because JSON cannot have them."""
    if pa.types.is_floating(array.type):
        return not pc.all(pc.is_finite(array)).as_py() if len(array) > array.null_count else False
    if pa.types.is_map(array.type):
        return _has_infinite(array.items)
    if pa.types.is_struct(array.type):
        return any(map(_has_infinite, array.flatten()))
    return _has_infinite(array.flatten()) if pa.types.is_nested(array.type) else False


def _infinite(value: Any, path: tuple[str | int, ...]) -> Iterator[Mismatch]:
    if isinstance(value, float) and not math.isfinite(value):
        yield Mismatch(
            path, Message.quoting("expected a number, found ", private(f"{value}; write null where there is none"))
        )
    elif isinstance(value, dict | list):
        for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _infinite(inner, (*path, name))


def _without_nulls(value: Any) -> Any:
    """Drop null fields. A column has a value for every row, so null stands for an absent field."""
    if isinstance(value, _AsWritten):
        return value
    if isinstance(value, dict):
        return {name: _without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value] if isinstance(value, list) else value


def _example(arrow_type: pa.DataType) -> Any:
    """Return a value with the same field names as a column, for checks that read only names."""
    if pa.types.is_struct(arrow_type):
        return {field.name: _example(field.type) for field in arrow_type}
    return (
        [_example(arrow_type.value_type)]
        if pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type)
        else None
    )
