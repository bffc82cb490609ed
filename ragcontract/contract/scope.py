"""Checks tags and tiers of a contract, and limits a check to the queries with some tags.

A tier is a group of queries with a pass rate to reach. Where it misses that rate, the tiers that it gates are skipped.
A tag that looks like a tag of the configuration is reported, because its queries are left out of that tag's limits.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.contract.config import Locations, Tier
from ragcontract.contract.golden_file import Golden
from ragcontract.core.gate import Gate
from ragcontract.core.golden import GoldenQuery, named_in
from ragcontract.core.invisible import folded
from ragcontract.core.lines import Line
from ragcontract.core.nearest import NearNames
from ragcontract.core.numbers import count
from ragcontract.core.phrase import Location, Place
from ragcontract.files.schema import Mismatch, shown
from ragcontract.statistics.quantities import TIER_PASS_RATE

GRAPHS: Line[Any] = Line(home="graphlib")  # few contracts have tiers


class Scope(Struct, frozen=True, kw_only=True):
    """The tags that a check is limited to, and what it therefore leaves out."""

    tags: tuple[str, ...]
    queries: tuple[str, ...]  # the ids of the queries that are left out
    gates: tuple[str, ...]  # the ids of the gates that are left out
    wanted: frozenset[str]  # the documents that the queries left out want


def scope_of(golden: Golden, gates: Sequence[Gate], tags: Sequence[str]) -> Scope | None:
    """Return the scope that tags define; None without tags, when the check is about all of the contract.

    A query belongs to it if it has any of the tags. Only the limits of these tags belong to it, because a mean over all
    queries says nothing about some of them.
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
    """Return the golden set with only the queries in scope."""
    if scope is None:
        return golden
    others = set(scope.queries)
    return replace(golden, queries={key: query for key, query in golden.queries.items() if key not in others})


def gates_within(gates: tuple[Gate, ...], scope: Scope | None) -> tuple[Gate, ...]:
    """Return only the gates in scope."""
    if scope is None:
        return gates
    others = set(scope.gates)
    return tuple([gate for gate in gates if gate.id not in others])


def unknown_tags(golden: Golden, scope: Scope | None) -> Iterator[tuple[Place, str]]:
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
    return _ghosts(golden, dict.fromkeys(gate.tag for gate in gates if gate.tag is not None))


def unexpected_labels(golden: Golden, gates: Iterable[Gate]) -> Iterator[tuple[Gate, str]]:
    """Yield the limits on labels that no golden query expects, each with a message; none if golden rows are invalid."""
    gates = [gate for gate in gates if gate.quantity.of_class is not None]
    if not gates or golden.problems:
        return
    labels = (query.answer.expected_label for query in golden.queries.values() if query.answer)
    known = dict.fromkeys(label for label in labels if label is not None)
    near = NearNames(known)
    for gate in gates:
        if (label := gate.quantity.of_class or "") not in known:
            yield gate, "; ".join(filter(None, (f"no golden query expects the label {label!r}", near.advice(label))))


def ghost_tags_of_scores(
    golden: Golden, declared: Mapping[str, Struct], locations: Locations
) -> Iterator[tuple[Place, str]]:
    """Yield the location of each entry of ``metrics`` that names a tag that no golden query has, with a message.

    The queries that are meant would have no score, and a limit on it would say nothing about them.
    """
    for name, entry in declared.items():
        for ghost in _ghosts(golden, getattr(entry, "tags", ())).values():
            yield locations.of("metrics", name, "tags"), f"metrics.{name}.tags: {ghost}"


def _ghosts(golden: Golden, named: Collection[str]) -> dict[str | None, str]:
    if not named or golden.problems:
        return {}
    known = dict.fromkeys(tag for query in golden.queries.values() for tag in query.tags)
    near = NearNames(known)
    return {
        tag: "; ".join(filter(None, (f"no golden query has the tag {tag!r}", near.advice(tag))))
        for tag in named
        if tag not in known
    }


def wrong_tiers(tiers: Sequence[Tier]) -> Iterator[Mismatch]:
    """Yield the faults of tiers that are valid on their own: names that repeat or do not exist, and circles."""
    if not tiers:
        return
    first: dict[str, int] = {}
    for number, tier in enumerate(tiers):
        if tier.name in first:
            yield Mismatch(
                ("tiers", number), f"has the name {tier.name!r}, as tiers[{first[tier.name]}]; give each its own"
            )
        first.setdefault(tier.name, number)
    near = NearNames(first)
    for number, tier in enumerate(tiers):
        for index, gated in enumerate(tier.gates):
            if gated not in first:
                advice = near.advice(gated, "add it to tiers, or leave it out")
                yield Mismatch(("tiers", number, "gates", index), f"there is no tier {gated!r}; {advice}")
    try:
        GRAPHS.load().TopologicalSorter({tier.name: tier.gates for tier in tiers}).prepare()
    except GRAPHS.load().CycleError as error:
        circle: list[str] = error.args[1]
        path = " gates ".join(repr(name) for name in circle)
        yield Mismatch(("tiers", first[circle[0]], "gates"), f"gate each other in a circle: {path}")


