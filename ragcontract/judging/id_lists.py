"""Ids in sentences."""

from collections.abc import Sequence

from ragcontract.core import bounds


def named(query_ids: Sequence[str], of: int = 0) -> str:
    """Return the first ids and how many more there are; ``of`` is the total if ``query_ids`` is only a part."""
    more = max(of, len(query_ids)) - bounds.NAMES
    rest = f" and {more} more" if more > 0 else ""
    return ", ".join(repr(query_id) for query_id in query_ids[: bounds.NAMES]) + rest
