"""What is kept of a run row about ranks."""

from typing import TypeAlias

from msgspec import Struct

Ranks: TypeAlias = tuple[int | None, ...]
Values: TypeAlias = tuple[float, ...]  # one number a metric of a family; empty where the query has no part in it
Means: TypeAlias = dict[str, float | None]


class QueryScore(Struct, frozen=True, kw_only=True, gc=False):
    """What one run row comes to in ranks and ranking metrics.

    ``ranks`` and ``forbidden_ranks`` hold the 1-based rank of each document that the golden query names, at any depth,
    in its order, and None for one that was not found. ``values`` has one number a metric, in the order of the metrics
    asked for, and is empty for an unanswerable query. ``first`` is the best rank of a relevant document (1 for an
    unanswerable query) where all of them are in the top k and no forbidden one is anywhere, else 0: a query with
    ``first`` keeps every built-in rule but, perhaps, ``must_rank_at_most``. ``repeats`` are the scores of each row
    where a query has several, all of which this one sums up.

    No ids are in it, so all queries with the same ranks share one score: many queries have few scores.
    """

    ranks: Ranks
    forbidden_ranks: Ranks
    values: Values
    first: int = 0
    repeats: tuple["QueryScore", ...] = ()
