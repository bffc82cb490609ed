"""Collects what runs returned for each question: the candidates for labels."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.golden import PLACEHOLDER
from ragcontract.core.ids import as_id
from ragcontract.core.run import Result, RunRow, row_type
from ragcontract.core.text import shorten
from ragcontract.files.events import located
from ragcontract.files.opening import Progress, no_progress
from ragcontract.files.problems import Collector
from ragcontract.labelling.labels import Candidate
from ragcontract.runs.readers import RunFiles

ROW = row_type(frozenset({"query", "results.text"}))
BETWEEN = " … "  # the texts of two chunks of one document


class Pool(Struct, frozen=True, kw_only=True):
    """The candidates of each query, best first, and the questions in the rows that have them."""

    candidates: dict[str, tuple[Candidate, ...]]
    questions: dict[str, str]


def read_pool(paths: Sequence[str], top: int, problems: Collector, progress: Progress = no_progress) -> Pool:
    """Read runs and pool the first ``top`` documents of every row.

    A query may have several rows, in one run or in several: its candidates are those of all rows, at their best ranks.
    """
    found: dict[str, dict[str, Candidate]] = {}
    questions: dict[str, str] = {}
    for _, row in located(RunFiles(paths=paths, progress=progress).events(ROW), problems):
        query_id = as_id(row.query_id)
        pooled = found.setdefault(query_id, {})
        for doc_id, candidate in candidates_of(row, top).items():
            other = pooled.get(doc_id)
            pooled[doc_id] = candidate if other is None else _better(other, candidate)
        if row.query:
            questions.setdefault(query_id, row.query)
    candidates = {
        query_id: tuple(sorted(pooled.values(), key=lambda one: one.rank)) for query_id, pooled in found.items()
    }
    return Pool(candidates=candidates, questions=questions)


def candidates_of(row: RunRow, top: int) -> dict[str, Candidate]:
    """Return the first ``top`` documents of a row; the texts of chunks of one document are joined."""
    found: dict[str, Candidate] = {}
    for rank, result in enumerate(row.results, start=1):
        doc_id = as_id(result.doc_id)
        if doc_id in found:
            found[doc_id] = _with_chunk(found[doc_id], _text(result))
        elif len(found) < top and doc_id != PLACEHOLDER:
            found[doc_id] = Candidate(doc_id=doc_id, rank=rank, score=result.score, text=_text(result))
    return found


def _with_chunk(candidate: Candidate, text: str) -> Candidate:
    if not text or text in candidate.text:
        return candidate
    joined = f"{candidate.text}{BETWEEN}{text}" if candidate.text else text
    return replace(candidate, text=shorten(joined, bounds.LABEL_TEXT))


def _better(one: Candidate, other: Candidate) -> Candidate:
    best, worse = sorted((one, other), key=lambda candidate: candidate.rank)
    return best if best.text else replace(best, text=worse.text)


def _text(result: Result) -> str:
    """Return the start of a result's text as one line."""
    start = (result.text or "")[: 2 * bounds.LABEL_TEXT]  # more than is needed, because blanks are joined below
    return shorten(" ".join(start.split()), bounds.LABEL_TEXT)
