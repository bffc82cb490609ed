"""The ranks and metric values stored for a run row."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

Ranks: TypeAlias = tuple[int | None, ...]
Values: TypeAlias = tuple[float, ...]  # one number per metric of a family; empty if they do not apply to the query
Means: TypeAlias = dict[str, float | None]
# Rows by the class that was expected and the one that was found, which is None where there is none.
Confusion: TypeAlias = Mapping[tuple[str, str | None], int]
RanksById: TypeAlias = Mapping[str, int | None]


class QueryScore(Struct, frozen=True, kw_only=True, gc=False):
    """The ranks and ranking metrics of one run row.

    ``ranks`` and ``forbidden_ranks`` hold the 1-based rank of each relevant or forbidden document of the golden query,
    in its order and at any depth, and None for a document that was not retrieved. ``values`` has one number per metric,
    in the order of the requested metrics; it is empty for an unanswerable query. ``clean_rank`` is the best rank of a
    relevant document (1 for an unanswerable query) if all of them are in the top k and no forbidden document was
    retrieved, otherwise 0: with a nonzero ``clean_rank`` no built-in rule but ``must_rank_at_most`` can be violated.
    ``judged`` has the share of judged results at each cut-off; ``if_relevant`` the best that ``values`` can be,
    whatever the others are, and is empty if all are judged. If a query has several rows, ``repeats`` holds the score of
    each, and this one combines them.

    A score contains no ids, so all queries with the same ranks share one object, which saves memory.
    """

    ranks: Ranks
    forbidden_ranks: Ranks
    values: Values
    clean_rank: int = 0
    judged: Values = ()
    if_relevant: Values = ()
    repeats: tuple["QueryScore", ...] = ()


def ranks_by_id(doc_ids: Sequence[str], ranks: Sequence[int | None]) -> dict[str, int | None]:
    """Return the rank of each document, in the order of ``doc_ids``."""
    return dict(zip(doc_ids, ranks, strict=True))
