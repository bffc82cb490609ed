"""The readers of runs and stored baselines, and the check of the order of scores.

The order of results is the ranking, and scores never reorder them. If scores rise in every row in which they differ,
they are distances, of which the smallest is the best. Otherwise, a warning reports rows whose scores do not descend.

The journal of a recording lies beside the run until the recording has ended. A run with a journal may be old.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.ids import as_id
from ragcontract.core.numbers import count
from ragcontract.core.phrase import Location, Place
from ragcontract.core.run import RunRow, row_type
from ragcontract.files.opening import Progress, no_progress
from ragcontract.files.paths import existing_files
from ragcontract.files.problems import Collector, Event, Problem, Problems, located
from ragcontract.files.rows import format_of, is_parquet, parquet_columns, read_rows
from ragcontract.runs.baseline_file import StoredEvent, stored_events

# Fields that are not loaded if the format can skip them. Reading chunks from Parquet would take a third more time, and
# only reports on broken queries would show them.
UNREAD = ("results.chunk_id", "results.metadata")
# Fields not read from Parquet. A column of structs has the fields of all of its rows, so each call would have the
# arguments of all others, as nulls.
OBJECTS = ("tool_calls", "messages", "checks")
AGAIN = "run `rag-contract record` again, which goes on where it ended, or delete that file"
RunEvent: TypeAlias = Event[RunRow] | StoredEvent


class Reader(Protocol):
    """Yields the rows of one side, in order, and the problems in them."""

    def events(self, rows: type[RunRow], *, with_metrics: bool = False) -> Iterator[RunEvent]:
        """Yield rows as the given record type; ``with_metrics`` adds the metrics in a stored baseline."""


class RunFiles(Struct, frozen=True, kw_only=True):
    """A run in one or more files, given as paths or globs; JSON lines or Parquet, by file name."""

    paths: Sequence[str]
    progress: Progress = no_progress

    def events(self, rows: type[RunRow], *, with_metrics: bool = False) -> Iterator[Event[RunRow]]:  # noqa: ARG002
        files, problems = existing_files(self.paths)
        yield from problems
        yield from (Problem(path, problem) for path in files if (problem := unfinished(path)) is not None)
        unreadable = {path: field for path in filter(is_parquet, files) if (field := _objects_in(path, rows))}
        for path, field in unreadable.items():
            yield Problem(path, f"is Parquet, from which {field} are not read; export the run as JSON lines")
        files = [path for path in files if path not in unreadable]
        unread = (*UNREAD, *rows.unparsed)
        yield from read_rows(
            files,
            rows,
            known=RunRow,
            spell_check=bounds.SPELL_CHECKED,
            compare_keys=bounds.RUN_KEYS_COMPARED,
            unread=unread,
            progress=self.progress,
        )


def _objects_in(path: str, rows: type[RunRow]) -> str | None:
    """Return a field that is wanted from a Parquet file and cannot be read from it.

    Messages are read with every answer, because they may contradict it. A file without messages has none that do.
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
        files, problems = existing_files(self.paths)
        yield from problems
        if len(files) > 1:
            yield Problem(files[0], "is one of several baselines; give one baseline.json, or run files (.jsonl)")
        elif files:
            yield from stored_events(files[0], with_metrics=with_metrics, progress=self.progress)


def is_run(path: str) -> bool:
    """Return whether a baseline is a run file according to its name."""
    return format_of(path) is not None


def open_run(paths: Sequence[str], progress: Progress = no_progress) -> Reader:
    """Return the reader of a run."""
    return RunFiles(paths=paths, progress=progress)


def open_stored(path: str, progress: Progress = no_progress) -> Reader:
    """Return the reader of a stored baseline."""
    return StoredFile(paths=[path], progress=progress)


def open_baseline(paths: Sequence[str], progress: Progress = no_progress) -> Reader:
    """Return the reader of a baseline, which is a run if all names are those of JSON lines or Parquet."""
    if all(map(is_run, paths)):
        return RunFiles(paths=paths, progress=progress)
    return StoredFile(paths=paths, progress=progress)


