"""The queries for which the run retrieved the least of what the baseline did."""

from typing import Annotated

from msgspec import Meta, Struct

from ragcontract.core import bounds
from ragcontract.core.text import encodable
from ragcontract.judging.evaluated import Evaluation


class LeastOverlap(Struct, frozen=True, kw_only=True):
    """A query with little overlap with the baseline, at the largest cut-off."""

    id: str
    location: str
    overlap: Annotated[float, Meta(ge=0, le=1)]
    rbo: Annotated[float, Meta(ge=0, le=1)]


def least_overlap(evaluation: Evaluation) -> list[LeastOverlap]:
    """Return up to ten queries, the least overlap first; none that returned the same documents in the same order."""
    family = evaluation.contract.overlap
    if family is None:
        return []
    number, queries = evaluation.contract.every_family.index(family), evaluation.contract.queries
    values = zip(queries.values(), evaluation.run.values(number, queries), strict=True)
    different = [(found[0], found[1], query) for query, found in values if found and min(found[:2]) < 1]
    different.sort(key=lambda one: one[:2])
    return [
        LeastOverlap(id=query.id, location=encodable(query.location), overlap=overlap, rbo=rbo)
        for overlap, rbo, query in different[: bounds.LEAST_OVERLAP]
    ]
