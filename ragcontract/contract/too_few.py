"""Limits on changes that their number of queries cannot carry, one sentence for each size of limit. Pure."""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from ragcontract.core.gate import Gate
from ragcontract.core.numbers import as_written, count, percent_as_written
from ragcontract.core.phrase import listed, render

ADVICE = "add queries, or allow more"


class TooFew(Struct, frozen=True, kw_only=True):
    """A limit on a change of a mean over ``queries`` queries that takes ``needs`` of them, which are more."""

    gate: Gate
    queries: int
    needs: int


def too_few_queries(found: Iterable[TooFew]) -> Iterator[tuple[str, str]]:
    """Yield the location of the first limit of each size, and a sentence about all limits of that size."""
    by_limit: dict[str, list[TooFew]] = {}
    for one in found:
        by_limit.setdefault(_limit(one.gate), []).append(one)
    for limit, same in by_limit.items():
        for are_tags in (False, True):
            if group := [one for one in same if (one.gate.tag is not None) is are_tags]:
                needs = max(one.needs for one in group)
                said = f"{_which(group)}{_names(group)} cannot carry {limit}, which needs {needs:,}; {ADVICE}"
                yield group[0].gate.location, said


def _limit(gate: Gate) -> str:
    what = "an allowed drop" if gate.kind == "drop" else "an allowed increase"
    return f"{what} of {percent_as_written(gate.limit) if gate.relative else as_written(gate.limit)}"


def _which(group: list[TooFew]) -> str:
    """Return what the limits are about: ``12 queries``, ``a tag of 10 queries``, ``3 tags of 8 to 12 queries``."""
    sizes = [one.queries for one in group]
    least, most = min(sizes), max(sizes)
    queries = count(most, "query") if least == most else f"{least:,} to {count(most, 'query')}"
    tags = len({one.gate.tag for one in group})
    if group[0].gate.tag is None:
        return queries
    return f"a tag of {queries}" if tags == 1 else f"{count(tags, 'tag')} of {queries}"


def _names(group: list[TooFew]) -> str:
    """Return the names of the tags in brackets, of many the first five and a count."""
    tags = list(dict.fromkeys(one.gate.tag for one in group if one.gate.tag is not None))
    return f" ({render(listed(tags, 'and'), repr)})" if tags else ""
