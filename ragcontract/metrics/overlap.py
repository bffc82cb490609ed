"""The overlap of the results with the baseline's, which may change while all other metrics stand still.

``overlap_at_k`` is the Jaccard index of the two top k, as sets of documents; ``rbo_at_k`` is rank-biased overlap,
which weighs the first ranks more: Webber, Moffat and Zobel, *A Similarity Measure for Indefinite Rankings* (TOIS 2010),
extrapolated from the top k (their equation 32, also for lists of different lengths) with p = 0.9. Identical lists have
1 in both. Further results of one document do not count.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import fsum

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.ids import first_of, unpacked
from ragcontract.core.metric import Family, Metric, MetricSettings, SwitchedOn, at_cutoff
from ragcontract.core.run import RunRow, Values

P = 0.9
REMEMBERED = 50_000  # pairs of lists, in which only equal documents matter; about 10 MB at k = 10
SHORT = 50  # documents in a list; pairs of longer ones rarely repeat, and are not remembered

Codes = tuple[int, ...]  # a list of documents, each of them a number


def overlap(settings: MetricSettings) -> Iterable[Family]:
    """Return the family of both metrics at each cut-off."""
    return [Overlap(settings.cutoffs, by_document=settings.rank_by == "documents")]


class Overlap:
    """Both metrics at each cut-off, the largest first, for all queries of which both sides have a row.

    A query for which neither side returned anything has no value.
    """

    needs = frozenset({"results"})
    from_ids = True
    switch = SwitchedOn.BY_BASELINE

    def __init__(self, cutoffs: Sequence[int], *, by_document: bool = False) -> None:
        self._cutoffs = tuple(sorted(set(cutoffs), reverse=True))
        self._by_document = by_document
        self.metrics = [
            at_cutoff(Metric(key=name, label=label, diagnostic=True, needs_baseline=True), k, self._cutoffs[0])
            for k in self._cutoffs
            for name, label in (("overlap", "Overlap"), ("rbo", "RBO"))
        ]
        self.same = (1.0,) * len(self.metrics)  # the values of a row that returns what the baseline did

    def values(self, query: GoldenQuery, row: RunRow) -> Values:  # noqa: ARG002 (the seam's)
        """Return no values, because a row alone has no overlap."""
        return ()

    def against(self, doc_ids: Sequence[str], before: bytes) -> Values:
        """Return the values of a row against the packed first ids of the baseline; for several rows, their means."""
        k = self._cutoffs[0]
        first = first_of(doc_ids, k, by_document=self._by_document)
        values = remembered if k <= SHORT else _values
        of_rows = [values(*_coded(first, ids), self._cutoffs) for ids in unpacked(before) if first or ids]
        if len(of_rows) <= 1:
            return of_rows[0] if of_rows else ()
        return tuple([fsum(column) / len(of_rows) for column in zip(*of_rows, strict=True)])


def _coded(now: Sequence[str], before: Sequence[str]) -> tuple[Codes, Codes]:
    """Return both lists with numbers for documents, so that pairs that agree at the same ranks become equal."""
    numbers: dict[str, int] = {}
    old = tuple([numbers.setdefault(doc_id, len(numbers)) for doc_id in before])
    return tuple([numbers.setdefault(doc_id, len(numbers)) for doc_id in now]), old


def _values(now: Codes, before: Codes, cutoffs: tuple[int, ...]) -> Values:
    values: list[float] = []
    for k in cutoffs:
        first, second = list(dict.fromkeys(now[:k])), list(dict.fromkeys(before[:k]))
        values += (jaccard(first, second), rank_biased_overlap(first, second))
    return tuple(values)


remembered = lru_cache(maxsize=REMEMBERED)(_values)


def jaccard(first: Iterable[int], second: Iterable[int]) -> float:
    """Return the share of the documents of both lists that is in both; 1 for two empty lists."""
    now, before = set(first), set(second)
    return len(now & before) / len(now | before) if now or before else 1.0


def rank_biased_overlap(first: Sequence[int], second: Sequence[int], p: float = P) -> float:
    """Return the extrapolated rank-biased overlap of two lists without duplicates, which may differ in length."""
    shorter, longer = sorted((first, second), key=len)
    if not shorter or first == second:
        return float(first == second)
    seen: set[int] = set()
    common = common_in_shorter = 0
    terms: list[float] = []
    for depth in range(1, len(longer) + 1):
        for document in {*shorter[depth - 1 : depth], longer[depth - 1]}:
            both = depth <= len(shorter) and shorter[depth - 1] == longer[depth - 1]
            common += both or document in seen
            seen.add(document)
        if depth <= len(shorter):
            common_in_shorter = common
        missing = common_in_shorter * max(0, depth - len(shorter)) / len(shorter)
        terms.append((common + missing) / depth * p**depth)
    tail = (common - common_in_shorter) / len(longer) + common_in_shorter / len(shorter)
    return min(1.0, (1 - p) / p * fsum(terms) + tail * p ** len(longer))
