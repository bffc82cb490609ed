"""``current_run.jsonl``: what the retriever returned, a row a query."""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Annotated

from msgspec import Meta, Struct

from ragcontract.core.ids import Id, as_id, as_ids
from ragcontract.core.numbers import count
from ragcontract.files.opening import Progress, no_progress
from ragcontract.files.problems import Diagnostics
from ragcontract.files.rows import rows_of
from ragcontract.model import VERSION_FIELDS, Accepted, GoldenQuery, Latency, SourceFile
from ragcontract.statistics.latency import summary

SPELL_CHECKED_ROWS = 100
NOT_NEEDED = ("results.chunk_id", "results.metadata")  # to judge a run
MAX_MS = 1e9
VERSIONS = attrgetter(*VERSION_FIELDS)


class Skipped(Struct, frozen=True, gc=False):
    """An object of any fields, which are read past: rows may carry texts by the megabyte."""


# Rows come by the million and hold nothing that refers back to them: gc=False spares the collector looking.
class Result(Struct, frozen=True, kw_only=True, gc=False):
    """One retrieved item."""

    doc_id: Annotated[Id, Meta(description="The document.")]
    score: Annotated[float | None, Meta(description="The retriever's score; it never reorders the results.")] = None
    chunk_id: Annotated[Id | None, Meta(description="The chunk, where chunks are retrieved.")] = None
    metadata: Annotated[Skipped | None, Meta(description="Anything; not looked at.")] = None


class RunRow(Struct, frozen=True, kw_only=True, gc=False):
    """A line of the run file. The order of ``results`` is the ranking."""

    query_id: Annotated[Id, Meta(description="The id of a golden query.")]
    results: Annotated[list[Result], Meta(description="What was retrieved, best first.")]
    latency_ms: Annotated[
        Annotated[float, Meta(ge=0, le=MAX_MS, title="a number from 0 to a billion")] | None,
        Meta(description="How long the retrieval took, in milliseconds."),
    ] = None
    embedding_model: Annotated[Id | None, Meta(description="The embedding model and its version.")] = None
    index_version: Annotated[Id | None, Meta(description="The version of the index.")] = None
    chunking_version: Annotated[Id | None, Meta(description="The version of the chunking.")] = None
    retriever_version: Annotated[Id | None, Meta(description="The version of the retriever.")] = None


class RunRows:
    """The rows of a run as pairs of a query id and its document ids, best first.

    Each query stands there once, unless repeats are allowed.

    ``files``, ``versions`` and ``latency`` are complete once the iteration is over.
    """

    created_at: str | None = None
    accepted: Sequence[Accepted] = ()
    k: list[int] | None = None
    questions: Mapping[str, str] = {}  # a run does not say what was asked

    def __init__(
        self,
        paths: Sequence[str],
        diagnostics: Diagnostics,
        progress: Progress = no_progress,
        *,
        keep: dict[str, list[list[str]]] | None = None,
        golden: Mapping[str, GoldenQuery] | None = None,
        repeats: bool = False,
    ) -> None:
        """Read the files as one run; put every row's document ids into ``keep`` where that is given.

        Latencies and versions are those of the ``golden`` queries' rows, of all where none are given. With
        ``repeats`` a query may have several rows.
        """
        self.unmeasured = 0
        self._keep = keep
        self._golden = golden
        self._paths = paths
        self._repeats = repeats
        self._latencies = array("d")
        self._rows = rows_of(
            paths, RunRow, diagnostics, spell_check=SPELL_CHECKED_ROWS, unread=NOT_NEEDED, progress=progress
        )
        self._diagnostics = diagnostics
        self._versions: dict[tuple[str | int | None, ...], None] = {}

    @property
    def files(self) -> list[SourceFile]:
        """The files and their digests."""
        return self._rows.files

    @property
    def latency(self) -> Latency | None:
        """The latencies of the rows that have one; ``unmeasured`` counts the others."""
        return summary(self._latencies)

    @property
    def versions(self) -> dict[str, list[str]]:
        """The distinct values of each version field that the rows have."""
        columns = zip(VERSION_FIELDS, zip(*self._versions, strict=True), strict=False)  # there may be no row
        found = {name: dict.fromkeys(as_id(value) for value in column if value is not None) for name, column in columns}
        return {name: list(values) for name, values in found.items() if values}

    def __iter__(self) -> Iterator[tuple[str, list[str]]]:
        """Yield ``(query_id, doc_ids)`` of every good row."""
        golden, keep, lines = self._golden, self._keep, self._rows
        seen: dict[str, int] = {}  # line and file in one number: there may be a million
        unordered, first_unordered = 0, ""
        file, files = 0, len(self._paths)
        for rows in lines.batches():
            while lines.path != self._paths[file]:
                file += 1
            known: list[RunRow] = []
            for number, row in enumerate(rows, lines.number):
                query_id, results = row.query_id, row.results
                if type(query_id) is not str:
                    query_id = str(query_id)
                if query_id in seen and not self._repeats:
                    self._tell_repeated(query_id, number, *divmod(seen[query_id], files))
                    continue
                if golden is None:
                    known.append(row)
                    seen[query_id] = number * files + file
                elif query := golden.get(query_id):
                    known.append(row)
                    query_id = query.id  # the row's own copy need not be held
                    seen[query_id] = number * files + file
                if not descending([result.score for result in results]):
                    unordered += 1
                    first_unordered = first_unordered or f"{lines.path}:{number}"
                doc_ids = as_ids([result.doc_id for result in results])
                if keep is not None:
                    keep.setdefault(query_id, []).append(doc_ids)
                yield query_id, doc_ids
            self._note(known)
        if unordered:
            self._diagnostics.warning(
                f"{first_unordered}: the scores are not in descending order ({count(unordered, 'such row')}); "
                "ranks are the order of the results, scores never reorder them"
            )

    def _tell_repeated(self, query_id: str, number: int, first_line: int, first_file: int) -> None:
        self._diagnostics.problem(
            f"{self._rows.path}:{number}: query_id",
            f"{query_id!r} stands here again; it is first in {self._paths[first_file]}:{first_line} "
            "(several rows a query are averaged with --repeats)",
        )

    def _note(self, rows: list[RunRow]) -> None:
        latencies = [ms for row in rows if (ms := row.latency_ms) is not None]
        self._latencies.extend(latencies)
        self.unmeasured += len(rows) - len(latencies)
        self._versions |= dict.fromkeys(map(VERSIONS, rows))


def descending(scores: list[float | None]) -> bool:
    """Tell whether the scores, where there are any, are in descending order."""
    try:
        return scores == sorted(scores, reverse=True)  # type: ignore[type-var]
    except TypeError:  # some results have none
        present = [score for score in scores if score is not None]
        return present == sorted(present, reverse=True)
