"""Pairs of query and document that nobody has labelled, in the order in which to label them. Reads no files.

Labelling a pool is more work than there is time for, so pairs that can change the result come first (Carterette, Allan
and Sitaraman, *Minimal test collections for retrieval evaluation*, SIGIR 2006). Two numbers give the order.

The first is how far a label moves the limits of the contract. A limit on a mean is linear in the means of run and
baseline: they must satisfy ``now + before * factor >= limit``, with the factor 0 for a minimum, -1 for a drop in
points, and -(1 - p) for a drop of p of the baseline. A label changes the values of one query on both sides, so its move
is the weighted change of that sum.

The second is the chance that the document is relevant, from the shares of relevant documents at its rank and for its
query. Both shares are smoothed towards that of all labelled results of the run, as if a few more had been labelled with
that share. If few are labelled, the chance is nearly the same for all. It only serves to order documents.
"""

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import chain, pairwise
from math import fsum
from operator import itemgetter

from msgspec import UNSET, Struct
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.gate import OF_LEVEL, Gate
from ragcontract.core.golden import PLACEHOLDER, GoldenQuery
from ragcontract.core.ids import EVERYTHING, unpacked
from ragcontract.core.metric import Metric
from ragcontract.core.numbers import SAME
from ragcontract.core.run import Values
from ragcontract.decision.evaluated import Evaluation
from ragcontract.decision.gate_report import NOT_HELD, GateReport
from ragcontract.metrics.judged import judged_documents
from ragcontract.statistics.means import averaged_values

AT_RANK, OF_QUERY = 5, 2  # the weights of the share of all, in documents, beside those at a rank and of a query

Lists = Sequence[Sequence[str]]  # the first k documents of each row of a query
Scorer = Callable[[GoldenQuery, Sequence[str], bytes | None], Values]

Key = tuple[float, float, int, int]


class UnjudgedPair(Struct, frozen=True, kw_only=True, gc=False):
    """A query and a document that nobody has labelled for it."""

    query_id: str
    doc_id: str
    rank: int | None = None  # the best one in the run
    baseline_rank: int | None = None  # the best one in the baseline
    limit: str  # the limit, or else the metric, that the pair moves most if the document is relevant
    label: str  # of that limit or metric
    move: float  # how far, in points of the metric; positive is towards the limit
    share: float = 0.0  # the move as a share of what a broken limit lacks
    chance: float  # an estimate of how likely the document is relevant


class Outlook(Struct, frozen=True, kw_only=True):
    """What labels can do for a broken limit."""

    report: GateReport
    lacking: float  # the points that it lacks
    least: int | None  # the smallest number of relevant documents that close the gap; None if even all cannot


class UnjudgedPairs(Struct, frozen=True, kw_only=True):
    """The first pairs to label, and what labels can do for each broken limit."""

    pairs: list[UnjudgedPair]
    total: int  # the number of all pairs
    of_run: int  # those with a document of the run
    documents: int  # the documents in the top k of these queries, labelled or not
    queries: int  # the queries with relevant documents
    k: int
    outlooks: list[Outlook]


def unjudged_pairs(
    evaluation: Evaluation, reports: Sequence[GateReport], first_ids: Mapping[str, bytes], top: int
) -> UnjudgedPairs:
    """Return the ``top`` pairs to label first; ``first_ids`` are the packed results of each query that count."""
    search = _Search(evaluation, limits_of(evaluation, reports), first_ids)
    keyed = nsmallest(top, search.keyed(), key=itemgetter(0))
    return UnjudgedPairs(
        pairs=[pair for _, pair in keyed],
        total=search.total,
        of_run=search.of_run,
        documents=search.documents,
        queries=search.queries,
        k=evaluation.contract.k,
        outlooks=list(search.outlooks()),
    )


class Limit(Struct, frozen=True, kw_only=True):
    """A limit on the mean of a ranking metric, or only that metric if nothing is limited."""

    id: str
    label: str
    column: int  # of the metric
    factor: float = 0.0  # of the baseline's mean, in the sum that is limited
    compares: bool = False
    tag: str | None = None
    total: float  # of the weights of the queries
    lacking: float = 0.0  # how much the sum must rise to be within the limit; 0 if it is
    slack: float | None = None  # how much the sum may fall
    report: GateReport | None = None

    def move(self, query: GoldenQuery, now: Values, before: Values) -> float:
        """Return how far the sum moves, given the changes of the query's values, which are empty for a side without."""
        if (self.tag is not None and self.tag not in query.tags) or not now or (self.compares and not before):
            return 0.0
        change = now[self.column] + (self.factor * before[self.column] if self.compares else 0.0)
        return query.weight * change / self.total


