"""The scope of a check: all of a contract, or the queries with some tags and the limits of these tags."""

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.contract.golden_file import Golden
from ragcontract.core.gate import Gate
from ragcontract.core.golden import named_in
from ragcontract.core.nearest import NearNames


class Scope(Struct, frozen=True, kw_only=True):
    """The ``tags`` that a check is limited to, and the ids of the ``queries`` and ``gates`` that it does not judge.

    ``wanted`` are the documents that these queries want.
    """

    tags: tuple[str, ...]
    queries: tuple[str, ...]
    gates: tuple[str, ...]
    wanted: frozenset[str]


def scope_of(golden: Golden, gates: Sequence[Gate], tags: Sequence[str]) -> Scope | None:
    """Return the scope that tags define; None without tags, when all of the contract is judged.

    A query belongs to it if it has any of the tags. A limit belongs to it if it is one of these tags' own: a mean over
    all queries says nothing about some of them.
    """
    if not tags:
        return None
    named = set(tags)
    others = [query for query in golden.queries.values() if named.isdisjoint(query.tags)]
    return Scope(
        tags=tuple(dict.fromkeys(tags)),
        queries=tuple([query.id for query in others]),
        gates=tuple([gate.id for gate in gates if gate.tag not in named]),
        wanted=named_in(others),
    )


def golden_within(golden: Golden, scope: Scope | None) -> Golden:
    """Return the golden set with only the queries that a scope judges."""
    if scope is None:
        return golden
    others = set(scope.queries)
    return replace(golden, queries={key: query for key, query in golden.queries.items() if key not in others})


def gates_within(gates: tuple[Gate, ...], scope: Scope | None) -> tuple[Gate, ...]:
    """Return only the gates that a scope judges."""
    if scope is None:
        return gates
    others = set(scope.gates)
    return tuple([gate for gate in gates if gate.id not in others])


def unknown_tags(golden: Golden, scope: Scope | None) -> Iterator[tuple[str, str]]:
    """Yield each tag of a scope that no golden query has, with a message; none if golden rows are invalid."""
    if scope is None or golden.problems:
        return
    known = dict.fromkeys(tag for query in golden.queries.values() for tag in query.tags)
    near = NearNames(known)
    for tag in scope.tags:
        if tag not in known:
            yield tag, f"no golden query has it; {near.advice(tag, 'name a tag that one has')}"


def ghost_tags(golden: Golden, gates: Sequence[Gate]) -> dict[str | None, str]:
    """Return the tags with limits that no golden query has, each with a message; none if golden rows are invalid."""
    limited = dict.fromkeys(gate.tag for gate in gates if gate.tag is not None)
    if not limited or golden.problems:
        return {}
    known = dict.fromkeys(tag for query in golden.queries.values() for tag in query.tags)
    near = NearNames(known)
    return {
        tag: "; ".join(filter(None, (f"no golden query has the tag {tag!r}", near.advice(tag))))
        for tag in limited
        if tag not in known
    }
