"""Readers of runs and stored baselines."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from msgspec import UNSET, Struct

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.ids import as_id
from ragcontract.core.run import RunRow, SourceFile
from ragcontract.files.events import Batch, Event, FileRead
from ragcontract.files.opening import Progress, no_progress
from ragcontract.files.patterns import existing_files
from ragcontract.files.problems import Problem
from ragcontract.files.rows import PARQUET, is_parquet, parquet_columns, read_rows
from ragcontract.runs.encoder import Id, Result, RowEncoder
from ragcontract.runs.journal_name import unfinished
from ragcontract.runs.stored import StoredEvent, stored_events

# Reading chunks from Parquet would take a third more time, and only reports on broken queries would show them.
UNREAD = ("results.chunk_id", "results.metadata")  # not loaded if the format can skip them, as unparsed fields
# A column of structs has the fields of all of its rows: each call would have the arguments of all others, as nulls.
OBJECTS = ("tool_calls", "messages", "checks")
RUN_SUFFIXES = (".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz", PARQUET)
IN_MEMORY = "(in memory)"

RunEvent: TypeAlias = Event[RunRow] | StoredEvent
Row: TypeAlias = Iterable[Result] | Mapping[str, Any]
# Mapping is invariant in its key type: a dict[str, …] is not a Mapping[str | int, …].
RunMapping: TypeAlias = Mapping[str, Row] | Mapping[int, Row] | Mapping[Id, Row]


class Reader(Protocol):
    """Yields the rows of one side, in order, and the problems in them."""

    def events(self, rows: type[RunRow], *, with_metrics: bool = False) -> Iterator[RunEvent]:
        """Yield rows as the given record type; ``with_metrics`` adds the metrics in a stored baseline."""


class RunFiles(Struct, frozen=True, kw_only=True):
    """A run in one or more files, given as paths or globs; JSON lines or Parquet, by file name."""

    paths: Sequence[str]
    progress: Progress = no_progress

    def events(self, rows: type[RunRow], *, with_metrics: bool = False) -> Iterator[Event[RunRow]]:  # noqa: ARG002
        """Yield the events of all files."""
        found, problems = existing_files(self.paths)
        yield from problems
        yield from (Problem(path, problem) for path in found if (problem := unfinished(path)) is not None)
        unreadable = {path: field for path in filter(is_parquet, found) if (field := _objects_in(path, rows))}
        for path, field in unreadable.items():
            yield Problem(path, f"is Parquet, from which {field} are not read; export the run as JSON lines")
        found = [path for path in found if path not in unreadable]
        unread = (*UNREAD, *rows.unparsed)
        yield from read_rows(
            found,
            rows,
            known=RunRow,
            spell_check=bounds.SPELL_CHECKED,
            compare_keys=bounds.RUN_KEYS_COMPARED,
            unread=unread,
            progress=self.progress,
        )


def _objects_in(path: str, rows: type[RunRow]) -> str | None:
    """Return a field that is wanted of a Parquet file and cannot be read from it.

    Messages are read wherever an answer is, in case they contradict it: where there are none, nothing does.
    """
    wanted = [name for name in OBJECTS if name in rows.__struct_fields__ and name not in rows.unparsed]
    if wanted == ["messages"] and "messages" not in parquet_columns(path):
        return None
    return next(iter(wanted), None)


class StoredFile(Struct, frozen=True, kw_only=True):
    """A baseline stored by ``rag-contract baseline``."""

    paths: Sequence[str]
    progress: Progress = no_progress

    def events(self, rows: type[RunRow], *, with_metrics: bool = False) -> Iterator[RunEvent]:  # noqa: ARG002
        """Yield the events of the file."""
        found, problems = existing_files(self.paths)
        yield from problems
        if len(found) > 1:
            yield Problem(found[0], "is one of several baselines; give one baseline.json, or run files (.jsonl)")
        elif found:
            yield from stored_events(found[0], with_metrics=with_metrics, progress=self.progress)


class InMemory(Struct, frozen=True, kw_only=True):
    """A run given as a mapping of query ids to results, as :meth:`RunWriter.write` accepts them.

    In place of results, a query may have a mapping with all the fields of its row, ``results`` among them.
    """

    run: RunMapping

    def events(self, rows: type[RunRow], *, with_metrics: bool = False) -> Iterator[RunEvent]:  # noqa: ARG002
        """Yield the rows, and a file with the digest of the one that ``RunWriter`` would write."""
        encoder = RowEncoder(IN_MEMORY, {}, rows)
        digest = hashlib.sha256()
        seen: set[str] = set()
        for query_id, given in self.run.items():
            fields: dict[str, Any] = dict(given) if isinstance(given, Mapping) else {"results": given}
            try:
                line, row = encoder.row(query_id, fields.pop("results", UNSET), fields.pop("latency_ms", None), fields)
            except InputError as error:
                yield from (Problem(*problem.split(": ", 1)) for problem in error.problems)
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


def is_run(path: str) -> bool:
    """Return whether a baseline is a run file, by its name."""
    return path.lower().endswith(RUN_SUFFIXES)


def open_run(paths: Sequence[str], progress: Progress = no_progress) -> Reader:
    """Return the reader of a run."""
    return RunFiles(paths=paths, progress=progress)


def open_stored(path: str, progress: Progress = no_progress) -> Reader:
    """Return the reader of a stored baseline."""
    return StoredFile(paths=[path], progress=progress)


def open_baseline(paths: Sequence[str], progress: Progress = no_progress) -> Reader:
    """Return the reader of a baseline: a run if all names are those of JSON lines or Parquet, else a stored one."""
    if all(map(is_run, paths)):
        return RunFiles(paths=paths, progress=progress)
    return StoredFile(paths=paths, progress=progress)
