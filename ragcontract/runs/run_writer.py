"""Writes a run row by row; the file appears only when it is complete."""

import gzip
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Protocol, Self, Unpack

from msgspec import UNSET, UnsetType

from ragcontract.core.errors import InputError, OutputError
from ragcontract.core.ids import as_id
from ragcontract.files.paths import AnchoredPath
from ragcontract.files.rows import is_parquet, needs_pyarrow
from ragcontract.files.writing import beside, check_outputs, take_after
from ragcontract.runs.row_encoder import Further, Id, Result, RowEncoder


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
