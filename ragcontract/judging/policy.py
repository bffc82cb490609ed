"""The policy: severity and waivers for rules, significance and waivers for gates.

Waivers are applied to rules before gates are judged, because a limit on a pass rate counts only rules that are not
waived. Then significance and waivers are applied to gates.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import islice
from typing import Literal

from msgspec.structs import replace

from ragcontract.contract.config import Waiver
from ragcontract.contract.resolve import Contract
from ragcontract.core.gate import Gate
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.ids import as_id
from ragcontract.core.rule import Violation
from ragcontract.evaluation.aggregates import Aggregates
from ragcontract.files.schema import nearest
from ragcontract.judging.gates import GateReport, Significance
from ragcontract.judging.violations import Violations
from ragcontract.statistics.significance import SMALLEST_SAMPLED, fewest_changed, holm

QueryStatus = Literal["pass", "fail", "warn", "waived"]
COMPARED = 2_000  # the most names to compare a misspelled one with, because comparing is slow


def status_of(query: GoldenQuery, violations: Sequence[Violation]) -> QueryStatus:
    """Return the status of a query: only violations that are not waived count, and severity says how."""
    if not violations:
        return "pass"
    if all(violation.waived is not None for violation in violations):
        return "waived"
    return "warn" if query.severity == "warn" else "fail"


def waive_rules(contract: Contract, violations: Violations, today: date) -> tuple[Violations, frozenset[int]]:
    """Mark the violations that are waived today (UTC); also returns the indexes of the waivers that match any."""
    waivers = contract.config.waivers
    if not waivers:
        return violations, frozenset()
    used: set[int] = set()
    marked: Violations = {}
    for query_id, found in violations.items():
        query = contract.queries[query_id]
        matching = [[n for n, waiver in enumerate(waivers) if _covers(waiver, query, one)] for one in found]
        used.update(number for numbers in matching for number in numbers)
        marked[query_id] = tuple(
            replace(one, waived=_reason([waivers[n] for n in numbers], today))
            for one, numbers in zip(found, matching, strict=True)
        )
    return marked, frozenset(used)


def waive_gates(
    contract: Contract, gates: Iterable[GateReport], today: date
) -> tuple[tuple[GateReport, ...], frozenset[int]]:
    """Mark the broken gates that are waived today (UTC); also returns the indexes of the waivers that match any."""
    waivers = contract.config.waivers
    used: set[int] = set()
    marked = []
    for gate in gates:
        broken = gate.status == "fail"
        matching = [number for number, waiver in enumerate(waivers) if broken and waiver.gate == gate.id]
        used.update(matching)
        why = _reason([waivers[number] for number in matching], today)
        marked.append(gate if why is None else replace(gate, status="waived", waived=why))
    return tuple(marked), frozenset(used)


def _reason(waivers: Iterable[Waiver], today: date) -> str | None:
    """Return the reason from the first waiver that has not expired; None if there is none."""
    current = (waiver for waiver in waivers if today <= date.fromisoformat(waiver.expires))
    waiver = next(current, None)
    return None if waiver is None else f"until {waiver.expires}, {waiver.owner}: {waiver.reason}"


def significance_of(contract: Contract, gates: Sequence[Gate], aggregates: Aggregates) -> dict[str, Significance]:
    """Test all limits on changes and return the results by gate id; empty unless ``fail_on.mode`` is ``significant``.

    With Holm's correction, many limits cause no more false alarms than one.
    """
    fail_on = contract.config.fail_on
    changes = [gate for gate in gates if gate.compares and gate.quantity.read is None]
    if fail_on.mode != "significant" or not changes:
        return {}
    alpha = fail_on.alpha
    fewest = fewest_changed(alpha, len(changes))
    # With very many limits, no sampled p-value can be small enough, so the smallest possible one must count.
    too_coarse = SMALLEST_SAMPLED if alpha / len(changes) < SMALLEST_SAMPLED else 0.0
    wanted: dict[str, list[str]] = {}
    for gate in changes:
        if gate.tag is not None:
            wanted.setdefault(gate.tag, []).append(gate.quantity.key)
    by_tag = aggregates.noise_of_tags(wanted)
    p_values = {
        gate.id: noise.p_value
        for gate in changes
        if (noise := (aggregates.noise if gate.tag is None else by_tag[gate.tag]).get(gate.quantity.key))
        and noise.p_value is not None
        and noise.wins + noise.losses >= fewest
    }
    significant = holm({gate_id: p for gate_id, p in p_values.items() if p > too_coarse}, alpha)
    return {
        gate.id: Significance(p_value=p_values.get(gate.id), counts=significant.get(gate.id, True)) for gate in changes
    }


def _covers(waiver: Waiver, query: GoldenQuery, broken: Violation) -> bool:
    if waiver.gate is not None or waiver.rule not in {None, broken.rule}:
        return False
    return as_id(waiver.query) == query.id if waiver.query is not None else waiver.tag in query.tags


def waiver_warnings(contract: Contract, used: Container[int], today: date) -> Iterator[str]:
    """Yield a warning for every waiver that has expired, matches nothing broken, or names what does not exist."""
    gates = [gate.id for gate in contract.gates]
    for number, waiver in enumerate(contract.config.waivers):
        location = contract.config_file.locations.get(f"waivers[{number}]", "")
        if number not in used and (stranger := _stranger(waiver, contract.queries, gates)):
            yield f"{location}: {stranger}"
        elif number not in used:
            yield f"{location}: waives nothing that is broken ({_target(waiver)}); delete it"
        elif today > date.fromisoformat(waiver.expires):
            yield f"{location}: expired on {waiver.expires}, so it no longer counts ({_target(waiver)}, {waiver.owner})"


def _stranger(waiver: Waiver, queries: Mapping[str, GoldenQuery], gates: Sequence[str]) -> str | None:
    """Return a message if the query, tag or gate of a waiver does not exist, else None."""
    known: Iterable[str]
    if waiver.gate is not None:
        what, name, known = "gate has the id", waiver.gate, gates
    elif waiver.query is not None:
        what, name, known = "golden query has the id", as_id(waiver.query), queries
    else:
        known = dict.fromkeys(tag for query in queries.values() for tag in query.tags)
        what, name = "golden query has the tag", waiver.tag or ""
    if name in known:
        return None
    near = nearest(name, islice(known, COMPARED))
    return f"no {what} {name!r}; {f'did you mean {near!r}?' if near else 'delete the waiver'}"


def _target(waiver: Waiver) -> str:
    if waiver.gate is not None:
        return waiver.gate
    name = f"query {as_id(waiver.query)!r}" if waiver.query is not None else f"tag {waiver.tag!r}"
    return f"{waiver.rule} of {name}" if waiver.rule else name
