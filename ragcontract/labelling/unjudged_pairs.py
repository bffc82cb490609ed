"""Pairs of query and document that nobody has judged, in the order in which to judge them. Reads no files.

Judging a pool is more work than there is time for, so what can change the result is judged first (Carterette, Allan and
Sitaraman, *Minimal test collections for retrieval evaluation*, SIGIR 2006).
"""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import chain, pairwise
from math import fsum

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.first_ids import EVERYTHING, unpacked
from ragcontract.core.golden import PLACEHOLDER, GoldenQuery
from ragcontract.core.numbers import SAME
from ragcontract.core.scores import Values
from ragcontract.judging.evaluated import Evaluation
from ragcontract.judging.gate_report import GateReport
from ragcontract.labelling.limit_moves import Effects, Limit, Lists, changes, limits_of
from ragcontract.labelling.relevance_chances import RelevanceChances
from ragcontract.metrics.judged import judged_documents


class UnjudgedPair(Struct, frozen=True, kw_only=True, gc=False):
    """A query and a document that nobody has judged, at its best ranks in the run and in the baseline.

    ``limit`` is the limit, or else the metric, that it moves most if the document is relevant, and ``move`` how far, in
    points of the metric: up towards the limit. ``share`` is that as a share of what a broken limit lacks. ``chance``
    is an estimate of how likely it is relevant.
    """

    query_id: str
    doc_id: str
    rank: int | None = None
    baseline_rank: int | None = None
    limit: str
    label: str
    move: float
    share: float = 0.0
    chance: float


class Outlook(Struct, frozen=True, kw_only=True):
    """What labels can do for a broken limit: it lacks ``lacking`` points.

    ``least`` is the smallest number of relevant documents that close the gap, None if even all cannot.
    """

    report: GateReport
    lacking: float
    least: int | None


class UnjudgedPairs(Struct, frozen=True, kw_only=True):
    """The first pairs to judge, the number of all of them, and what they can do for each broken limit.

    ``documents`` counts the documents in the top k of the ``queries`` with relevant documents, judged or not.
    """

    pairs: list[UnjudgedPair]
    total: int
    of_run: int
    documents: int
    queries: int
    k: int
    outlooks: list[Outlook]


def unjudged_pairs(
    evaluation: Evaluation, reports: Sequence[GateReport], first_ids: Mapping[str, bytes], top: int
) -> UnjudgedPairs:
    """Return what to judge first, given the packed results of each query of the run, as far as they count."""
    found = _Search(evaluation, limits_of(evaluation, reports), first_ids)
    keyed = nsmallest(top, found.keyed(), key=lambda one: one[0])
    return UnjudgedPairs(
        pairs=[pair for _, pair in keyed],
        total=found.total,
        of_run=found.of_run,
        documents=found.documents,
        queries=found.queries,
        k=evaluation.contract.k,
        outlooks=list(found.outlooks()),
    )


Key = tuple[float, float, int, int]


