"""The result of evaluating a run or a baseline."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from ragcontract.core.finding import Said
from ragcontract.core.numbers import count
from ragcontract.core.rule import Violation
from ragcontract.core.run import Confusion, Latency, ListedResult, QueryScore, SourceFile, Values
from ragcontract.evaluation.columns import ValuesByQuery
from ragcontract.evaluation.observations import Depth, Duplicates, UnseenIds
from ragcontract.files.problems import Problems
from ragcontract.runs.baseline_contract import Expected
from ragcontract.runs.baseline_file import StoredHead


class Side(Struct, frozen=True, kw_only=True):
    """The evaluated rows of a run or a baseline.

    ``scores`` and ``columns`` (one for each family except the ranking metrics) are by query id. ``violations`` are
    those of rules that need the row. ``missing`` are golden queries without a row, ``lacking`` those without a score,
    by its name; ``undeclared`` are the first names of scores that no metric reads, ``unread_checks``
    count the rows in which a check failed that no rule of the query reads. ``unknown`` are the first query ids
    that are not golden queries, and ``more_unknown`` counts those that are not listed. ``unmeasured`` counts the rows
    without a latency, and ``failed`` are the queries of which a row has an error in place of what it would have had.
    ``asked_otherwise`` are the queries of which a row has a conversation with other questions than the golden turns.
    ``modes`` and ``labels`` count the rows by expected and actual mode and label; a stored baseline
    has none. ``depth`` is None if there are no rows. ``distances`` says whether the scores look like
    distances. ``unseen_ids`` are the relevant ids that never occur, which are only searched for on this machine.
    ``pattern_ids`` are forbidden ids that never occur and look like patterns, each with where it is forbidden.
    ``rows`` counts the rows of each query if any has several and they have no order; ``runs`` are the good runs whose
    means the values are. ``changed`` are queries for which a baseline has a different question, ``expected`` has
    what its queries expected where that differs from the golden file, ``stored`` is the head of that baseline, and
    ``incomparable`` are its metrics that were computed in another way. ``doc_ids`` has the document ids of each row if
    the plan requests them. A baseline has the ``first_ids`` of its rows and the judged ``pools`` of its queries, see
    :mod:`ragcontract.core.ids`. ``retrieved`` has the top k of the queries that the run breaks; ``said`` has what
    was said for them, in part.
    """

    scores: dict[str, QueryScore]
    columns: tuple[ValuesByQuery, ...] = ()
    violations: dict[str, tuple[Violation, ...]] = {}
    files: tuple[SourceFile, ...] = ()
    versions: dict[str, list[str]] = {}
    missing: tuple[str, ...] = ()
    lacking: dict[str, tuple[str, ...]] = {}
    undeclared: tuple[str, ...] = ()
    unread_checks: dict[str, int] = {}
    unknown: tuple[str, ...] = ()
    more_unknown: int = 0
    rows: dict[str, int] = {}
    runs: int = 1
    latency: Latency | None = None
    unmeasured: int = 0
    failed: tuple[str, ...] = ()
    asked_otherwise: tuple[str, ...] = ()
    modes: Confusion = {}
    labels: Confusion = {}
    duplicates: Duplicates = Duplicates()
    depth: Depth | None = None
    distances: bool = False
    unseen_ids: UnseenIds = UnseenIds()
    pattern_ids: dict[str, str] = {}
    changed: tuple[str, ...] = ()
    expected: dict[str, Expected] = {}
    stored: StoredHead | None = None
    incomparable: frozenset[str] = frozenset()
    doc_ids: dict[str, list[list[str]]] = {}
    pools: dict[str, bytes] = {}
    first_ids: dict[str, bytes] = {}
    retrieved: dict[str, tuple[ListedResult, ...]] = {}
    said: dict[str, Said] = {}
    problems: Problems = Problems()

    @property
    def name(self) -> str:
        """The path of the first file, and the number of further files."""
        first, *more = [file.path for file in self.files] or ["the run"]
        return f"{first} (and {count(len(more), 'more file')})" if more else first

    def values(self, family: int, query_ids: Iterable[str]) -> list[Values | None]:
        """Return queries' values of a family, the ranking metrics being family 0; None for one that is not scored."""
        scores = self.scores
        if family > len(self.columns):  # a baseline has no overlap with itself
            return [None for _ in query_ids]
        if family:
            return self.columns[family - 1].of(query_ids, scores)
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
