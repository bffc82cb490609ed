"""Observations: what is counted beside scores while the rows of a side are read.

* depth: how many results the rows have. A run that is shorter than k cannot show what ranks below.
* duplicates: documents that a row returns more than once, for example as chunks. They displace other documents.
* scores: which queries lack a score, and which scores no metric reads.
* unseen ids: which relevant ids never occur, which shows whether contract and run write ids the same way. In a good run
  this costs almost nothing, because the search ends once every relevant id has occurred.
* classes: the rows by expected and actual mode and label.
* unknown queries: the rows of queries that are not in the golden set.
"""

import sys
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.id_forms import Match, matches, most_common
from ragcontract.core.run import RunRow, mode_of
from ragcontract.evaluation.plan import Plan


class Depth(Struct, frozen=True, kw_only=True):
    """The number of results of a row."""

    most: int
    typical: int  # the median: at least half of the rows have no more


class DepthCounter:
    """Counts the results of rows."""

    def __init__(self) -> None:
        self._rows: Counter[int] = Counter()

    def note(self, rows: Sequence[list[str]]) -> None:
        lengths = set(map(len, rows))
        if len(lengths) == 1:  # the common case, and five times as fast
            self._rows[lengths.pop()] += len(rows)
        else:
            self._rows.update(map(len, rows))

    def result(self) -> Depth | None:
        return depth_of(self._rows)


def depth_of(rows: Counter[int]) -> Depth | None:
    """Return the depth of rows; ``rows`` counts them by their number of results."""
    half, below = sum(rows.values()) / 2, 0
    for length in sorted(rows):
        below += rows[length]
        if below >= half and below:
            return Depth(most=max(rows), typical=length)
    return None


class Duplicates(Struct, frozen=True, kw_only=True):
    """Documents that rows return more than once."""

    results: int = 0  # in the top k of all rows
    repeated: int = 0  # results in the top k that repeat a document of the same row
    short: int = 0  # rows with fewer than k distinct documents because some are repeated
    named: tuple[str, ...] = ()  # the first queries of short rows

    @property
    def rate(self) -> float:
        """The fraction of repeated results; 0 if there are no results."""
        return self.repeated / self.results if self.results else 0.0


class DuplicateCounter:
    """Counts duplicates row by row."""

    def __init__(self, k: int) -> None:
        self._k = k  # the largest cut-off
        self._results = self._repeated = self._short = 0
        self._named: list[str] = []

    def note(self, query_id: str, doc_ids: list[str]) -> bool:
        """Count a row; return whether it has too few documents because some are repeated."""
        top = doc_ids[: self._k]
        self._results += len(top)
        distinct = len(set(top))
        if distinct == len(top):  # the common case: no duplicates
            return False
        self._repeated += len(top) - distinct
        if len(set(doc_ids)) >= self._k:
            return False
        self._short += 1
        if len(self._named) < bounds.NAMES and query_id not in self._named:
            self._named.append(query_id)
        return True

    def result(self) -> Duplicates:
        return Duplicates(results=self._results, repeated=self._repeated, short=self._short, named=tuple(self._named))


class ScoreGaps:
    """Collects the scores that queries lack, and the names of scores that no metric reads."""

    def __init__(self, known: Iterable[str]) -> None:
        self._known = frozenset(known)  # the scores that metrics read
        self._lacking: dict[str, dict[str, None]] = {}
        self._undeclared: dict[str, None] = {}

    def note(self, query_id: str, lacking: Iterable[str]) -> None:
        for name in lacking:
            self._lacking.setdefault(name, {})[query_id] = None

    def unread(self, scores: Mapping[str, object] | None) -> list[str]:
        """Note the names of a row's scores that no metric reads, and return them; none once there are enough."""
        if not scores or len(self._undeclared) >= bounds.NAMES or self._known.issuperset(scores):
            return []
        new = [name for name in scores if name not in self._known][: bounds.NAMES]
        self._undeclared |= dict.fromkeys(new)
        return new

    def lacking(self) -> dict[str, tuple[str, ...]]:
        return {name: tuple(query_ids) for name, query_ids in self._lacking.items()}

    def undeclared(self) -> tuple[str, ...]:
        return tuple(self._undeclared)[: bounds.NAMES]