class _Search:
    def __init__(self, evaluation: Evaluation, limits: Sequence[Limit], first_ids: Mapping[str, bytes]) -> None:
        contract, baseline = evaluation.contract, evaluation.baseline
        self._queries = contract.queries
        self._effects = Effects(lambda *row: contract.ranking.score(*row).values, contract.config.relevance_level)
        self._skips, self._k = contract.config.unjudged == "skip", contract.k
        self._limits = limits
        self._broken = [limit for limit in limits if limit.lacking]
        self._gains = [array("d") for _ in self._broken]
        self._first_ids = first_ids
        self._before = baseline.first_ids if baseline else {}
        self._pools = baseline.pools if baseline else {}
        self._shared = any(limit.compares for limit in limits)
        self._chances = RelevanceChances()
        self.total = self.of_run = self.documents = self.queries = 0

    def keyed(self) -> Iterator[tuple[Key, UnjudgedPair]]:
        """Yield all pairs with what they are ordered by: shares, moves, the golden order, ranks."""
        for query in self._queries.values():
            if query.answerable:
                judged = judged_documents(query, self._pools.get(query.id))
                rows = _lists(self._first_ids, query.id)
                self._chances.note([row[: self._k] for row in rows], judged, query.relevant_doc_ids)
        for number, query in enumerate(self._queries.values()):
            if query.answerable:
                for position, (order, pair) in enumerate(self._of(query)):
                    yield (*order, number, position), pair

    def _of(self, query: GoldenQuery) -> Iterator[tuple[tuple[float, float], UnjudgedPair]]:
        rows, before = _lists(self._first_ids, query.id), _lists(self._before, query.id)
        ranks, ranks_before = _ranks(rows, self._k), _ranks(before, self._k)
        self.queries += 1
        self.documents += len(ranks)
        judged = judged_documents(query, self._pools.get(query.id))
        unjudged = [doc_id for doc_id in {**ranks, **ranks_before} if doc_id not in judged]
        if not unjudged:
            return
        self.total += len(unjudged)
        self.of_run += sum(doc_id in ranks for doc_id in unjudged)
        both = rows, before if self._shared else ()
        now = self._values(query, both)
        if self._broken:
            self._note_gains(query, both, unjudged[: bounds.UNJUDGED], now)
        nowhere = [0.0] * len(self._limits)
        relevant = sum(doc_id != PLACEHOLDER for doc_id in query.relevant_doc_ids)
        for number, doc_id in enumerate(unjudged):
            rank, rank_before = ranks.get(doc_id), ranks_before.get(doc_id)
            chance = self._chances.of(rank or rank_before or 1, len(judged), relevant)
            moves = self._moves(query, both, [doc_id], now) if number < bounds.UNJUDGED else nowhere
            (first, second), limit, move = self._most(moves)
            share = move / limit.lacking if limit.lacking else 0.0
            yield (
                (first * chance, second * chance),
                UnjudgedPair(
                    query_id=query.id,
                    doc_id=doc_id,
                    rank=rank,
                    baseline_rank=rank_before,
                    limit=limit.id,
                    label=limit.label,
                    move=move,
                    share=share,
                    chance=chance,
                ),
            )

    def _values(self, query: GoldenQuery, both: tuple[Lists, Lists]) -> tuple[Values, Values]:
        # Only a condensed list depends on what is judged; otherwise, that need not be looked up.
        pool = self._pools.get(query.id) if self._skips else EVERYTHING
        before = pool or EVERYTHING
        return self._effects.values(query, both[0], pool), self._effects.values(query, both[1], before)

    def _moves(
        self, query: GoldenQuery, both: tuple[Lists, Lists], doc_ids: Sequence[str], now: tuple[Values, Values]
    ) -> list[float]:
        """Return how far each limit moves if these documents are relevant."""
        then = self._values(self._effects.with_relevant(query, doc_ids), both)
        change, change_before = changes(then[0], now[0]), changes(then[1], now[1])
        return [limit.move(query, change, change_before) for limit in self._limits]

    def _most(self, moves: Sequence[float]) -> tuple[tuple[float, float], Limit, float]:
        """Return the order of a pair, and the limit that it moves most.

        What brings a broken limit closer comes first, by the share of what it lacks; then what moves another one most,
        measured by what is left to it. Both are multiplied by the chance that the document is relevant.
        """
        broken = [
            (move / limit.lacking, limit, move)
            for limit, move in zip(self._limits, moves, strict=True)
            if limit.lacking and move > SAME
        ]
        if broken:
            share, limit, move = max(broken, key=lambda one: one[0])
            return (-share, 0.0), limit, move
        held = [
            (abs(move) if limit.slack is None else abs(move) / limit.slack, limit, move)
            for limit, move in zip(self._limits, moves, strict=True)
            if not limit.lacking
        ] or [(abs(move), limit, move) for limit, move in zip(self._limits, moves, strict=True)]
        size, limit, move = max(held, key=lambda one: one[0])
        return (0.0, -size), limit, move

    def _note_gains(
        self, query: GoldenQuery, both: tuple[Lists, Lists], doc_ids: Sequence[str], now: tuple[Values, Values]
    ) -> None:
        """Note what one, two, three … relevant documents of a query can add at most to each broken limit.

        Of so many documents, those at the best ranks add the most to every ranking metric.
        """
        sums = [self._moves(query, both, doc_ids[:number], now) for number in range(1, len(doc_ids) + 1)]
        columns = [column for column, limit in enumerate(self._limits) if limit.lacking]
        for gains, column in zip(self._gains, columns, strict=True):
            gains.extend(rises([moves[column] for moves in sums]))

    def outlooks(self) -> Iterator[Outlook]:
        """Yield what the documents can do for the broken limits."""
        for limit, gains in zip(self._broken, self._gains, strict=True):
            if limit.report is not None:
                yield Outlook(report=limit.report, lacking=limit.lacking, least=least(gains, limit.lacking))


def _lists(first_ids: Mapping[str, bytes], query_id: str) -> list[list[str]]:
    found = first_ids.get(query_id)
    return unpacked(found) if found else []


def _ranks(rows: Lists, k: int) -> dict[str, int]:
    """Return the best rank of each document in the top ``k`` of the rows, best first."""
    best: dict[str, int] = {}
    for row in rows:
        for rank, doc_id in enumerate(row[:k], start=1):
            best[doc_id] = min(rank, best.get(doc_id, rank))
    return dict(sorted(best.items(), key=lambda one: one[1])) if len(rows) > 1 else best


def rises(sums: Sequence[float]) -> list[float]:
    """Return the rises of the smallest concave curve above 0 and these sums, largest first; no falls.

    With them, taking the largest rises of all queries needs no more documents than any real choice.
    """
    hull = [(0, 0.0)]
    for point in enumerate(sums, start=1):
        while len(hull) > 1 and _slope(hull[-2], hull[-1]) <= _slope(hull[-1], point):
            hull.pop()
        hull.append(point)
    steps = ([_slope(one, other)] * (other[0] - one[0]) for one, other in pairwise(hull))
    return [slope for slope in chain.from_iterable(steps) if slope > 0]


def _slope(one: tuple[int, float], other: tuple[int, float]) -> float:
    return (other[1] - one[1]) / (other[0] - one[0])


def least(gains: Sequence[float], lacking: float) -> int | None:
    """Return how many of the largest gains make up for what is lacking; None if all do not."""
    if fsum(gains) < lacking - SAME:
        return None
    done = 0.0
    for number, gain in enumerate(sorted(gains, reverse=True), start=1):
        done += gain
        if done >= lacking - SAME:
            return number
    return len(gains)