def tier_gates(tiers: Iterable[Tier], locations: Locations) -> Iterator[Gate]:
    """Yield the gate of each tier."""
    for number, tier in enumerate(tiers):
        yield Gate(
            id=tier_gate(tier.name),
            location=locations.of("tiers", number, "minimum"),
            quantity=TIER_PASS_RATE,
            kind="minimum",
            limit=tier.minimum,
            tier=tier.name,
        )


def tier_gate(name: str) -> str:
    """Return the id of a tier's gate, as ``tiers.sanity.minimum``."""
    return f"tiers.{name}.minimum"


def unknown_tiers(golden: Golden, tiers: Sequence[Tier], locations: Locations) -> Iterator[tuple[Place, str]]:
    """Yield a location and a message for each tier that only the golden rows have, or only the configuration.

    Without tiers in the configuration, those of golden rows are reported and have no limit.
    """
    if not tiers or golden.problems:
        return
    used: dict[str, Location] = {}  # the location of the first query of each tier
    numbers: dict[str, int] = {}
    for query in golden.queries.values():
        if query.answer and (name := query.answer.tier):
            used.setdefault(name, query.location)
            numbers[name] = numbers.get(name, 0) + 1
    known = dict.fromkeys(tier.name for tier in tiers)
    near = NearNames(known)
    for name, location in used.items():
        if name not in known:
            advice = near.advice(name, "add it to tiers")
            which = f" ({count(numbers[name], 'query')})" if numbers[name] > 1 else ""
            yield location.at("tier"), f"{name!r} is not a tier of the configuration{which}; {advice}"
    near = NearNames(used)
    for number, tier in enumerate(tiers):
        if tier.name not in used:
            advice = near.advice(tier.name, "give it to queries as tier, or leave it out")
            yield locations.of("tiers", number, "name"), f"tiers: no golden query has the tier {tier.name!r}; {advice}"


def skipped_tiers(tiers: Sequence[Tier], missed: Iterable[str]) -> Mapping[str, str]:
    """Return the tiers that are skipped, each with the ``missed`` tier that is the reason.

    A tier that is skipped skips the tiers that it gates, too.
    """
    gates = {tier.name: tier.gates for tier in tiers}

    def gated_by(causes: Iterable[str]) -> dict[str, str]:
        gated: dict[str, str] = {}
        for cause in causes:
            waiting = list(gates.get(cause, ()))
            while waiting:
                name = waiting.pop()
                if name not in gated:
                    gated[name] = cause
                    waiting += gates.get(name, ())
        return gated

    causes = list(missed)
    all_gated = gated_by(causes)
    return gated_by(cause for cause in causes if cause not in all_gated)  # a skipped tier is no reason itself


def like_tags(queries: Collection[GoldenQuery], named: Iterable[str]) -> Iterator[str]:
    """Yield a warning for each tag that looks like a ``named`` tag.

    It differs only in case, blanks, ``-``, ``_`` or invisible characters. A query that has the named tag, too, is not
    left out. A named tag that no query has is another mistake.
    """
    known = {tag for query in queries for tag in query.tags}
    names = dict.fromkeys(tag for tag in named if tag in known)
    by_form: dict[str, str] = {}
    for name in names:
        by_form.setdefault(_form(name), name)
    alike = {tag: by_form[form] for tag in known - names.keys() if (form := _form(tag)) in by_form}
    apart: dict[str, list[GoldenQuery]] = {}
    for query in queries if alike else ():
        tags = frozenset(query.tags)
        for tag in query.tags:
            if tag in alike and alike[tag] not in tags:
                apart.setdefault(tag, []).append(query)
    for tag, having in apart.items():
        meant = alike[tag]
        yield (
            f"{having[0].location}: tags: {shown(tag)} of {count(len(having), 'query')} is another tag than "
            f"{shown(meant)}, which the configuration or --tag names; write both the same way if they are one"
        )


def _form(tag: str) -> str:
    return "".join(char for char in folded(tag) if not (char.isspace() or char in "-_"))
