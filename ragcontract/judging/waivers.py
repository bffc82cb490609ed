"""Waivers: known failures that a team has accepted until a date. They are shown, and do not fail."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import islice

from msgspec.structs import replace

from ragcontract.contract.config import Waiver
from ragcontract.core.ids import as_id
from ragcontract.evaluation.scored import Scored
from ragcontract.files.schema import nearest
from ragcontract.judging.verdict import Judgement
from ragcontract.model import GateReport, GoldenQuery, Violation

COMPARED = 2_000  # names that a misspelled one is compared with, which takes long


def with_waivers(judgement: Judgement, scored: Scored, today: date) -> tuple[Judgement, list[str]]:
    """Mark what is waived today (UTC), and return warnings about waivers that have expired or match nothing broken."""
    waivers = scored.config.config.waivers
    if not waivers:
        return judgement, []
    queries = scored.golden.queries
    used: set[int] = set()

    def violation(broken: Violation, query: GoldenQuery) -> Violation:
        matching = [number for number, waiver in enumerate(waivers) if _covers(waiver, query, broken)]
        return replace(broken, waived=_reason(matching, waivers, used, today))

    def gate(report: GateReport) -> GateReport:
        matching = [number for number, waiver in enumerate(waivers) if waiver.gate == report.id]
        if report.status != "fail" or (reason := _reason(matching, waivers, used, today)) is None:
            return report
        return replace(report, status="waived", waived=reason)

    marked = replace(
        judgement,
        gates=[gate(report) for report in judgement.gates],
        violations={
            query_id: [violation(broken, queries[query_id]) for broken in violations]
            for query_id, violations in judgement.violations.items()
        },
    )
    return marked, list(_warnings(scored, [report.id for report in judgement.gates], used, today))


def _covers(waiver: Waiver, query: GoldenQuery, broken: Violation) -> bool:
    if waiver.gate is not None or waiver.rule not in {None, broken.rule}:
        return False
    return as_id(waiver.query) == query.id if waiver.query is not None else waiver.tag in query.tags


def _reason(matching: Sequence[int], waivers: Sequence[Waiver], used: set[int], today: date) -> str | None:
    used.update(matching)
    for number in matching:
        waiver = waivers[number]
        if today <= date.fromisoformat(waiver.expires):
            return f"until {waiver.expires}, {waiver.owner}: {waiver.reason}"
    return None


def _warnings(scored: Scored, gates: Sequence[str], used: set[int], today: date) -> Iterator[str]:
    for number, waiver in enumerate(scored.config.config.waivers):
        location = f"{scored.config.files[0].path}:{scored.config.lines[f'waivers[{number}]']}"
        if number not in used and (stranger := _stranger(waiver, scored.golden.queries, gates)):
            yield f"{location}: {stranger}"
        elif number not in used:
            yield f"{location}: waives nothing that is broken ({_target(waiver)}); delete it"
        elif today > date.fromisoformat(waiver.expires):
            yield f"{location}: expired on {waiver.expires}, so it counts no more ({_target(waiver)}, {waiver.owner})"


def _stranger(waiver: Waiver, queries: Mapping[str, GoldenQuery], gates: Sequence[str]) -> str | None:
    """Say that there is no such thing as the waiver names; None where there is."""
    known: Iterable[str]
    if waiver.gate is not None:
        what, name, known = "limit is set that is called", waiver.gate, gates
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
