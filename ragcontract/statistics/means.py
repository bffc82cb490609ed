"""Weighted means over queries, averages over several rows of a query, and summaries of latencies.

Even of many queries, few are distinct. Those with the same values are counted as a :class:`Group`, so a mean over a
million queries is one over a few thousand groups. The counts of disjoint subsets add up to those of the whole set.
Several exports of the same queries are averaged, because the results of some retrievers vary. All functions are pure.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import fsum, sqrt
from operator import mul

from msgspec import Struct

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.metric import Metric
from ragcontract.core.run import Latency, Means, QueryScore, Values

Row = tuple[tuple[str, ...], float, Values, Values | None]  # tags, weight, current values, baseline values


class Group(Struct, frozen=True, gc=False):
    """The queries with the same tags, weight and values of a family's metrics."""

    tags: tuple[str, ...]
    weight: float
    now: Values  # empty if the metrics do not apply to the queries
    before: Values | None  # None if there is no baseline value
    count: int  # of queries


class Comparison(Struct, frozen=True, kw_only=True):
    """The means of a metric."""

    current: float | None  # over all queries of the run that have it
    current_shared: float | None = None  # over the queries that run and baseline share
    baseline: float | None = None  # over the same queries

    @property
    def delta(self) -> float | None:
        """Current mean minus baseline mean, over the shared queries."""
        if self.current_shared is None or self.baseline is None:
            return None
        return self.current_shared - self.baseline


def group(rows: Iterable[Row]) -> list[Group]:
    """Count queries with the same tags, weight and values."""
    return [Group(*row, count) for row, count in Counter(rows).items()]


def means(groups: Iterable[Group], metrics: Sequence[Metric], *, before: bool = False) -> Means:
    """Return the weighted mean of each metric over the queries that have it, now or ``before``; None without any.

    Sums are exact until the final rounding (``math.fsum``), so the result does not depend on the order of the queries.
    Nor does it depend on the grouping: counts are split into powers of two, by which multiplication is exact.
    """
    parts = [
        (values, queries.weight, 2.0**bit)
        for queries in groups
        if (values := queries.before if before else queries.now)
        for bit in range(queries.count.bit_length())
        if queries.count >> bit & 1
    ]
    if not parts:
        return {metric.key: None for metric in metrics}
    total = fsum([weight * times for _, weight, times in parts])
    return {
        metric.key: fsum([weight * values[column] * times for values, weight, times in parts]) / total
        for column, metric in enumerate(metrics)
    }


def compare(groups: Sequence[Group], metrics: Sequence[Metric]) -> dict[str, Comparison]:
    """Return the means of each metric over all queries, and over those that have it in both run and baseline."""
    current = means(groups, metrics)
    having = [queries for queries in groups if queries.now]
    shared = [queries for queries in having if queries.before]
    current_shared = current if len(shared) == len(having) else means(shared, metrics)
    baseline = means(shared, metrics, before=True)
    return {
        key: Comparison(current=value, current_shared=current_shared[key], baseline=baseline[key])
        for key, value in current.items()
    }


def by_tag(groups: Iterable[Group]) -> dict[str, list[Group]]:
    """Return the groups by tag, sorted; a query counts for each of its tags."""
    tagged: dict[str, list[Group]] = {}
    for queries in groups:
        for tag in queries.tags:
            tagged.setdefault(tag, []).append(queries)
    return dict(sorted(tagged.items()))


class Spread(Struct, frozen=True, kw_only=True):
    """How the mean of a metric varies between exports: sample standard deviation, minimum and maximum."""

    deviation: float
    lowest: float
    highest: float


class RepeatsReport(Struct, frozen=True, kw_only=True):
    """Several rows per query: how many there are, and how far the metrics of one export differ from another's.

    ``fewest`` and ``most`` are the smallest and largest number of rows of a query that has a metric. ``metrics`` has
    the spread of each metric over the first ``fewest`` exports; it is empty if a query has only one row, and if rows
    have no order.
    """

    fewest: int
    most: int
    metrics: dict[str, Spread]