def limits_of(evaluation: Evaluation, reports: Iterable[GateReport]) -> list[Limit]:
    """Return the limits on ranking metrics. If there are none, return one per ranking metric at the largest cut-off."""
    contract = evaluation.contract
    columns = {metric.key: column for column, metric in enumerate(contract.ranking.metrics)}
    by_id = {report.id: report for report in reports}
    gates = [gate for gate in contract.gates if gate.quantity.key in columns and gate.kind not in OF_LEVEL]
    totals = _totals(evaluation, {gate.tag for gate in gates})
    limits = [
        _limit(gate, by_id[gate.id], columns[gate.quantity.key], totals[gate.tag, gate.compares], evaluation)
        for gate in gates
    ]
    return limits or [
        Limit(id=metric.key, label=metric.label, column=columns[metric.key], total=totals[None, False])
        for metric in _at_largest_k(contract.ranking.metrics, contract.k)
    ]


class RelevanceChances:
    """Counts the judged results of a run, to estimate how likely others are relevant."""

    def __init__(self) -> None:
        self._judged: dict[int, int] = {}
        self._relevant: dict[int, int] = {}
        self._all_judged = self._all_relevant = 0

    def note(self, rows: Sequence[Sequence[str]], judged: Collection[str], relevant: Collection[str]) -> None:
        """Count the results of a query's rows that are judged, and those that are relevant, by rank."""
        for row in rows:
            for rank, doc_id in enumerate(row, start=1):
                if doc_id in judged:
                    self._judged[rank] = self._judged.get(rank, 0) + 1
                    self._relevant[rank] = self._relevant.get(rank, 0) + (doc_id in relevant)
                    self._all_judged += 1
                    self._all_relevant += doc_id in relevant

    @property
    def overall(self) -> float:
        """The share of the judged results that are relevant, as if one more were relevant and one more not: never 0."""
        return (self._all_relevant + 1) / (self._all_judged + 2)

    def of(self, rank: int, judged: int, relevant: int) -> float:
        """Return the chance of a document at ``rank`` for a query with so many judged and relevant documents."""
        overall = self.overall
        at_rank = (self._relevant.get(rank, 0) + AT_RANK * overall) / (self._judged.get(rank, 0) + AT_RANK)
        of_query = (relevant + OF_QUERY * overall) / (judged + OF_QUERY)
        return min(1.0, at_rank * of_query / overall)


def _at_largest_k(metrics: Iterable[Metric], k: int) -> list[Metric]:
    return [metric for metric in metrics if metric.k == k]


def _totals(evaluation: Evaluation, tags: Iterable[str | None]) -> Mapping[tuple[str | None, bool], float]:
    """Return the weights of all queries, and of those in both sides, by tag; None stands for all queries."""
    wanted = {None, *tags}
    totals = dict.fromkeys([(tag, shared) for tag in wanted for shared in (False, True)], 0.0)
    now, before = evaluation.run.scores, evaluation.baseline.scores if evaluation.baseline else {}
    for query in evaluation.contract.queries.values():
        score = now.get(query.id)
        if score is None or not score.values:
            continue
        other = before.get(query.id)
        for tag in wanted.intersection((None, *query.tags)):
            totals[tag, False] += query.weight
            if other is not None and other.values:
                totals[tag, True] += query.weight
    return totals


def _limit(gate: Gate, report: GateReport, column: int, total: float, evaluation: Evaluation) -> Limit:
    factor = 0.0 if not gate.compares else gate.limit - 1 if gate.relative else -1.0
    before = report.before or 0.0
    unit = before if gate.relative else 1.0
    observed, limit = report.observed * unit, report.limit * unit
    margin = limit - observed if gate.compares else observed - limit
    if evaluation.contract.config.fail_on.mode == "noninferiority" and report.bounds is not UNSET:
        margin = min(margin, limit - report.bounds[1] * unit)
    is_over = report.status in NOT_HELD and margin < -SAME
    return Limit(
        id=gate.id,
        label=gate.quantity.label,
        column=column,
        factor=factor,
        compares=gate.compares,
        tag=gate.tag,
        total=total or 1.0,
        lacking=-margin if is_over else 0.0,
        slack=max(margin, SAME),
        report=report,
    )


class Effects:
    """Computes the values of a query as if more of its documents were relevant."""

    def __init__(self, score: Scorer, level: float) -> None:
        self._score = score
        self._level = level  # the grade from which documents are relevant

    def values(self, query: GoldenQuery, rows: Lists, pool: bytes | None) -> Values:
        """Return the values of a query with a judged pool, which are means over its rows; empty without rows."""
        return averaged_values([self._score(query, row, pool) for row in rows]) if rows else ()

    def with_relevant(self, query: GoldenQuery, doc_ids: Sequence[str]) -> GoldenQuery:
        """Return a query with more relevant documents, of its highest grade and in place of the placeholder."""
        known = tuple([doc_id for doc_id in query.relevant_doc_ids if doc_id != PLACEHOLDER])
        relevance = query.relevance
        if relevance is not None:
            graded = {doc_id: grade for doc_id, grade in relevance.items() if doc_id != PLACEHOLDER}
            highest = max(self._level, *graded.values()) if graded else self._level
            relevance = {**graded, **dict.fromkeys(doc_ids, highest)}
        return replace(query, relevant_doc_ids=(*known, *doc_ids), relevance=relevance)


