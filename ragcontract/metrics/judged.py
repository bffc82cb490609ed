"""judged@k, the share of the top k that somebody has judged, and the results that nobody has judged.

These are people's labels of documents, not judgments of a model, whose share is ``judged_share``.

A document of a query is judged if its golden row names it (relevant, forbidden, or with any grade, 0 included), or if
it is in the query's judged pool: what the baseline returned first when its labels were made. A list that is shorter
than k counts as long as it is, as in ir_measures' ``Judged``; without results, nothing is unjudged, and the value is 1.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from msgspec import Struct

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.ids import packed, pool_of
from ragcontract.core.metric import Family, Metric, MetricSettings, SwitchedOn, at_cutoff
from ragcontract.core.run import RunRow, Values


class UnjudgedResults(Struct, frozen=True, gc=False):
    """The results of a row that nobody has judged."""

    first: tuple[int, ...]  # the ranks of the first result of each such document
    again: tuple[int, ...]  # the ranks of its further results
    length: int  # the number of results that were searched: all of them if ``skipped``, else the top k
    skipped: bool = False  # whether metrics leave these results out

    @property
    def ranks(self) -> list[int]:
        """The ranks of all results that nobody has judged."""
        return sorted(self.first + self.again)


def judged(settings: MetricSettings) -> Iterable[Family]:
    """Return the family of the shares at each cut-off."""
    return [JudgedShares(settings.cutoffs)]


class JudgedShares:
    """The shares at each cut-off, the largest first, computed with the ranking metrics for the same queries.

    They describe the labels, not the application, so drops are neither limited nor tested.
    """

    needs = frozenset({"results"})
    from_ids = True
    switch = SwitchedOn.ALWAYS

    def __init__(self, cutoffs: Sequence[int]) -> None:
        most = max(cutoffs)
        share = Metric(key="judged", label="Judged", diagnostic=True)
        self.metrics = [at_cutoff(share, k, most) for k in sorted(set(cutoffs), reverse=True)]

    def values(self, query: GoldenQuery, row: RunRow) -> Values:
        """Return the values by the labels of the golden row alone, as without a baseline."""
        cutoffs = [metric.k or 1 for metric in self.metrics]
        return shares(unjudged_in(query, row.doc_ids, None, cutoffs[0]), cutoffs) if query.answerable else ()


def unjudged_in(
    query: GoldenQuery, doc_ids: Sequence[str], pool: bytes | None, k: int, *, skip: bool = False
) -> UnjudgedResults | None:
    """Return the results in the top ``k`` that nobody has judged, or None; ``pool`` is the query's, packed.

    If they are to be skipped, results below the top k count as well, because judged ones there move up.
    """
    top = doc_ids[:k]
    if pool is not None and packed([top]) == pool:  # the common case: the run returns what the baseline did
        return None
    known = judged_documents(query, pool)
    unknown = [rank for rank, doc_id in enumerate(top, 1) if doc_id not in known]
    if not unknown:
        return None
    if skip and len(doc_ids) > k:
        return unjudged_in(query, doc_ids, pool, len(doc_ids), skip=True)
    seen: set[str] = set()
    first: list[int] = []
    again: list[int] = []
    for rank in unknown:
        (again if top[rank - 1] in seen else first).append(rank)
        seen.add(top[rank - 1])
    return UnjudgedResults(tuple(first), tuple(again), len(top), skip)


def judged_documents(query: GoldenQuery, pool: bytes | None) -> frozenset[str]:
    """Return the documents of a query that somebody has judged, with those of its packed pool if there is one."""
    known = pool_of(pool) if pool else frozenset[str]()
    return known.union(query.relevant_doc_ids, query.forbidden_doc_ids, query.relevance or ())


def shares(unjudged: UnjudgedResults | None, cutoffs: Sequence[int]) -> Values:
    """Return the share of judged results at each cut-off."""
    if unjudged is None:
        return (1.0,) * len(cutoffs)
    ranks = unjudged.ranks
    return tuple([1 - bisect_right(ranks, k) / min(k, unjudged.length) for k in cutoffs])
