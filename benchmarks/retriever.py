"""A model of a retriever, and whether a run breaks the limits that `rag-contract suggest` makes from good runs.

The model: one relevant document a query, at rank 1 to 5 or missing, as often as ``RANKS`` says. A run of an index that
is as good but not the same has other ranks for some queries: in each run each query's with the probability ``CHURN``,
or, of a fixed fifth of the queries, nearly always (``UNSTEADY``). A real drop is queries that lose their document.
All queries weigh the same, or from 1 to 6.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import fsum
from operator import mul
from random import Random

from ragcontract.core.numbers import SAME
from ragcontract.statistics.suggested_limits import Suggested, suggested

RANKS = (0.60, 0.12, 0.06, 0.04, 0.03)  # of rank 1 to 5; the rest is missing
K = len(RANKS)
SHARES = (*RANKS, 1 - sum(RANKS))
VALUES = ([1 / rank for rank in range(1, K + 1)] + [0.0], [1.0] * K + [0.0])  # of MRR and HitRate, by rank
GATED = ("MRR@5", "HitRate@5")
CHURN = 0.1
UNSTEADY = (0.2, 0.8)  # the share of the queries, and how often each of them has another rank
WEIGHTS = range(1, 7)
NOISES = ("1 query in 10", "the same fifth", "1 query in 10, weights from 1 to 6")

Columns = list[list[float]]  # of one run: a column of values for each gated metric


class Retriever:
    """Answers the same questions each time, some of them otherwise than before."""

    def __init__(self, queries: int, noise: str, dice: Random) -> None:
        """Draw the usual rank of each question."""
        self._dice = dice
        self._usual = self._ranks(queries)
        steady, often = UNSTEADY
        self._churn = [often * (dice.random() < steady) if noise == NOISES[1] else CHURN for _ in range(queries)]
        self.weights = [float(dice.choice(WEIGHTS)) if noise == NOISES[2] else 1.0 for _ in range(queries)]

    def run(self, lost: Sequence[bool] | None = None) -> Columns:
        """Return the values of a run, in which some queries have ``lost`` their document."""
        random = self._dice.random
        fresh = self._ranks(len(self._usual))
        ranks = [
            new if random() < churn else old for old, new, churn in zip(self._usual, fresh, self._churn, strict=True)
        ]
        if lost:
            ranks = [K if gone else rank for rank, gone in zip(ranks, lost, strict=True)]
        return [[values[rank] for rank in ranks] for values in VALUES]

    def losing(self, drop: float, metric: int = 0) -> list[bool]:
        """Return which queries lose their document, so that the expected mean of a metric falls by ``drop``."""
        queries, values = len(self._usual), VALUES[metric]
        typical = fsum(share * value for share, value in zip(SHARES, values, strict=True))
        expected = [
            weight * ((1 - churn) * values[rank] + churn * typical)
            for weight, rank, churn in zip(self.weights, self._usual, self._churn, strict=True)
        ]
        aim = drop * fsum(self.weights)
        order = self._dice.sample(range(queries), queries)
        lost = [False] * queries
        before = 0.0
        for query, after in zip(order, accumulate(expected[query] for query in order), strict=True):
            missing = aim - before
            lost[query] = missing > 0 and self._dice.random() * (after - before) < missing
            before = after
        return lost

    def _ranks(self, queries: int) -> list[int]:
        return self._dice.choices(range(K + 1), SHARES, k=queries)


def suggestions(good: Sequence[Columns], weights: Sequence[float]) -> list[Suggested]:
    """Return what `rag-contract suggest` suggests for each metric from good runs."""
    return [suggested(runs, weights, limits=len(good[0])) for runs in zip(*good, strict=True)]


def mean(column: Sequence[float], weights: Sequence[float]) -> float:
    """Return the weighted mean of one run's values."""
    return fsum(map(mul, column, weights)) / fsum(weights)


def drops(good: Sequence[Columns], now: Columns, weights: Sequence[float]) -> Iterator[float]:
    """Yield how far each metric fell from the mean of the good runs."""
    for before, column in zip(zip(*good, strict=True), now, strict=True):
        yield fsum(mean(one, weights) for one in before) / len(good) - mean(column, weights)


def breaks(limits: Sequence[Suggested], good: Sequence[Columns], now: Columns, weights: Sequence[float]) -> bool:
    """Return whether a run breaks any limit with ``mode: strict``: one on a drop, or a minimum."""
    return any(
        (one.limit is not None and drop > one.limit + SAME) or not meets(one, column, weights)
        for one, drop, column in zip(limits, drops(good, now, weights), now, strict=True)
    )


def meets(limit: Suggested, column: Sequence[float], weights: Sequence[float]) -> bool:
    """Return whether a run meets the suggested minimum."""
    return mean(column, weights) >= limit.bound - SAME