def averaged(repeats: Sequence[QueryScore], rows: Sequence[int] | None = None) -> QueryScore:
    """Return the combined score of all rows of a query, with the score of each row in ``repeats``.

    With ``rows``, each of the ``repeats`` counts as that many rows. Values are means. The rank of a relevant document
    is its worst rank, or None if a row lacks it. The rank of a forbidden document is its best rank.
    """
    ranks = zip(*[score.ranks for score in repeats], strict=True)
    forbidden_ranks = zip(*[score.forbidden_ranks for score in repeats], strict=True)
    first = [score.clean_rank for score in repeats]
    return QueryScore(
        ranks=tuple(map(_worst, ranks)),
        forbidden_ranks=tuple(map(_best, forbidden_ranks)),
        values=averaged_values([score.values for score in repeats], rows),
        clean_rank=max(first) if all(first) else 0,
        judged=averaged_values([score.judged for score in repeats], rows),
        if_relevant=averaged_values([score.if_relevant or score.values for score in repeats], rows)
        if any(score.if_relevant for score in repeats)
        else (),
        repeats=tuple(repeats),
    )


def averaged_values(repeats: Sequence[Values], rows: Sequence[int] | None = None) -> Values:
    """Return the means of each metric's values; each of the ``repeats`` stands for so many ``rows``."""
    having = [(values, of) for values, of in zip(repeats, rows or [1] * len(repeats), strict=True) if values]
    counts = [of for _, of in having]
    columns = zip(*[values for values, _ in having], strict=True)
    return tuple([fsum(map(mul, column, counts)) / sum(counts) for column in columns])


def _worst(ranks: Iterable[int | None]) -> int | None:
    numbers = [0 if rank is None else rank for rank in ranks]
    return max(numbers) if all(numbers) else None


def _best(ranks: Iterable[int | None]) -> int | None:
    return min([rank for rank in ranks if rank], default=None)


def spread(
    queries: Iterable[GoldenQuery],
    values_of: Mapping[str, Sequence[Values]],
    metrics: Sequence[Metric],
    missing: Iterable[str] = (),
    rows_of: Mapping[str, int] | None = None,
) -> RepeatsReport | None:
    """Return how the means of a run vary between exports; None if no query has a second row.

    The i-th export is the i-th row of every query. ``values_of`` has the values of each row of a query. The spread is
    over as many exports as every answerable query has, because other queries do not count. It is empty if that is only
    one, and if ``rows_of`` only counts the rows of each query, whose order is then unknown. A ``missing`` query has the
    same values in all exports.
    """
    if not rows_of and all(len(values) == 1 for values in values_of.values()):
        return None
    queries = list(queries)
    absent = set(missing)
    there = [query.id for query in queries if query.id not in absent]
    rows = [rows_of[query_id] if rows_of else len(values_of[query_id]) for query_id in there]
    if max(rows, default=1) == 1:
        return None
    fewest = min(rows)
    if rows_of:
        return RepeatsReport(fewest=fewest, most=max(rows), metrics={})
    exports = [
        means(group((query.tags, query.weight, _at(values_of[query.id], number), None) for query in queries), metrics)
        for number in range(fewest)
    ]
    spreads: dict[str, Spread] = {}
    for metric in metrics if fewest > 1 else ():
        values = [value for export in exports if (value := export[metric.key]) is not None]
        if values:
            spreads[metric.key] = Spread(deviation=_sample_deviation(values), lowest=min(values), highest=max(values))
    return RepeatsReport(fewest=fewest, most=max(rows), metrics=spreads)


def _sample_deviation(values: Sequence[float]) -> float:
    mean = fsum(values) / len(values)
    return sqrt(fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def _at(rows: Sequence[Values], number: int) -> Values:
    return rows[number] if number < len(rows) else rows[0]


def nearest_rank(ascending: Sequence[float], percent: int) -> float:
    """Return the smallest value that is at least as large as ``percent`` (1 to 100) percent of all values.

    It is the value at rank ceil(percent / 100 * n), which is always a measured one: definition 1 of Hyndman and Fan,
    *Sample Quantiles in Statistical Packages*, The American Statistician 50 (1996); ``inverted_cdf`` in numpy.
    """
    return ascending[rank_of(len(ascending), percent) - 1]


def rank_of(count: int, percent: int) -> int:
    """Return the 1-based rank of a percentile among ``count`` values."""
    return -(-count * percent // 100)  # integer arithmetic: in floating point, 0.07 * 100 is slightly more than 7


def summary(milliseconds: "array[float]") -> Latency | None:
    """Summarize latencies; None if there are none."""
    if not milliseconds:
        return None
    ascending = array("d", sorted(milliseconds))
    return Latency(
        rows=len(ascending),
        p50_ms=nearest_rank(ascending, 50),
        p95_ms=nearest_rank(ascending, 95),
        max_ms=ascending[-1],
    )
