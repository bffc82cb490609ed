"""``current_run.jsonl``: what the retriever returned, a row a query."""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

from msgspec import Meta, Struct

from ragcontract.inputs.diagnostics import Diagnostics
from ragcontract.inputs.files import Progress, no_progress
from ragcontract.inputs.ids import Id, as_id
from ragcontract.inputs.jsonl import JsonLines
from ragcontract.model import VERSION_FIELDS, Accepted, GoldenQuery, Latency, SourceFile
from ragcontract.numbers import count
from ragcontract.scoring.latency import summary

SPELL_CHECKED_ROWS = 100
MAX_MS = 1e9


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
        self._rows = JsonLines(paths, RunRow, diagnostics, spell_check=SPELL_CHECKED_ROWS, progress=progress)
        self._diagnostics = diagnostics
        self._last_versions: tuple[str | int | None, ...] = (None,) * len(VERSION_FIELDS)
        self._versions: dict[str, dict[str, None]] = {name: {} for name in VERSION_FIELDS}

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
        return {name: list(values) for name, values in self._versions.items() if values}

    def __iter__(self) -> Iterator[tuple[str, list[str]]]:
        """Yield ``(query_id, doc_ids)`` of every good row."""
        rows, golden = self._rows, self._golden
        seen: dict[str, int] = {}  # line and file in one number, and golden ids for keys: there may be a million
        unordered, first_unordered = 0, ""
        file, files = 0, len(self._paths)
        query: GoldenQuery | None = None
        for row in rows:
            query_id = row.query_id if type(row.query_id) is str else str(row.query_id)
            if query_id in seen and not self._repeats:
                first_line, first_file = divmod(seen[query_id], files)
                self._diagnostics.problem(
                    f"{rows.place}: query_id",
                    f"{query_id!r} stands here again; it is first in {self._paths[first_file]}:{first_line} "
                    "(several rows a query are averaged with --repeats)",
                )
                continue
            while rows.path != self._paths[file]:
                file += 1
            if golden is not None:
                query = golden.get(query_id)
            seen[query.id if query else query_id] = rows.number * files + file
            results = row.results
            if not descending(results):
                unordered += 1
                first_unordered = first_unordered or rows.place
            if query or golden is None:
                self._note(row)
            doc_ids = [doc_id if type(doc_id := result.doc_id) is str else str(doc_id) for result in results]
            if self._keep is not None:
                self._keep.setdefault(query_id, []).append(doc_ids)
            yield query_id, doc_ids
        if unordered:
            self._diagnostics.warning(
                f"{first_unordered}: the scores are not in descending order ({count(unordered, 'such row')}); "
                "ranks are the order of the results, scores never reorder them"
            )

    def _note(self, row: RunRow) -> None:
        if row.latency_ms is None:
            self.unmeasured += 1
        else:
            self._latencies.append(row.latency_ms)
        versions = (row.embedding_model, row.index_version, row.chunking_version, row.retriever_version)
        if versions != self._last_versions:  # rows of one run have the same, as a rule
            self._last_versions = versions
            for name, value in zip(VERSION_FIELDS, versions, strict=True):
                if value is not None:
                    self._versions[name][as_id(value)] = None


def descending(results: list[Result]) -> bool:
    """Tell whether the scores, where there are any, are in the order of the results."""
    scores = [score for result in results if (score := result.score) is not None]
    return scores == sorted(scores, reverse=True)
