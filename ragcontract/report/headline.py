"""The headline of a report, its summary as one line of plain text, and sentences that may explain the result.

These are about mistakes in the input, about what else changed since the baseline, and about which queries are compared.
"""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import UNSET

from ragcontract.core import bounds
from ragcontract.core.finding import phrase_of
from ragcontract.core.numbers import count, fixed, more
from ragcontract.core.phrase import Code, Name, Phrase, joined, listed, render
from ragcontract.core.run import COMPARED_VERSIONS, VERSION_FIELDS
from ragcontract.core.safe_text import clipped, encodable, shorten, visible
from ragcontract.decision.gate_report import GateReport
from ragcontract.report.limit_text import limited_by, over_and_not_proven
from ragcontract.report.metric_table import differs, table_rows
from ragcontract.report.parts import BaselineInput
from ragcontract.report.queries import IN_BASELINE, broken_gates, sizes_since
from ragcontract.report.record import BrokenQueries, ErrorReport, Report


def drift(report: Report) -> Iterator[Phrase]:
    """Yield sentences on differences that make run and baseline hard to compare."""
    run, baseline = report.inputs.run.versions, report.inputs.baseline
    mixed = {field: run[field] for field in VERSION_FIELDS if len(run.get(field, ())) > 1}
    for field, values in mixed.items():
        first = joined(([Name(value)] for value in values[: bounds.NAMES]), len(values) - bounds.NAMES)
        yield (f"The run's rows disagree about the {_spoken(field)}: ", *first)
    if baseline is None:
        return
    changed = changed_versions(run, baseline.versions)
    if changed:
        steps = ((f"{_spoken(field)} ", Name(old), " → ", Name(new)) for field, (old, new) in changed.items())
        yield ("Also changed since the baseline: ", *joined(steps))
    if baseline.too_old:
        age = f"The baseline is {count(baseline.age_days or 0, 'day')} old, more than max_baseline_age allows"
        yield (f"{age}; update it with ", Code("rag-contract baseline --update"))
    if baseline.k is not None and max(baseline.k) != max(report.k):
        yield (f"The baseline was made with k = {max(baseline.k)} and is compared here at k = {max(report.k)}",)


def as_warning(mistake: Phrase) -> str:
    """Return a likely mistake as plain text, as the warnings of the report have it."""
    return encodable(render(mistake))


def other_warnings(report: Report) -> list[str]:
    """Return the warnings that are not likely mistakes, for reports that show the mistakes at the top."""
    return report.warnings[len(report.likely_mistakes) :]  # the mistakes are the first warnings


def _spoken(field: str) -> str:
    return field.replace("_", " ")


def changed_versions(run: Mapping[str, list[str]], baseline: Mapping[str, list[str]]) -> dict[str, tuple[str, str]]:
    """Return the version fields that both sides have and that differ, as ``{field: (baseline's, run's)}``."""
    return {
        field: (", ".join(before), ", ".join(now))
        for field in COMPARED_VERSIONS
        if (now := run.get(field)) and (before := baseline.get(field)) and set(before) != set(now)
    }


def not_compared(baseline: BaselineInput) -> dict[str, list[str]]:
    """Return the ids of the queries that only one side has, or that have another question, by the name of the group."""
    groups = {"new": baseline.new, "with another question": baseline.changed, "gone": baseline.gone}
    return {name: query_ids for name, query_ids in groups.items() if query_ids}


VERDICTS = {"pass": "holds", "fail": "broken"}


def headline(report: Report) -> Phrase:
    """Return the reason for the verdict."""
    gates = broken_gates(report)
    broken = report.broken
    queries = count(report.inputs.golden.queries, "query")
    if report.verdict == "pass":
        limits = f" and {count(len(report.gates), 'gate')}" if report.gates else "; no gates are set"
        rest = f"{tolerated(report)}{over_and_not_proven(report)}"
        if counted := sum(query.status == "counted" for query in report.queries):
            gates_hold = f"nothing broken in {count(len(report.gates), 'gate')}"
            return (f"{gates_hold}; {counted:,} of {queries} broken, which the pass rate allows{rest}",)
        nothing = "nothing new" if broken.queries else "nothing"
        return (f"{nothing} broken in {queries}{limits}{rest}",)
    phrase: list[str | Name] = []
    if gates:
        phrase += [*phrase_of(gates[0]), *_other_gates(report, [gate.ids[0] for gate in gates[1:]])]
    if broken.queries:
        sizes = sizes_since(report, broken.new, broken.in_baseline)
        phrase.append(f"{'; ' if gates else ''}{broken.queries:,} of {queries} broken{_in_answers(broken)}{sizes}")
    if skipped := [tier.name for tier in report.tiers or [] if tier.status == "skipped"]:
        phrase += [f"; {'tier' if len(skipped) == 1 else 'tiers'} ", *listed(skipped, "and"), " skipped"]
    return (*phrase, f"{tolerated(report)}{over_and_not_proven(report)}")


