"""The metrics of one query, binary relevance, cut at rank k.

``hits`` are the ascending 1-based ranks at which relevant documents were found, each document once, and ``relevant``
is how many there are (at least 1). All values are from 0 to 1. Definitions as in Manning, Raghavan and Schütze,
*Introduction to Information Retrieval* (2008), chapter 8, and trec_eval (``recip_rank``, ``recall.k``, ``P.k``,
``success.k``) on the list cut at k. Where a list is shorter than k, precision still divides by k, as trec_eval does.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence

from msgspec import Struct

Hits = Sequence[int]


def reciprocal_rank(hits: Hits, relevant: int, k: int) -> float:  # noqa: ARG001
    """One over the rank of the first relevant document, 0 if none is in the top k."""
    return 1 / hits[0] if hits and hits[0] <= k else 0.0


def recall(hits: Hits, relevant: int, k: int) -> float:
    """Return the part of the relevant documents that is in the top k."""
    return bisect_right(hits, k) / relevant


def precision(hits: Hits, relevant: int, k: int) -> float:  # noqa: ARG001
    """Return the part of the top k that is relevant; short lists are divided by k too."""
    return bisect_right(hits, k) / k


def hit_rate(hits: Hits, relevant: int, k: int) -> float:  # noqa: ARG001
    """1 if any relevant document is in the top k, else 0."""
    return float(bool(hits) and hits[0] <= k)


class Metric(Struct, frozen=True, kw_only=True):
    """A metric: its name in files, its name for people, and how it is computed."""

    name: str
    label: str
    of_query: Callable[[Hits, int, int], float]


class MetricAtK(Struct, frozen=True, kw_only=True):
    """A metric at a cut-off, as MRR@5."""

    metric: Metric
    k: int

    @property
    def key(self) -> str:
        """As ``mrr_at_5``."""
        return f"{self.metric.name}_at_{self.k}"

    @property
    def label(self) -> str:
        """As ``MRR@5``."""
        return f"{self.metric.label}@{self.k}"

    def of_query(self, hits: Hits, relevant: int) -> float:
        """Return the metric of one query."""
        return self.metric.of_query(hits, relevant, self.k)


METRICS = (
    Metric(name="mrr", label="MRR", of_query=reciprocal_rank),
    Metric(name="recall", label="Recall", of_query=recall),
    Metric(name="precision", label="Precision", of_query=precision),
    Metric(name="hitrate", label="HitRate", of_query=hit_rate),
)


def metrics_at(k: int) -> list[MetricAtK]:
    """Return all metrics at the cut-off k."""
    return [MetricAtK(metric=metric, k=k) for metric in METRICS]