def changes(values: Values, before: Values) -> Values:
    """Return the differences between two rows of values; empty if either is empty."""
    return tuple([now - then for now, then in zip(values, before, strict=True)]) if values and before else ()


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
        self._before = baseline.ids.first_ids if baseline else {}
        self._pools = baseline.ids.pools if baseline else {}
        self._shared = any(limit.compares for limit in limits)
        self._chances = RelevanceChances()
        self.total = self.of_run = self.documents = self.queries = 0

    def keyed(self) -> Iterator[tuple[Key, UnjudgedPair]]:
        """Yield all pairs with the keys that order them: shares, moves, the golden order, ranks."""
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

        Pairs that bring a broken limit closer come first, by the share of what it lacks. Then come those that move
        another limit most, measured by its slack. Both are multiplied by the chance that the document is relevant.
        """
        broken = [
            (move / limit.lacking, limit, move)
            for limit, move in zip(self._limits, moves, strict=True)
            if limit.lacking and move > SAME
        ]
        if broken:
            share, limit, move = max(broken, key=itemgetter(0))
            return (-share, 0.0), limit, move
        held = [
            (abs(move) if limit.slack is None else abs(move) / limit.slack, limit, move)
            for limit, move in zip(self._limits, moves, strict=True)
            if not limit.lacking
        ] or [(abs(move), limit, move) for limit, move in zip(self._limits, moves, strict=True)]
        size, limit, move = max(held, key=itemgetter(0))
        return (0.0, -size), limit, move

    def _note_gains(
        self, query: GoldenQuery, both: tuple[Lists, Lists], doc_ids: Sequence[str], now: tuple[Values, Values]
    ) -> None:
        """Note how much one, two, three … relevant documents of a query can add at most to each broken limit.

        Of any number of documents, those at the best ranks add the most to every ranking metric.
        """
        sums = [self._moves(query, both, doc_ids[:number], now) for number in range(1, len(doc_ids) + 1)]
        columns = [column for column, limit in enumerate(self._limits) if limit.lacking]
        for gains, column in zip(self._gains, columns, strict=True):
            gains.extend(rises([moves[column] for moves in sums]))

    def outlooks(self) -> Iterator[Outlook]:
        """Yield the outlook for each broken limit."""
        for limit, gains in zip(self._broken, self._gains, strict=True):
            if limit.report is not None:
                yield Outlook(report=limit.report, lacking=limit.lacking, least=least(gains, limit.lacking))


def _lists(first_ids: Mapping[str, bytes], query_id: str) -> list[list[str]]:
    ids = first_ids.get(query_id)
    return unpacked(ids) if ids else []


def _ranks(rows: Lists, k: int) -> dict[str, int]:
    """Return the best rank of each document in the top ``k`` of the rows, best first."""
    best: dict[str, int] = {}
    for row in rows:
        for rank, doc_id in enumerate(row[:k], start=1):
            best[doc_id] = min(rank, best.get(doc_id, rank))
    return dict(sorted(best.items(), key=itemgetter(1))) if len(rows) > 1 else best


def rises(sums: Sequence[float]) -> list[float]:
    """Return the rises, largest first, of the smallest concave curve above 0 and these sums; falls are left out.

    The largest of these rises over all queries need no more documents than any real choice of documents.
    """
    hull = [(0, 0.0)]
    for point in enumerate(sums, start=1):
        while len(hull) > 1 and _slope(hull[-2], hull[-1]) <= _slope(hull[-1], point):
            hull.pop()
        hull.append(point)
    steps = ([_slope(start, end)] * (end[0] - start[0]) for start, end in pairwise(hull))
    return [slope for slope in chain.from_iterable(steps) if slope > 0]


def _slope(start: tuple[int, float], end: tuple[int, float]) -> float:
    return (end[1] - start[1]) / (end[0] - start[0])


def least(gains: Sequence[float], lacking: float) -> int | None:
    """Return how many of the largest gains add up to what is lacking; None if all together do not."""
    if fsum(gains) < lacking - SAME:
        return None
    done = 0.0
    for number, gain in enumerate(sorted(gains, reverse=True), start=1):
        done += gain
        if done >= lacking - SAME:
            return number
    return len(gains)
