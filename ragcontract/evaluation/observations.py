"""Counts how many results the rows of a run have: a run that is shorter than k cannot show what ranks below.

Counts documents that a row returns more than once, for example as chunks: they displace other documents.

Notes which queries lack a score, and which scores no metric reads.

Finds out which relevant ids never occur in a run: whether the ids of contract and run are written the same way.

Most of it costs nothing in a good run: the search ends once every relevant id has occurred.

Counts the rows of a side by the class that was expected and the one that was found.

Counts the rows of queries that are not in the golden set, and lists their ids.
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
    """The number of results of a row: at most ``most``; ``typical`` is the median, and at least half have no more."""

    most: int
    typical: int


class DepthCounter:
    """Counts the results of rows."""

    def __init__(self) -> None:
        """Start without rows."""
        self._rows: Counter[int] = Counter()

    def note(self, rows: Sequence[list[str]]) -> None:
        """Count the results of rows, given as their document ids."""
        lengths = set(map(len, rows))
        if len(lengths) == 1:  # the common case, and five times as fast
            self._rows[lengths.pop()] += len(rows)
        else:
            self._rows.update(map(len, rows))

    def result(self) -> Depth | None:
        """Return the depth of the rows so far; None if there are none."""
        return depth_of(self._rows)


def depth_of(rows: Counter[int]) -> Depth | None:
    """Return the depth, given how many rows have each number of results."""
    half, below = sum(rows.values()) / 2, 0
    for length in sorted(rows):
        below += rows[length]
        if below >= half and below:
            return Depth(most=max(rows), typical=length)
    return None


class Duplicates(Struct, frozen=True, kw_only=True):
    """Duplicate documents: ``repeated`` of the ``results`` in the top k repeat a document of the same row.

    ``short`` counts the rows that contain fewer than k distinct documents because some are repeated; ``named`` has the
    first three query ids.
    """

    results: int = 0
    repeated: int = 0
    short: int = 0
    named: tuple[str, ...] = ()

    @property
    def rate(self) -> float:
        """The fraction of repeated results; 0 if there are no results."""
        return self.repeated / self.results if self.results else 0.0


class DuplicateCounter:
    """Counts duplicates row by row."""

    def __init__(self, k: int) -> None:
        """Count duplicates in the top ``k``, where k is the largest cut-off."""
        self._k = k
        self._results = self._repeated = self._short = 0
        self._named: list[str] = []

    def note(self, query_id: str, doc_ids: list[str]) -> bool:
        """Count a row; return whether it contains too few documents because some are repeated."""
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
        """Return the counts so far."""
        return Duplicates(results=self._results, repeated=self._repeated, short=self._short, named=tuple(self._named))


class ScoreGaps:
    """Collects both while rows are read; ``known`` are the scores that metrics read."""

    def __init__(self, known: Iterable[str]) -> None:
        """Start without gaps."""
        self._known = frozenset(known)
        self._lacking: dict[str, dict[str, None]] = {}
        self._undeclared: dict[str, None] = {}

    def note(self, query_id: str, lacking: Iterable[str]) -> None:
        """Note the scores that a row of a query lacks."""
        for name in lacking:
            self._lacking.setdefault(name, {})[query_id] = None

    def unread(self, scores: Mapping[str, object] | None) -> list[str]:
        """Return names of a row's scores that no metric reads; none once enough were found."""
        if not scores or len(self._undeclared) >= bounds.NAMES or self._known.issuperset(scores):
            return []
        new = [name for name in scores if name not in self._known][: bounds.NAMES]
        self._undeclared |= dict.fromkeys(new)
        return new

    def lacking(self) -> dict[str, tuple[str, ...]]:
        """Return the queries that lack each score."""
        return {name: tuple(query_ids) for name, query_ids in self._lacking.items()}

    def undeclared(self) -> tuple[str, ...]:
        """Return the first names of scores that no metric reads."""
        return tuple(self._undeclared)[: bounds.NAMES]


class UnseenIds(Struct, frozen=True, kw_only=True):
    """The relevant ids of the queries with rows: ``never`` of the ``relevant`` ones occur in no row.

    Of these, ``compared`` were compared with ids that do occur: ``matched`` occur in the form of the
    ``example``. ``retrieved`` are the first ids of the run.
    """

    relevant: int = 0
    never: int = 0
    compared: int = 0
    matched: int = 0
    example: Match | None = None
    retrieved: tuple[str, ...] = ()


class UnseenIdSearch:
    """Searches the rows of a run for the relevant ids of all golden queries."""

    def __init__(self, golden: Mapping[str, GoldenQuery]) -> None:
        """Search for the relevant ids of these queries."""
        self._golden = golden
        self._unseen = set(chain.from_iterable(query.relevant_doc_ids for query in golden.values()))
        self._relevant = len(self._unseen)
        self._held: list[tuple[GoldenQuery, list[str]]] = []
        self._room = bounds.COMPARED_IDS

    def note(self, rows: Iterable[list[str]]) -> None:
        """Note the document ids of rows."""
        if self._unseen:
            self._unseen.difference_update(*rows)

    def hold(self, query: GoldenQuery, doc_ids: list[str]) -> None:
        """Hold a row that lacks a relevant document, to compare its ids with it, as long as there is room."""
        if self._unseen and self._room > 0:
            self._held.append((query, doc_ids))
            self._room -= len(doc_ids)

    def result(self, without_row: Collection[str]) -> UnseenIds:
        """Return what was found; the ids of queries ``without_row`` do not count."""
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
    """The modes and the labels of rows, each counted only if the plan ``needs`` that field; every row counts as one."""

    def __init__(self, needs: frozenset[str]) -> None:
        """Count nothing yet."""
        self._has_modes, self._has_labels = "mode" in needs, "label" in needs
        self.modes: Counter[tuple[str, str | None]] = Counter()
        self.labels: Counter[tuple[str, str | None]] = Counter()

    def note(self, query: GoldenQuery, row: RunRow) -> None:
        """Count a row of a query that expects a mode or a label."""
        self._count(query, mode_of(row) if self._has_modes else None, row.label if self._has_labels else None)

    def note_missing(self, query: GoldenQuery) -> None:
        """Count a query without a row, in which no class was found."""
        self._count(query, None, None)

    def _count(self, query: GoldenQuery, mode: str | None, label: str | None) -> None:
        if query.answer is None:
            return
        if self._has_modes and query.answer.expected_mode is not None:
            self.modes[query.answer.expected_mode, mode] += 1
        if self._has_labels and query.answer.expected_label is not None:
            self.labels[query.answer.expected_label, label] += 1


class UnknownQueries:
    """The ids of a side that the golden set does not have.

    ``bounds.UNKNOWN`` of a run are listed, and ``more`` counts the rows of others. Of a baseline, all are listed.
    """

    def __init__(self, plan: Plan) -> None:
        """Have no ids yet; those of golden queries that are not judged are no unknown ones."""
        self._not_judged = plan.not_judged
        self._most = sys.maxsize if plan.is_baseline else bounds.UNKNOWN
        self._listed: dict[str, None] = {}
        self.more = 0

    def note(self, query_id: str) -> None:
        """Add a row's id."""
        if query_id in self._not_judged:
            return
        if len(self._listed) < self._most or query_id in self._listed:
            self._listed[query_id] = None
        else:
            self.more += 1

    @property
    def listed(self) -> tuple[str, ...]:
        """The distinct ids, in the order of the rows."""
        return tuple(self._listed)
