"""Runs that Python makes: in memory, or written row by row to a file that appears only when it is complete.

Rows that the reader would refuse are refused at once.
"""

import gzip
import hashlib
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Protocol, Self, TypeAlias, TypedDict, Unpack

import msgspec
from msgspec import UNSET, Struct, UnsetType

from ragcontract.core import bounds
from ragcontract.core.errors import InputError, OutputError
from ragcontract.core.ids import as_id
from ragcontract.core.nearest import nearest
from ragcontract.core.numbers import mebibytes
from ragcontract.core.phrase import Message, dotted, private
from ragcontract.core.run import VERSION_FIELDS, RunRow, SourceFile
from ragcontract.core.safe_text import shorten
from ragcontract.files.json_lines import has_more_text
from ragcontract.files.paths import AnchoredPath
from ragcontract.files.problems import Batch, Event, FileRead, Problem
from ragcontract.files.rows import is_parquet, needs_pyarrow
from ragcontract.files.schema import mismatches, shown
from ragcontract.files.writing import beside, check_outputs, take_after

Id = str | int
Result = Id | Mapping[str, Any]
IN_MEMORY = "(in memory)"
Row: TypeAlias = Iterable[Result] | Mapping[str, Any]
# Mapping is invariant in its key type, so a dict[str, …] is not a Mapping[str | int, …].
RunMapping: TypeAlias = Mapping[str, Row] | Mapping[int, Row] | Mapping[Id, Row]
BYTES = (bytes, bytearray, memoryview)
SETS = (set, frozenset)
UNFIT = (*BYTES, *SETS)  # refused, although msgspec would encode bytes as base64, and a set in any order
TOO_LONG = f"the row is longer than {mebibytes(bounds.LINE)}"


class Further(TypedDict, total=False):
    """The fields of a row beside its results: what the application answered, and what is known of the answer.

    A ``response`` of None means that there was no answer. For other fields, None leaves the field out.
    """

    query: str | None
    response: str | None
    error: str | None
    error_detail: Mapping[str, Any] | None
    context_chars: int | None
    retrieved_contexts: Sequence[str] | None
    tool_calls: Sequence[Mapping[str, Any]] | None
    messages: Sequence[Mapping[str, Any]] | None
    mode: str | None
    label: str | None
    refusal: str | None
    finish_reason: str | None
    scores: Mapping[str, float | None] | None
    checks: Mapping[str, bool | Mapping[str, Any]] | None


FURTHER = (*Further.__annotations__, *VERSION_FIELDS)


class RowEncoder:
    """Encodes the rows of a run, and refuses rows that the reader would refuse.

    ``name`` is that of the run, for messages. The ``versions``, except None, are added to every row.
    """

    def __init__(self, name: str, versions: Mapping[str, Id | None], decode_as: type[RunRow] | None = None) -> None:
        self._name = name
        self._versions = {key: value for key, value in versions.items() if value is not None}
        self._type = decode_as or RunRow
        self._decode = msgspec.json.Decoder(self._type).decode
        self._encode = msgspec.json.Encoder(enc_hook=_plain).encode
        self._encoded({"query_id": "any", "results": []}, name)

    def location(self, query_id: object) -> str:
        return f"{self._name}: query {shown(query_id) if isinstance(query_id, str | int) else repr(query_id)}"

    def row(
        self,
        query_id: Id,
        results: Iterable[Result] | UnsetType,
        latency_ms: float | None = None,
        further: Mapping[str, Any] | None = None,
    ) -> tuple[bytes, RunRow]:
        """Return the encoded line and the decoded row; raises :class:`InputError` if the reader would refuse it.

        Results may be unset for a query that names no documents, if there are ``further`` fields.
        """
        location = self.location(query_id)
        row: dict[str, Any] = {"query_id": query_id}
        if not isinstance(results, UnsetType) or not further:
            row["results"] = _listed(results, location)
        if has_more_text([row, further], bounds.LINE):
            raise InputError([f"{location}: {TOO_LONG}"])
        numbers: dict[str, Any] = {
            f"results[{index}].score": result.get("score") for index, result in enumerate(row.get("results", ()))
        }
        if latency_ms is not None:
            row["latency_ms"] = numbers["latency_ms"] = latency_ms
        for name, value in (further or {}).items():
            if name not in FURTHER:
                near = nearest(name, FURTHER) or RunRow.other_names.get(name, ("",))[0]
                raise InputError([f"{location}: {name}: unknown field" + (f"; did you mean {near!r}?" if near else "")])
            if value is not None or name == "response":
                row[name] = value
                numbers |= {at: leaf for at, leaf in _leaves(name, value) if isinstance(leaf, float)}
        encoded = self._encoded(row, location)
        for name, number in numbers.items():
            if number is not None and not math.isfinite(number):  # would be written as null
                expected = f"{location}: {name}: expected a number, found "
                raise InputError([Message.quoting(expected, private(f"{number}"))])
        return encoded

    def _encoded(self, row: dict[str, Any], location: str) -> tuple[bytes, RunRow]:
        line = b""
        if unfit := [(name, value) for name, value in _texts(row | self._versions) if isinstance(value, UNFIT)]:
            raise InputError([f"{location}: {name}: {_unfit(value)}" for name, value in unfit])
        try:
            line = self._encode(row | self._versions) + b"\n"
            decoded = self._decode(line)
        except msgspec.ValidationError as error:
            reasons = mismatches(msgspec.json.decode(line), self._type)
            problems = [Message.of(f"{location}: {dotted(mismatch.path)}: ", mismatch.message) for mismatch in reasons]
            raise InputError(problems or [f"{location}: {error}"]) from error
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise InputError([f"{location}: cannot be written as JSON ({error})"]) from error
        if len(line) > bounds.LINE:
            raise InputError([f"{location}: {TOO_LONG}"])
        return line, decoded


