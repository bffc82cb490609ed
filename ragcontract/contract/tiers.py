"""Tiers: groups of queries with a pass rate to reach; where one is missed, the tiers that it gates are skipped."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ragcontract.contract.config import Tier
from ragcontract.contract.golden_file import Golden
from ragcontract.contract.locations import Locations
from ragcontract.core.gate import Gate
from ragcontract.core.nearest import NearNames
from ragcontract.core.numbers import count
from ragcontract.files.schema import Mismatch
from ragcontract.statistics.quantities import TIER_PASS_RATE


def wrong_tiers(tiers: Sequence[Tier]) -> Iterator[Mismatch]:
    """Yield what is wrong with tiers that are valid one by one: names that repeat or do not exist, and circles."""
    if not tiers:
        return
    from graphlib import CycleError, TopologicalSorter

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
        TopologicalSorter({tier.name: tier.gates for tier in tiers}).prepare()
    except CycleError as error:
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


def unknown_tiers(golden: Golden, tiers: Sequence[Tier], locations: Locations) -> Iterator[tuple[str, str]]:
    """Yield a location and a message for each tier that only the golden rows or only the configuration have.

    Without tiers in the configuration, those of golden rows are reported and have no limit.
    """
    if not tiers or golden.problems:
        return
    used: dict[str, str] = {}  # the location of the first query of each tier
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
            yield f"{location}: tier", f"{name!r} is no tier of the configuration{which}; {advice}"
    near = NearNames(used)
    for number, tier in enumerate(tiers):
        if tier.name not in used:
            advice = near.advice(tier.name, "give it to queries as tier, or leave it out")
            yield locations.of("tiers", number, "name"), f"tiers: no golden query has the tier {tier.name!r}; {advice}"


def skipped_tiers(tiers: Sequence[Tier], missed: Iterable[str]) -> Mapping[str, str]:
    """Return the tiers that are skipped, each with the one of the ``missed`` tiers that is the reason.

    A tier that is skipped skips the tiers that it gates, too.
    """
    gates = {tier.name: tier.gates for tier in tiers}

    def gated_by(causes: Iterable[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for cause in causes:
            waiting = list(gates.get(cause, ()))
            while waiting:
                name = waiting.pop()
                if name not in found:
                    found[name] = cause
                    waiting += gates.get(name, ())
        return found

    causes = list(missed)
    all_gated = gated_by(causes)
    return gated_by(cause for cause in causes if cause not in all_gated)  # a skipped tier is no reason itself