class UnseenIds(Struct, frozen=True, kw_only=True):
    """How many relevant ids of the queries with rows never occur, and in which other form they do."""

    relevant: int = 0
    never: int = 0  # relevant ids that occur in no row
    compared: int = 0  # of those that never occur: compared with ids that do
    matched: int = 0  # of those compared: occur in the form of the example
    example: Match | None = None
    retrieved: tuple[str, ...] = ()  # the first ids of the run


class UnseenIdSearch:
    """Searches the rows of a run for the relevant ids of all golden queries."""

    def __init__(self, golden: Mapping[str, GoldenQuery]) -> None:
        self._golden = golden
        self._unseen = set(chain.from_iterable(query.relevant_doc_ids for query in golden.values()))
        self._relevant = len(self._unseen)
        self._held: list[tuple[GoldenQuery, list[str]]] = []
        self._room = bounds.COMPARED_IDS

    def note(self, rows: Iterable[list[str]]) -> None:
        if self._unseen:
            self._unseen.difference_update(*rows)

    def hold(self, query: GoldenQuery, doc_ids: list[str]) -> None:
        """Hold a row that lacks a relevant document while there is room, to compare its ids with the document's."""
        if self._unseen and self._room > 0:
            self._held.append((query, doc_ids))
            self._room -= len(doc_ids)

    def result(self, without_row: Collection[str]) -> UnseenIds:
        """Return the relevant ids that never occurred; those of queries ``without_row`` do not count."""
        if not self._unseen:
            return UnseenIds(relevant=self._relevant)
        relevant, unseen = self._relevant, self._unseen
        if without_row:
            absent = set(without_row)
            having = [query for query_id, query in self._golden.items() if query_id not in absent]
            wanted = set(chain.from_iterable(query.relevant_doc_ids for query in having))
            relevant, unseen = len(wanted), unseen & wanted
        compared = [
            doc_id
            for doc_id in dict.fromkeys(chain.from_iterable(query.relevant_doc_ids for query, _ in self._held))
            if doc_id in unseen
        ]
        example, matched = most_common(matches(compared, chain.from_iterable(doc_ids for _, doc_ids in self._held)))
        retrieved = dict.fromkeys(chain.from_iterable(doc_ids[:1] for _, doc_ids in self._held[: bounds.NAMES]))
        return UnseenIds(
            relevant=relevant,
            never=len(unseen),
            compared=len(compared),
            matched=matched,
            example=example,
            retrieved=tuple(retrieved),
        )


class ClassCounter:
    """Counts rows by expected and actual mode and label, each only if the plan ``needs`` that field."""

    def __init__(self, needs: frozenset[str]) -> None:
        self._has_modes, self._has_labels = "mode" in needs, "label" in needs
        self.modes: Counter[tuple[str, str | None]] = Counter()
        self.labels: Counter[tuple[str, str | None]] = Counter()

    def note(self, query: GoldenQuery, row: RunRow) -> None:
        self._count(query, mode_of(row) if self._has_modes else None, row.label if self._has_labels else None)

    def note_missing(self, query: GoldenQuery) -> None:
        """Count a query without a row, whose actual mode and label are None."""
        self._count(query, None, None)

    def _count(self, query: GoldenQuery, mode: str | None, label: str | None) -> None:
        if query.answer is None:
            return
        if self._has_modes and query.answer.expected_mode is not None:
            self.modes[query.answer.expected_mode, mode] += 1
        if self._has_labels and query.answer.expected_label is not None:
            self.labels[query.answer.expected_label, label] += 1


class UnknownQueries:
    """The query ids of a side that the golden set does not have.

    All ids of a baseline are listed. Of a run, the first ``bounds.UNKNOWN`` are listed, and ``more`` counts the rows of
    the others.
    """

    def __init__(self, plan: Plan) -> None:
        self._not_judged = plan.not_judged  # golden queries outside the scope are known
        self._most = sys.maxsize if plan.is_baseline else bounds.UNKNOWN
        self._listed: dict[str, None] = {}
        self.more = 0

    def note(self, query_id: str) -> None:
        if query_id in self._not_judged:
            return
        if len(self._listed) < self._most or query_id in self._listed:
            self._listed[query_id] = None
        else:
            self.more += 1

    @property
    def listed(self) -> tuple[str, ...]:
        return tuple(self._listed)