def _unfit(value: object) -> str:
    if isinstance(value, BYTES):
        return "is bytes, which is neither an id nor text; decode it first"
    return "is a set, which has no order of its own; give a list"


def _listed(results: object, location: str) -> list[dict[str, Any]]:
    if isinstance(results, SETS):
        raise InputError([f"{location}: results: {_unfit(results)}, the best result first"])
    if hasattr(results, "columns"):  # its items are the names of its columns
        problem = f"results: is a table ({type(results).__name__}); give the column with the ids, as a list"
        raise InputError([f"{location}: {problem}"])
    if isinstance(results, str | bytes | Mapping) or not isinstance(results, Iterable):
        shown_results = "nothing" if results is UNSET else shorten(repr(results), bounds.VALUE)
        expected = f"{location}: results: expected a list of document ids or results, found "
        raise InputError([Message.quoting(expected, private(shown_results))])
    return [dict(result) if isinstance(result, Mapping) else {"doc_id": result} for result in results]


def _texts(row: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of possible texts."""
    for name, value in row.items():
        if name != "results":
            yield from _leaves(name, value)
    for index, result in enumerate(row.get("results", ())):
        for name, value in result.items():
            yield f"results[{index}].{name}", value


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the values within lists and mappings, with their paths; the value itself if it is neither."""
    stack = [(name, value)]
    while stack:
        at, item = stack.pop()
        if isinstance(item, Mapping):
            stack += [(f"{at}.{key}", inner) for key, inner in item.items()]
        elif isinstance(item, list | tuple):
            stack += [(f"{at}[{index}]", inner) for index, inner in enumerate(item)]
        else:
            yield at, item


def _plain(value: Any) -> Any:
    """Convert scalars of numpy and torch to Python values."""
    item = getattr(value, "item", None)
    if callable(item):
        value = item()
        if not isinstance(value, bytes):
            return value
    raise TypeError(f"a value of type {type(value).__name__} is not a JSON value")


class InMemory(Struct, frozen=True, kw_only=True):
    """A run given as a mapping of query ids to results, as :meth:`RunWriter.write` accepts them.

    In place of results, a query may have a mapping with all the fields of its row, ``results`` among them.
    """

    run: RunMapping

    def events(self, rows: type[RunRow], *, with_metrics: bool = False) -> Iterator[Event[RunRow]]:  # noqa: ARG002
        """Yield the rows, and a file with the digest of the file that ``RunWriter`` would write."""
        encoder = RowEncoder(IN_MEMORY, {}, rows)
        digest = hashlib.sha256()
        seen: set[str] = set()
        for query_id, value in self.run.items():
            fields: dict[str, Any] = dict(value) if isinstance(value, Mapping) else {"results": value}
            try:
                line, row = encoder.row(query_id, fields.pop("results", UNSET), fields.pop("latency_ms", None), fields)
            except InputError as error:
                yield from (Problem(IN_MEMORY, problem, is_located=True) for problem in error.problems)
                continue
            digest.update(line)
            if as_id(row.query_id) in seen:
                yield Problem(encoder.location(query_id), "occurs twice, as text and as a number")
                continue
            seen.add(as_id(row.query_id))
            yield Batch(IN_MEMORY, 0, [row])
        if not self.run:
            yield Problem(IN_MEMORY, "the run is empty")
        yield FileRead(SourceFile(path=IN_MEMORY, sha256=digest.hexdigest()))


class Stream(Protocol):
    """Destination of encoded lines: a file, or a stream that compresses or converts them on the way to it."""

    def write(self, line: bytes, /) -> object: ...

    def close(self) -> None: ...


class RunWriter:
    """Context manager that writes a run file, one row at a time.

    Rows are written to a temporary file in the folder of ``path``, which is renamed to ``path`` at the end of the
    ``with`` block. If the block raises, no file appears, and an existing one is unchanged. If the name ends in ``.gz``,
    the file is compressed; if it ends in ``.parquet``, it is written as Parquet, which needs pyarrow. Only the query
    ids are held in memory (and, for Parquet, the rows of the current row group), so that a duplicate query can be
    refused. With ``repeats``, a query may be written several times; check such a run with ``--repeats``. The versions
    are added to every row::

        with RunWriter("current_run.jsonl", index_version="2024-05-01") as run:
            for query in load_golden("golden.jsonl").values():
                run.write(query.id, my_retriever(query.query))
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        embedding_model: Id | None = None,
        index_version: Id | None = None,
        chunking_version: Id | None = None,
        retriever_version: Id | None = None,
        llm_model: Id | None = None,
        prompt_version: Id | None = None,
        repeats: bool = False,
    ) -> None:
        # The path means the same file even if the current folder changes before the writer is used.
        self._out = AnchoredPath(path)
        self._name = str(self._out)
        versions = {
            "embedding_model": embedding_model,
            "index_version": index_version,
            "chunking_version": chunking_version,
            "retriever_version": retriever_version,
            "llm_model": llm_model,
            "prompt_version": prompt_version,
        }
        self._repeats = repeats
        self._encoder = RowEncoder(self._name, versions)
        self._written: set[str] = set()
        self._streams: list[Stream] = []

    def __enter__(self) -> Self:
        """Open the temporary file; raises :class:`OutputError` if it cannot be written."""
        if self._streams:
            raise RuntimeError(f"{self._name}: is being written already; a RunWriter is for one `with` block at a time")
        problems = check_outputs([self._out], [])
        if not problems and Path(self._out).exists() and not Path(self._out).is_file():
            problems = [f"{self._name}: is not a regular file, so it cannot be replaced atomically"]
        if problems:
            raise OutputError(problems)
        self._path = Path(self._out).resolve()
        self._temporary = beside(self._path)
        self._written.clear()
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            file = self._temporary.open("xb")
            self._streams = [file]
            if self._path.suffix.lower() == ".gz":
                # Without file name and time, equal runs give equal files.
                self._streams.insert(0, gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0))
            elif is_parquet(self._name):
                self._streams.insert(0, self._parquet(file))
        except OSError as error:
            self._close(quietly=True)
            with suppress(OSError):
                self._temporary.unlink()
            raise self._unwritable(error) from error
        return self

    def _parquet(self, file: IO[bytes]) -> Stream:
        try:
            from ragcontract.runs.parquet_writer import ParquetStream  # needs an optional dependency
        except ImportError as error:
            self._close(quietly=True)
            self._temporary.unlink()
            raise needs_pyarrow(self._name) from error
        return ParquetStream(file)

    def write(
        self,
        query_id: Id,
        results: Iterable[Result] | UnsetType = UNSET,
        latency_ms: float | None = None,
        **further: Unpack[Further],
    ) -> None:
        """Write the results for one query, best first: document ids, or mappings with a ``doc_id``.

        A mapping may also have ``score``, ``chunk_id``, ``metadata``, and ``text`` for labelling and metrics of texts.
        Results may be left out for a query that names no documents. ``further`` are the other fields of a row, such as
        ``response`` and ``tool_calls``. Raises :class:`InputError` if the row could not be read back, or if the query
        was already written and ``repeats`` is false; the row is then not written.
        """
        if not self._streams:
            raise RuntimeError("write() belongs in the block of `with RunWriter(…) as run:`")
        line, row = self._encoder.row(query_id, results, latency_ms, further)
        if is_parquet(self._name) and further:
            problem = "is not written to Parquet; name the file something.jsonl or something.jsonl.gz"
            raise InputError([f"{self._encoder.location(query_id)}: {next(iter(further))}: {problem}"])
        known_as = as_id(row.query_id)
        if known_as in self._written and not self._repeats:
            problem = "is written already; a run has one row a query, unless `repeats=True` allows several"
            raise InputError([f"{self._encoder.location(query_id)}: {problem}"])
        try:
            self._streams[0].write(line)
        except OSError as error:
            raise self._unwritable(error) from error
        self._written.add(known_as)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Rename the temporary file to its path, or delete it if the block raised."""
        try:
            if kind is None:
                self._finish()
        except OSError as failed:
            raise self._unwritable(failed) from failed
        finally:
            self._close(quietly=True)
            self._temporary.unlink(missing_ok=True)

    def _finish(self) -> None:
        if not self._written:
            raise InputError([f"{self._name}: no row was written; a run has one for every golden query"])
        self._close()
        take_after(self._temporary, self._path)
        self._temporary.replace(self._path)

    def _close(self, *, quietly: bool = False) -> None:
        """Close the open streams; one that compresses or converts is closed before the file that it writes to."""
        while self._streams:
            try:
                self._streams.pop(0).close()
            except OSError:
                if not quietly:
                    raise

    def _unwritable(self, error: OSError) -> OutputError:
        return OutputError([f"{self._name}: cannot be written ({error.strerror or error})"])
