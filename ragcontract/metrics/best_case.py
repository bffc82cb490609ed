"""The best value that each ranking metric can have, whatever the documents are that nobody has judged.

That is its value if all unjudged documents of the top k were relevant; only where more relevant documents can lower a
metric, as they add to the ideal of nDCG and the denominator of MAP, if the best-ranked of them were. With grades, they
would have the highest grade of the query. The distance to the value itself is what labels can still change, like the
residual of Moffat and Zobel, *Rank-Biased Precision for Measurement of Retrieval Effectiveness* (TOIS 2008).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from math import log2

from ragcontract.core.scores import Values
from ragcontract.metrics.formulas import Formula, Found, average_precision, ndcg


def best_values(formulas: Iterable[tuple[Formula, int]], found: Found, unjudged: Sequence[int]) -> Values:
    """Return the best value of each formula at its cut-off; ``unjudged`` are the ranks of unjudged documents."""
    return tuple([_best(formula, found, unjudged[: bisect_right(unjudged, k)], k) for formula, k in formulas])


def _best(formula: Formula, found: Found, unjudged: Sequence[int], k: int) -> float:
    if not unjudged:
        return formula.value(found, k)
    if formula.value is average_precision:
        return max(_average_precisions(found, unjudged, k))
    if formula.value is ndcg:
        return min(1.0, max(_ndcgs(found, unjudged, k)))
    return formula.value(Found(sorted([*found.hits, *unjudged]), found.relevant + len(unjudged)), k)


def _average_precisions(found: Found, unjudged: Sequence[int], k: int) -> Iterable[float]:
    """Yield MAP if none, the first, the first two, … of the unjudged documents are relevant."""
    hits = found.hits[: bisect_right(found.hits, k)]
    total = sum([number / rank for number, rank in enumerate(hits, 1)])
    below = [*accumulate((1 / rank for rank in reversed(hits)), initial=0.0)][::-1]  # of the hits from each on
    yield total / found.relevant
    for more, rank in enumerate(unjudged, 1):
        above = bisect_left(hits, rank)
        total += (above + more) / rank + below[above]
        yield total / (found.relevant + more)


def _ndcgs(found: Found, unjudged: Sequence[int], k: int) -> Iterable[float]:
    """Yield nDCG if none, the first, the first two, … of the unjudged documents have the highest gain."""
    gains = [(rank, 1.0) for rank in found.hits] if found.gains is None else found.gains
    ideal = [1.0] * min(k, found.relevant) if found.gains is None else found.ideal
    total = sum([gain / log2(rank + 1) for rank, gain in gains if rank <= k])
    for more, rank in enumerate((0, *unjudged)):
        total += ideal[0] / log2(rank + 1) if rank else 0.0
        best = [ideal[0]] * more + [*ideal[: max(0, k - more)]]
        yield total / sum([gain / log2(rank + 1) for rank, gain in enumerate(best[:k], 1)])
