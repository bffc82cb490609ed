"""Several exports of the same queries, from an index that does not answer alike each time: averaged. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from math import fsum
from operator import mul

from ragcontract.metrics.formulas import MetricAtK
from ragcontract.model import GoldenQuery, QueryScore, RepeatsReport, Spread
from ragcontract.statistics.aggregate import groups_of, means


def averaged(repeats: Sequence[QueryScore], rows: Sequence[int] | None = None) -> QueryScore:
    """Return one score for all rows of a query, which are kept in it.

    With ``rows`` each of the ``repeats`` stands for so many rows. Its values are means. A relevant document's rank is
    its worst (none if a row lacks it), a forbidden one's its best.
    """
    ranks = zip(*[score.ranks for score in repeats], strict=True)
    forbidden_ranks = zip(*[score.forbidden_ranks for score in repeats], strict=True)
    rows = rows or [1] * len(repeats)
    columns = zip(*[score.values for score in repeats], strict=True)
    return QueryScore(
        ranks=tuple(map(_worst, ranks)),
        forbidden_ranks=tuple(map(_best, forbidden_ranks)),
        values=tuple([fsum(map(mul, column, rows)) / sum(rows) for column in columns]),
        repeats=tuple(repeats),
    )


def _worst(ranks: Iterable[int | None]) -> int | None:
    found = [0 if rank is None else rank for rank in ranks]
    return max(found) if all(found) else None


def _best(ranks: Iterable[int | None]) -> int | None:
    return min([rank for rank in ranks if rank], default=None)


def spread(
    queries: Iterable[GoldenQuery],
    scores: Mapping[str, QueryScore],
    metrics: Sequence[MetricAtK],
    missing: Iterable[str] = (),
    rows_of: Mapping[str, int] | None = None,
) -> RepeatsReport | None:
    """Say how far the run's means differ from export to export, the i-th being the i-th row of every query.

    It is taken over as many exports as every answerable query has (the others have no part in the means); with one,
    nothing can be said, nor where the rows are counted by query in ``rows_of`` and stand in no order. A ``missing``
    query is 0 in all. None where none has a second row.
    """
    if not any(score.repeats for score in scores.values()):
        return None
    queries = [query for query in queries if query.answerable]
    absent = set(missing)
    there = [query.id for query in queries if query.id not in absent]
    rows = [rows_of[query_id] if rows_of else max(1, len(scores[query_id].repeats)) for query_id in there]
    if max(rows, default=1) == 1:
        return None
    fewest = min(rows)
    if rows_of:
        return RepeatsReport(fewest=fewest, most=max(rows), metrics={})
    exports = [
        means(groups_of(queries, {query.id: _at(scores[query.id], number) for query in queries}), metrics)
        for number in range(fewest)
    ]
    from statistics import stdev  # takes long to load

    found: dict[str, Spread] = {}
    for metric in metrics if fewest > 1 else ():
        values = [value for export in exports if (value := export[metric.key]) is not None]
        if values:
            found[metric.key] = Spread(deviation=stdev(values), lowest=min(values), highest=max(values))
    return RepeatsReport(fewest=fewest, most=max(rows), metrics=found)


def _at(score: QueryScore, number: int) -> QueryScore:
    return score.repeats[number] if score.repeats else score
