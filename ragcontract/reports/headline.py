"""The headline of the reports for people, and the note on which queries are compared."""

from collections.abc import Sequence

from msgspec import UNSET

from ragcontract.core import bounds
from ragcontract.core.finding import phrase_of
from ragcontract.core.numbers import count, fixed
from ragcontract.core.phrase import Name, Phrase, Quote, joined, listed, render
from ragcontract.judging.gate_report import GateReport
from ragcontract.reports.broken import IN_BASELINE, broken_gates, sizes_since
from ragcontract.reports.certainty_text import over_and_not_proven
from ragcontract.reports.drift import not_compared
from ragcontract.reports.limit_text import limited_by
from ragcontract.reports.metric_table import differs, table_rows
from ragcontract.reports.report import BrokenQueries, ErrorReport, Report

VERDICTS = {"pass": "holds", "fail": "broken"}  # what a contract does


def headline(report: Report, name: Quote = str, text: Quote = str) -> str:
    """Return the reason for the verdict as one line; ``name`` and ``text`` escape names and other text."""
    return render(headline_phrase(report), name, text)


def headline_phrase(report: Report) -> Phrase:
    """Return the same as a phrase, for reports that format names differently."""
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
        phrase += ["; ", *_tiers(skipped), " skipped"]
    return (*phrase, f"{tolerated(report)}{over_and_not_proven(report)}")


def subject(report: Report | ErrorReport) -> str:
    """Return what a report is about: a contract with rules about answers is not only one of retrieval."""
    about_answers = isinstance(report, Report) and report.broken.answers is not UNSET
    return "Contract" if about_answers else "Retrieval contract"


def _tiers(names: Sequence[str]) -> Phrase:
    return (f"{'tier' if len(names) == 1 else 'tiers'} ", *listed(names, "and"))


def _in_answers(broken: BrokenQueries) -> str:
    """Return how many of the broken queries are broken in their answers: by rules that are not about ranks."""
    answers = min(broken.answers or 0, broken.queries)  # a report that somebody else wrote may have more
    if not answers:
        return ""
    their = "its answer" if answers == 1 else "their answers"
    return f" in {their}" if answers == broken.queries else f" ({answers:,} in {their})"


def _other_gates(report: Report, ids: Sequence[str]) -> Phrase:
    """Return the other broken gates in brackets: the first by what they limit, the rest counted."""
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
    """Return over which queries both sides are compared; None if that is all of them."""
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