def read_doc_ids(paths: Sequence[str]) -> tuple[dict[str, list[str]], Problems]:
    """Return the document ids of each query, best first, and the problems. A second row of a query is a problem.

    A row without ``results``, which is about an answer only, has no ids.
    """
    problems = Collector()
    rows: dict[str, list[str]] = {}
    first: dict[str, Location] = {}
    for query_id, doc_ids, location in doc_id_rows(paths, problems, results_required=False):
        if query_id in rows:
            problems.problem(location.at("query_id"), f"duplicate id {query_id!r}, first defined at {first[query_id]}")
        else:
            rows[query_id], first[query_id] = doc_ids, location
    return rows, problems.collected()


def doc_id_rows(
    paths: Sequence[str], problems: Collector, progress: Progress = no_progress, *, results_required: bool = True
) -> Iterator[tuple[str, list[str], Location]]:
    """Yield ``(query_id, doc_ids, location)`` of each valid row; ``problems`` collects problems and warnings."""
    events = RunFiles(paths=paths, progress=progress).events(row_type(results_required=results_required))
    order = OrderCheck()
    for location, row in located(events, problems):
        order.note([result.score for result in row.results], location)
        yield as_id(row.query_id), row.doc_ids, location
    if warning := order.warning():
        problems.warning(warning)


def journal_beside(run: str | os.PathLike[str]) -> Path:
    """Return the path of a run's journal. If the run is a link, the journal is beside the file that it leads to."""
    path = Path(run)
    path = Path(os.path.realpath(path)) if path.is_symlink() else path
    return path.with_name(f".{path.name}.journal")


def is_journal(path: Path) -> bool:
    """Return whether a file has the name of a journal."""
    return path.name.startswith(".") and path.name.endswith(".journal")


def unfinished(run: str) -> str | None:
    """Return the message about a run whose recording did not end, so that the file may be of an earlier recording."""
    journal = journal_beside(run)
    if not os.path.lexists(journal):
        return None
    return f"may be old: a recording of it did not end, as {journal} shows; {AGAIN}"


Scores = list[float | None]


def descending(scores: Scores) -> bool:
    """Return whether the scores are in descending order, ignoring results without one."""
    try:
        return scores == sorted(scores, reverse=True)  # type: ignore[type-var]
    except TypeError:  # some results have no score
        present = _present(scores)
        return present == sorted(present, reverse=True)


class OrderCheck:
    """Counts the rows whose scores do not descend; ``falling`` says whether scores fall in any other row."""

    def __init__(self) -> None:
        self.falling = False
        self._unordered = self._rising = 0
        self._first: Location | None = None

    def note(self, scores: Scores, location: Location) -> None:
        if descending(scores):
            self.falling = self.falling or falls(scores)
        else:
            self.out_of_order(scores, location)

    def out_of_order(self, scores: Scores, location: Location) -> None:
        self._unordered += 1
        self._first = self._first or location
        self._rising += rises(scores)

    @property
    def distances(self) -> bool:
        return look_like_distances(self._unordered, self._rising, falling=self.falling)

    def warning(self) -> str | None:
        """Return the warning about scores out of order; None if there are none, or if they look like distances."""
        return out_of_order(self._first, self._unordered) if self._first and not self.distances else None


def look_like_distances(unordered: int, rising: int, *, falling: bool) -> bool:
    """Return whether scores rise in every row in which they differ, as distances do. A single row may do so by chance.

    ``unordered`` counts the rows that do not descend, and ``rising`` those of them that rise. ``falling`` says whether
    scores fall in any other row.
    """
    return rising == unordered > 1 and not falling


def falls(scores: Scores) -> bool:
    """Return whether descending scores are not all the same."""
    if len(scores) < 2:  # noqa: PLR2004 (a pair)
        return False
    first, last = scores[0], scores[-1]
    if first is None or last is None:
        present = _present(scores)
        return bool(present) and present[0] > present[-1]
    return first > last


def rises(scores: Scores) -> bool:
    """Return whether scores ascend and are not all the same, ignoring results without one."""
    present = _present(scores)
    return present == sorted(present) and present[:1] < present[-1:]


def _present(scores: Scores) -> list[float]:
    return [score for score in scores if score is not None]


def out_of_order(location: Place, rows: int) -> str:
    """Return the warning about ``rows`` rows with unordered scores, of which the first is at ``location``."""
    return (
        f"{location}: the scores are not in descending order ({count(rows, 'such row')}); "
        "ranks are the order of the results, scores never reorder them"
    )
