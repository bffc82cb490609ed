"""The record of what a history says of a check: its baseline there, and since when queries are broken."""

from typing import Annotated

from msgspec import Meta, Struct

Count = Annotated[int, Meta(ge=0)]


class HistoryBaseline(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The entry that is the baseline."""

    id: str
    commit: str
    named: Annotated[str, Meta(description="How it was named: last-pass, last, a commit or an id.")]
    behind: Annotated[
        Count | None,
        Meta(description="How many newer commits its branch has; null if that is not known, or was not asked."),
    ] = None


class BrokenSince(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The first of the recorded commits in a row at which a query is broken."""

    commit: str
    at: Annotated[str, Meta(description="When it was checked, ISO 8601, UTC.")]
    or_before: Annotated[
        bool, Meta(description="It is the oldest commit that was looked at, so the query may be broken for longer.")
    ] = False


class HistoryReport(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the history says of a check."""

    branch: Annotated[str | None, Meta(description="The branch whose entries were read; null if there are none.")]
    entries: Annotated[Count, Meta(description="How many of its entries were read.")]
    baseline: HistoryBaseline | None = None
    broken_since: Annotated[
        dict[str, BrokenSince], Meta(description="Of broken queries that were broken on the branch already, by id.")
    ] = {}
    notes: list[str] = []
