"""The result of evaluating a run or a baseline."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from ragcontract.judgments.check import UsedJudgments


class Side(Struct, frozen=True, kw_only=True):
    """The evaluated rows of a run or a baseline."""

    scores: dict[str, QueryScore]  # by query id
    columns: tuple[ValuesByQuery, ...] = ()  # the values of each family except the ranking metrics
    violations: dict[str, tuple[Violation, ...]] = {}  # of rules that read the row, by query id
    files: tuple[SourceFile, ...] = ()
    versions: dict[str, list[str]] = {}  # the distinct values of each version field
    problems: Problems = Problems()
    # What is missing, and what is not read.
    missing: tuple[str, ...] = ()  # golden queries without a row
    lacking: dict[str, tuple[str, ...]] = {}  # golden queries without a score, by its name
    undeclared: tuple[str, ...] = ()  # the first names of scores that no metric reads
    unread_checks: dict[str, int] = {}  # the rows in which a check failed that no rule of the query reads, by its name
    unknown: tuple[str, ...] = ()  # the first query ids that are not golden queries
    more_unknown: int = 0  # rows of unknown queries that are not listed
    failed: tuple[str, ...] = ()  # queries with a row whose error replaces what the contract reads
    asked_otherwise: tuple[str, ...] = ()  # queries with a conversation that asks other questions than the golden turns
    # Counts.
    rows: dict[str, int] = {}  # the rows of each query if any has several and they have no order
    runs: int = 1  # the good runs whose means the values are
    latency: Latency | None = None
    unmeasured: int = 0  # rows without a latency
    modes: Confusion = {}  # rows by expected and actual mode; empty for a stored baseline
    labels: Confusion = {}  # rows by expected and actual label; empty for a stored baseline
    duplicates: Duplicates = Duplicates()
    depth: Depth | None = None  # None if there are no rows
    distances: bool = False  # whether the scores look like distances
    unseen_ids: UnseenIds = UnseenIds()  # the relevant ids that never occur; only searched for on this machine
    pattern_ids: dict[str, str] = {}  # where forbidden ids that never occur and look like patterns are forbidden
    # Of a baseline.
    changed: tuple[str, ...] = ()  # queries for which it has a different question
    without_results: dict[str, None] = {}  # queries that name documents since, and of which it has no results
    expected: dict[str, Expected] = {}  # what its queries expected, where the golden file differs now
    stored: StoredHead | None = None  # the head of a stored baseline
    incomparable: frozenset[str] = frozenset()  # metrics that a stored baseline computed in another way
    pools: dict[str, bytes] = {}  # the judged pools of its queries, see ragcontract.core.ids
    first_ids: dict[str, bytes] = {}  # of its rows, see ragcontract.core.ids
    # Of queries.
    doc_ids: dict[str, list[list[str]]] = {}  # the document ids of each row, if the plan requests them
    retrieved: dict[str, tuple[ListedResult, ...]] = {}  # the top k of queries that the run breaks
    said: dict[str, Said] = {}  # texts of the queries that the run breaks, shortened
    judged: "UsedJudgments | None" = None  # the judgments that its rows used

    @property
    def name(self) -> str:
        """The path of the first file, and the number of further files."""
        first, *more = [file.path for file in self.files] or ["the run"]
        return f"{first} (and {count(len(more), 'more file')})" if more else first

    def values(self, family: int, query_ids: Iterable[str]) -> list[Values | None]:
        """Return the queries' values of a family; None for a query without scores. Family 0 is the ranking metrics."""
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
        return [repeat.values for repeat in score.repeats] or [score.values]

    @property
    def queries(self) -> int:
        """How many queries the side has rows for, golden or not."""
        absent = len(self.missing) if self.missing and self.missing[0] in self.scores else 0  # scored without a row
        return len(self.scores) - absent + len(self.changed) + len(self.unknown) + self.more_unknown
