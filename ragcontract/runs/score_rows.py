"""The rows of a scores file: numbers and checks that another tool computed for a query, outside of the run."""

from typing import Annotated

from msgspec import Meta, Struct

from ragcontract.core.ids import Id


class Check(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A check with its reason; a check without one is a plain ``true`` or ``false``."""

    passed: Annotated[bool, Meta(description="Whether the check passed.")]
    reason: Annotated[str | None, Meta(description="Why.")] = None


class ScoresRow(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A line of a scores file. Several rows with the same ``query_id`` are repeated measurements of the query."""

    query_id: Annotated[Id, Meta(description="The id of a golden query.")]
    scores: Annotated[
        dict[str, float | None] | None, Meta(description="Numbers by name; null where something was not measured.")
    ] = None
    checks: Annotated[dict[str, bool | Check] | None, Meta(description="Checks by name.")] = None
    reasons: Annotated[dict[str, str] | None, Meta(description="Why a score or a check is as it is, by name.")] = None
    scored_by: Annotated[str | None, Meta(description="What computed them, and its version.")] = None