def subject(report: Report | ErrorReport) -> str:
    """Return the subject of a report: a contract with rules about answers is not only a retrieval contract."""
    about_answers = isinstance(report, Report) and report.broken.answers is not UNSET
    return "Contract" if about_answers else "Retrieval contract"


def _in_answers(broken: BrokenQueries) -> str:
    """Return how many of the broken queries break rules that are not about ranks."""
    answers = min(broken.answers or 0, broken.queries)  # a report that somebody else wrote may have more
    if not answers:
        return ""
    their = "its answer" if answers == 1 else "their answers"
    return f" in {their}" if answers == broken.queries else f" ({answers:,} in {their})"


def _other_gates(report: Report, ids: Sequence[str]) -> Phrase:
    """Return the other broken gates in brackets: what the first ones limit, and a count of the rest."""
    if not ids:
        return ()
    by_id = {gate.id: gate for gate in report.gates}
    first = [_gate(by_id.get(gate_id), gate_id) for gate_id in ids[: bounds.NAMES]]
    return (f" (and {count(len(ids), 'more gate')} broken: ", *joined(first, len(ids) - bounds.NAMES), ")")


def _gate(gate: GateReport | None, gate_id: str) -> Phrase:
    if gate is None:  # only in a report that somebody else wrote
        return (Name(gate_id),)
    return (*((Name(gate.of), ": ") if gate.of is not None else ()), limited_by(gate))


def tolerated(report: Report) -> str:
    """Return how many queries and gates are broken but do not fail, in brackets; empty if there are none."""
    statuses = [query.status for query in report.queries]
    waived = statuses.count("waived") + sum(gate.status == "waived" for gate in report.gates)
    known = report.broken.in_baseline if report.verdict == "pass" else 0  # else they are among the broken queries
    sizes = {
        IN_BASELINE: known,
        "waived": waived,
        "skipped": statuses.count("skipped"),
        "to warn": statuses.count("warn"),
    }
    parts = [f"{size:,} {word}" for word, size in sizes.items() if size]
    return f" ({', '.join(parts)})" if parts else ""


def shared_note(report: Report) -> str | None:
    """Return a sentence on which queries are compared; None if all are."""
    baseline = report.inputs.baseline
    if baseline is None or not (groups := not_compared(baseline)):
        return None
    apart = [f"{len(ids):,} {name}" for name, ids in groups.items()]
    rows = [row for row in table_rows(report) if row.tag is None]
    alone = {row.label for row in rows if row.over}  # has a row of its own
    others = [
        f"{row.label} {fixed(row.metric.current, row.digits)}"
        for row in rows
        if row.metric and differs(row.metric) and row.label not in alone
    ]
    end = f"; current over all {count(report.inputs.golden.queries, 'query')}: {', '.join(others)}" if others else ""
    shared = f"the {count(baseline.shared, 'query')} that both sides have ({', '.join(apart)})"
    return f"Compared over {shared}{end}."


def summary_of(report: Report | ErrorReport) -> str:
    """Return the contract's name if it has one, the verdict and its reason on one line; control characters visible."""
    if isinstance(report, Report):
        text = f"{VERDICTS[report.verdict]}: {render(headline(report), visible, visible)}"
    else:
        first = visible(report.problems[0]) if report.problems else "no problem is known"
        others = more(len(report.problems) + report.more_problems, 1, "problem", " (and {})")
        text = f"could not be judged: {first}{others}"
    name = report.source.contract if report.source else None
    named = f" {clipped(name, bounds.MARKDOWN_NAME)}" if name else ""
    return shorten(f"{subject(report)}{named} {text}", bounds.SUMMARY_LINE)
