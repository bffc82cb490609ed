"""``current_run.jsonl``: what the retriever returned, a row a query."""

from array import array
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct

from ragcontract.inputs.diagnostics import Diagnostics
from ragcontract.inputs.files import Progress, no_progress
from ragcontract.inputs.ids import Id, as_id, as_ids
from ragcontract.inputs.jsonl import JsonLines
from ragcontract.model import VERSION_FIELDS, Accepted, Latency, SourceFile
from ragcontract.numbers import count
from ragcontract.scoring.latency import summary

SPELL_CHECKED_ROWS = 100


# Rows come by the million and hold nothing that refers back to them: gc=False spares the collector looking.
class Result(Struct, frozen=True, kw_only=True, gc=False):
    """One retrieved item."""

    doc_id: Annotated[Id, Meta(description="The document.")]
    score: Annotated[float | None, Meta(description="The retriever's score; it never reorders the results.")] = None
    chunk_id: Annotated[Id | None, Meta(description="The chunk, where chunks are retrieved.")] = None
    metadata: Annotated[dict[str, Any] | None, Meta(description="Anything; not looked at.")] = None


class RunRow(Struct, frozen=True, kw_only=True, gc=False):
    """A line of the run file. The order of ``results`` is the ranking."""

    query_id: Annotated[Id, Meta(description="The id of a golden query.")]
    results: Annotated[list[Result], Meta(description="What was retrieved, best first.")]
    latency_ms: Annotated[
        Annotated[float, Meta(ge=0)] | None, Meta(description="How long the retrieval took, in milliseconds.")
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
        timed: Container[str] | None = None,
        repeats: bool = False,
    ) -> None:
        """Read the files as one run; put every row's document ids into ``keep`` where that is given.

        Latencies are those of the ``timed`` queries, of all where none are given. With ``repeats`` a query may have
        several rows.
        """
        self.unmeasured = 0
        self._keep = keep
        self._timed = timed
        self._repeats = repeats
        self._latencies = array("d")
        self._rows = JsonLines(paths, RunRow, diagnostics, spell_check=SPELL_CHECKED_ROWS, progress=progress)
        self._diagnostics = diagnostics
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
        seen: dict[str, tuple[str, int]] = {}
        unordered, first_unordered = 0, ""
        for line in self._rows:
            row = line.row
            query_id = as_id(row.query_id)
            if query_id in seen and not self._repeats:
                path, number = seen[query_id]
                self._diagnostics.problem(
                    f"{line.place}: query_id", f"{query_id!r} stands here again; it is first in {path}:{number}"
                )
                continue
            seen.setdefault(query_id, (line.path, line.number))
            if not _descending(row.results):
                unordered += 1
                first_unordered = first_unordered or line.place
            self._note_versions(row)
            if self._timed is None or query_id in self._timed:
                if row.latency_ms is None:
                    self.unmeasured += 1
                else:
                    self._latencies.append(row.latency_ms)
            doc_ids = as_ids([result.doc_id for result in row.results])
            if self._keep is not None:
                self._keep.setdefault(query_id, []).append(doc_ids)
            yield query_id, doc_ids
        if unordered:
            self._diagnostics.warning(
                f"{first_unordered}: the scores are not in descending order ({count(unordered, 'such row')}); "
                "ranks are the order of the results, scores never reorder them"
            )

    def _note_versions(self, row: RunRow) -> None:
        for name, values in self._versions.items():
            value = getattr(row, name)
            if value is not None:
                values[as_id(value)] = None


def _descending(results: list[Result]) -> bool:
    last = None
    for result in results:
        score = result.score
        if score is not None:
            if last is not None and score > last:
                return False
            last = score
    return True
