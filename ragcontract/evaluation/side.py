"""The result of evaluating a run or a baseline, with the metric values of each family by query."""

from array import array
from collections.abc import Container, Iterable, Mapping, Sequence
from math import isnan, nan
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from ragcontract.core.finding import Said
from ragcontract.core.numbers import more
from ragcontract.core.phrase import Location
from ragcontract.core.rule import Violation
from ragcontract.core.run import Confusion, Latency, ListedResult, QueryScore, SourceFile, Values
from ragcontract.evaluation.observations import Depth, Duplicates, UnseenIds
from ragcontract.files.problems import Problems
from ragcontract.runs.baseline_contract import Expected
from ragcontract.runs.baseline_file import StoredHead
from ragcontract.statistics.means import averaged_values

if TYPE_CHECKING:
    from ragcontract.judgments.check import UsedJudgments


class ValuesByQuery(Protocol):
    """The values of one family by query, and those of each row of a query."""

    def __getitem__(self, query_id: str) -> Values:
        """Return the values of a query, empty if it has none."""

    def of(self, query_ids: Iterable[str], scored: Container[str]) -> list[Values | None]:
        """Return the values of several queries; None for one that is not among the ``scored`` ones."""

    def rows(self, query_id: str) -> Sequence[Values]:
        """Return the values of each row of a query."""


class JudgedShares:
    """The shares of judged results, which are stored with the ranks."""

    def __init__(self, scores: Mapping[str, QueryScore]) -> None:
        self._scores = scores

    def __getitem__(self, query_id: str) -> Values:
        """Return the values of a query, empty if it has none."""
        return self._scores[query_id].judged

    def of(self, query_ids: Iterable[str], scored: Container[str]) -> list[Values | None]:  # noqa: ARG002 (the seam's)
        get = self._scores.get
        return [score.judged if (score := get(query_id)) else None for query_id in query_ids]

    def rows(self, query_id: str) -> Sequence[Values]:
        score = self._scores[query_id]
        return [repeat.judged for repeat in score.repeats] or [score.judged]


class SharedColumn:
    """Values that many queries share. Equal values are stored as one object."""

    def __init__(self, usual: Values = ()) -> None:
        self._usual = usual  # the values of most queries
        self._shared: dict[Values, Values] = {}
        self._values: dict[str, Values] = {}
        self._repeats: dict[str, list[Values]] = {}

    def add(self, query_id: str, values: Values) -> None:
        """Add a row of a query. Empty values do not count."""
        if not values:
            return
        values = self._shared.setdefault(values, values)
        if query_id in self._values:
            self._repeats.setdefault(query_id, [self._values[query_id]]).append(values)
        else:
            self._values[query_id] = values

    def same(self, query_id: str) -> None:
        if query_id in self._values:
            self.add(query_id, self._usual)
        else:
            self._values[query_id] = self._usual

    def of(self, query_ids: Iterable[str], scored: Container[str]) -> list[Values | None]:  # noqa: ARG002 (the seam's)
        """Return the values of several queries; None for one that was not compared."""
        if self._repeats:
            return [self[query_id] or None for query_id in query_ids]
        return [*map(self._values.get, query_ids)]

    def __getitem__(self, query_id: str) -> Values:
        """Return the values of a query, or their means if it has several rows; empty if it has none."""
        if rows := self._repeats.get(query_id):
            return averaged_values(rows)
        return self._values.get(query_id, ())

    def rows(self, query_id: str) -> Sequence[Values]:
        return self._repeats.get(query_id) or [self[query_id]]


class Column:
    """The values of one family by query; 8 bytes per value.

    If a query has several rows, its values are the means, and ``rows`` returns those of each row.
    """

    def __init__(self, metrics: int, numbers: Mapping[str, int]) -> None:
        self._metrics = metrics  # how many the family has
        self._numbers = numbers  # of the queries, by id
        self._values = array("d", [nan]) * (metrics * len(numbers))
        self._repeats: dict[str, list[Values]] = {}

    def note(self, query_id: str, values: Values) -> None:
        """Store the values of a row; they are empty if the metrics do not apply to it."""
        if values:
            start = self._numbers[query_id] * self._metrics
            self._values[start : start + self._metrics] = array("d", values)

    def repeat(self, query_id: str, values: Values) -> None:
        """Add the values of a further row of a query; empty values do not count in the means."""
        if values:
            if query_id not in self._repeats:
                first = self[query_id]
                self._repeats[query_id] = [first] if first else []
            self._repeats[query_id].append(values)

    def replace(self, query_id: str, values: Values) -> None:
        """Store the values of a query instead of those of its rows; with empty values, it has none."""
        self._repeats.pop(query_id, None)
        self.note(query_id, values or (nan,) * self._metrics)

    def __getitem__(self, query_id: str) -> Values:
        """Return the values of a query, empty if it has none."""
        if rows := self._repeats.get(query_id):
            return averaged_values(rows)  # when read: a mean for each of many rows would be quadratic in them
        start = self._numbers[query_id] * self._metrics
        values = tuple(self._values[start : start + self._metrics])
        return () if isnan(values[0]) else values

    def of(self, query_ids: Iterable[str], scored: Container[str]) -> list[Values | None]:
        return [self[query_id] if query_id in scored else None for query_id in query_ids]

    def rows(self, query_id: str) -> Sequence[Values]:
        return self._repeats.get(query_id) or [self[query_id]]


class Side(Struct, frozen=True, kw_only=True):
    """The evaluated rows of a run or a baseline."""

    scores: dict[str, QueryScore]  # by query id
    columns: tuple[ValuesByQuery, ...] = ()  # the values of each family except the ranking metrics
    violations: dict[str, tuple[Violation, ...]] = {}  # of rules that read the row, by query id
    of_ranks: dict[str, tuple[Violation, ...]] = {}  # of rules about ranks, of queries with one row, if they were asked
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
    pattern_ids: dict[str, Location] = {}  # where forbidden ids that never occur and look like patterns are forbidden
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
        first = self.files[0].path if self.files else "the run"
        return first + more(len(self.files), 1, "file", " (and {})")

    def values(self, family: int, query_ids: Iterable[str]) -> list[Values | None]:
        """Return the queries' values of a family; None for a query without scores. Family 0 is the ranking metrics."""
        scores = self.scores
        if family > len(self.columns):  # a baseline has no overlap with itself
            return [None for _ in query_ids]
        if family:
            return self.columns[family - 1].of(query_ids, scores)
        return [score.values if (score := scores.get(query_id)) else None for query_id in query_ids]

    def values_of_rows(self, family: int, query_id: str) -> Sequence[Values]:
        if family:
            return self.columns[family - 1].rows(query_id)
        score = self.scores[query_id]
        return [repeat.values for repeat in score.repeats] or [score.values]

    @property
    def queries(self) -> int:
        """How many queries the side has rows for, golden or not."""
        absent = len(self.missing) if self.missing and self.missing[0] in self.scores else 0  # scored without a row
        return len(self.scores) - absent + len(self.changed) + len(self.unknown) + self.more_unknown
