"""What a run or a baseline comes to."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from ragcontract.core.numbers import count
from ragcontract.core.rule import Violation
from ragcontract.core.run import Latency, SourceFile
from ragcontract.core.scores import QueryScore, Values
from ragcontract.evaluation.columns import Column
from ragcontract.evaluation.duplicates import Duplicates
from ragcontract.files.problems import Problems
from ragcontract.runs.stored import StoredHead


class Side(Struct, frozen=True, kw_only=True):
    """One side, whole when it is made.

    ``scores`` and the ``columns`` (one for each further family) are by query id; ``violations`` are those of rules that
    need the row. Golden queries without a row are ``missing``, rows without a golden query ``unknown``: the first are
    named, and ``more_unknown`` counts the other rows (of a cluster's run: ids). ``unmeasured`` counts the rows without
    a latency. Where a cluster's queries have several rows, ``rows`` counts them, since they have no order. ``changed``
    queries were asked another question by a stored baseline, whose ``stored`` head has the rest. ``incomparable``
    metrics were computed by something else there. ``doc_ids`` of each row are kept where they were asked for.
    """

    scores: dict[str, QueryScore]
    columns: tuple[Column, ...] = ()
    violations: dict[str, tuple[Violation, ...]] = {}
    files: tuple[SourceFile, ...] = ()
    versions: dict[str, list[str]] = {}
    missing: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    more_unknown: int = 0
    rows: dict[str, int] = {}
    latency: Latency | None = None
    unmeasured: int = 0
    duplicates: Duplicates = Duplicates()
    changed: tuple[str, ...] = ()
    stored: StoredHead | None = None
    incomparable: frozenset[str] = frozenset()
    doc_ids: dict[str, list[list[str]]] = {}
    problems: Problems = Problems()

    @property
    def name(self) -> str:
        """The side's first file, and how many more it has."""
        first, *more = [file.path for file in self.files] or ["the run"]
        return f"{first} (and {count(len(more), 'more file')})" if more else first

    def values(self, family: int, query_ids: Iterable[str]) -> list[Values | None]:
        """Return queries' values of a family, the ranking metrics being family 0; None for one that is not scored."""
        scores = self.scores
        if family:
            column = self.columns[family - 1]
            return [column[query_id] if query_id in scores else None for query_id in query_ids]
        return [score.values if (score := scores.get(query_id)) else None for query_id in query_ids]

    def values_of_rows(self, family: int, query_id: str) -> Sequence[Values]:
        """Return the values of a family for each row of a query that has any."""
        if family:
            return self.columns[family - 1].rows(query_id)
        score = self.scores[query_id]
        return [one.values for one in score.repeats] or [score.values]

    @property
    def queries(self) -> int:
        """How many queries the side has rows for, known or not."""
        absent = len(self.missing) if self.missing and self.missing[0] in self.scores else 0  # scored as not found
        return len(self.scores) - absent + len(self.changed) + len(self.unknown) + self.more_unknown
