"""The headline of the reports for people, and the note on which queries are compared."""

from ragcontract.core.finding import phrase_of
from ragcontract.core.numbers import count
from ragcontract.core.phrase import Name, Phrase, Quote, render
from ragcontract.core.text import visible
from ragcontract.reports.broken import IN_BASELINE, broken_gates, sizes_since
from ragcontract.reports.drift import not_compared
from ragcontract.reports.metric_table import metric_rows
from ragcontract.reports.report import Report

HOLDS = {"pass": "holds", "fail": "broken"}


def summary_line(report: Report) -> str:
    """Return verdict and reason as one line of plain text, such as ``Retrieval contract broken: 1 of 2 queries …``.

    The line has the contract's name if it has one, and no control characters.
    """
    name = report.source.contract if report.source else None
    contract = f"Retrieval contract {visible(name)}" if name else "Retrieval contract"
    return f"{contract} {HOLDS[report.verdict]}: {headline(report, visible, visible)}"


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
        nothing = "nothing new" if broken.queries else "nothing"
        return (f"{nothing} broken in {queries}{limits}{tolerated(report)}",)
    phrase: list[str | Name] = []
    if gates:
        more = f" (and {count(len(gates) - 1, 'more gate')} broken)" if len(gates) > 1 else ""
        phrase += [*phrase_of(gates[0]), more]
    if broken.queries:
        sizes = sizes_since(report, broken.new, broken.in_baseline)
        phrase.append(f"{'; ' if gates else ''}{broken.queries:,} of {queries} broken{sizes}")
    return (*phrase, tolerated(report))


def tolerated(report: Report) -> str:
    """Return how many queries and gates are broken but do not fail, in brackets; empty if there are none."""
    statuses = [query.status for query in report.queries]
    waived = statuses.count("waived") + sum(gate.status == "waived" for gate in report.gates)
    known = report.broken.in_baseline if report.verdict == "pass" else 0  # else they are among the broken queries
    sizes = {IN_BASELINE: known, "waived": waived, "to warn": statuses.count("warn")}
    parts = [f"{size:,} {word}" for word, size in sizes.items() if size]
    return f" ({', '.join(parts)})" if parts else ""


def shared_note(report: Report) -> str | None:
    """Return over which queries changes are computed; None if that is all of them."""
    baseline = report.inputs.baseline
    if baseline is None or not (groups := not_compared(baseline)):
        return None
    differs = any(metric.current != metric.current_shared for metric in report.metrics.values())
    apart = [f"{len(ids):,} {name}" for name, ids in groups.items()]
    shared = ", ".join(f"{row.label} {row.current_shared}" for row in metric_rows(report))
    end = f"; the run's means over those: {shared}" if differs else ""
    return (
        f"Changes are taken over the {count(baseline.shared, 'query')} that both sides have ({', '.join(apart)}){end}."
    )
