"""Reports as text for a terminal, with colours as ANSI codes, which are removed if the output is not a terminal.

The codes are defined here so that the action, whose log has no colours, does not import click.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import UNSET

from ragcontract.core import bounds
from ragcontract.core.numbers import count, fixed, milliseconds, more, ms_digits
from ragcontract.core.phrase import render
from ragcontract.core.run import Latency
from ragcontract.core.safe_text import clipped, shorten, visible
from ragcontract.report.headline import changed_versions, drift, headline, not_compared, shared_note
from ragcontract.report.limit_text import left_open
from ragcontract.report.metric_table import table_rows
from ragcontract.report.notes import change_notes, repeats_note, scope_note, worst_ranks
from ragcontract.report.outcome_tables import CORNER, minimum, mode_matrix, rate, tier_rows
from ragcontract.report.queries import (
    REASONS,
    FindingsByQuery,
    broken_queries,
    failing_since,
    not_failing_queries,
    score_reasons,
    shown_answer,
)
from ragcontract.report.rank_changes import RankChange, RankChanges, about, metric_step, pairs, rank, rank_changes, top
from ragcontract.report.record import QueryReport, Report, RetrievedReport

STATUS = {
    "pass": "PASS",
    "fail": "FAIL",
    "unproven": "UNPROVEN",
    "too_few": "TOO FEW",
    "warn": "WARN",
    "counted": "COUNTED",
    "skipped": "SKIPPED",
    "waived": "WAIVED",
    "known": "KNOWN",
    "none": "-",
}
RED, GREEN, YELLOW, BOLD, END = (f"\x1b[{code}m" for code in (31, 32, 33, 1, 0))
COLOURS = {
    "PASS": GREEN,
    "FAIL": RED,
    "UNPROVEN": YELLOW,
    "TOO FEW": YELLOW,
    "WARN": YELLOW,
    "WAIVED": YELLOW,
    "KNOWN": YELLOW,
    "COUNTED": YELLOW,
    "SKIPPED": YELLOW,
}


def without_colours(text: str) -> str:
    """Return the text without the colour codes."""
    for code in (RED, GREEN, YELLOW, BOLD, END):
        text = text.replace(code, "")
    return text


def check_text(report: Report, file: str = "") -> str:
    """Render a check: the worst broken queries, the metric table, the verdict; ``file`` is the full report."""
    findings, most = FindingsByQuery(report), bounds.TERMINAL_QUERIES
    broken, not_failing = broken_queries(report), not_failing_queries(report)
    shown = [
        f"{_coloured(STATUS[query.status])} {visible(query.id)}  "
        f"{clipped(findings.why_tolerated(query.id, query.status), bounds.TERMINAL_WHY)}"
        for query in not_failing[:most]
    ]
    parts = ["\n".join([*shown, *_more(not_failing, "that do not fail", file)])]
    parts += [_broken(query, findings, visible(failing_since(report, query, findings))) for query in broken[:most]]
    parts += _more(broken, "broken", file)
    mistakes = [render(phrase, visible, visible) for phrase in report.likely_mistakes]
    parts.append("\n".join([*mistakes, *(render(phrase, visible) for phrase in drift(report)), *_metric_table(report)]))
    if reasons := [render(phrase, visible, visible) for phrase in score_reasons(report)]:
        parts.append("\n".join([f"{REASONS}:", *(f"  {shorten(line, bounds.CELL)}" for line in reasons)]))
    parts += outcome_blocks(report)
    parts.append(verdict_text(report).rstrip("\n"))
    return "\n\n".join(part for part in parts if part) + "\n"


def outcome_blocks(report: Report) -> Iterable[str]:
    """Yield the tables of tiers and of modes that the report has."""
    if tiers := tier_rows(report):
        cells = [
            [
                visible(tier.name),
                STATUS[tier.status],
                rate(tier),
                f"minimum {minimum(tier)}" if minimum(tier) else "",
                visible(tier.skipped or ""),
            ]
            for tier in tiers
        ]
        yield "\n".join(["Tiers", *(f"  {line}" for line in aligned(cells))])
    if matrix := mode_matrix(report):
        cells = [[CORNER, *map(visible, matrix.columns), "recall"]]
        cells += [
            [visible(line.name), *(f"{cell.number:,}" for cell in line.cells), line.recall] for line in matrix.lines
        ]
        cells.append(["precision", *matrix.precision, ""])
        yield "\n".join([matrix.title, *(f"  {line}" for line in aligned(cells))])


def verdict_text(report: Report) -> str:
    """Render the verdict and its reason as one line, and below it what remains open and what changed."""
    lines = [f"{_coloured(STATUS[report.verdict])}  {render(headline(report), visible, visible)}"]
    phrases = [*left_open(report), scope_note(report), *report.label_notes, *change_notes(report)]
    lines += [render(phrase, visible, visible) for phrase in phrases if phrase]
    return "\n".join(lines) + "\n"


def pass_notes(report: Report) -> Iterator[str]:
    """Yield the notes beside a verdict and its metrics, without which a pass says more than was checked."""
    notes = (*left_open(report), *report.label_notes, *change_notes(report))
    yield from (render(phrase, visible, visible) for phrase in notes)
    yield from filter(None, (shared_note(report), repeats_note(report), *report.run_notes))


def _more(queries: Sequence[QueryReport], what: str, file: str) -> Iterable[str]:
    """Yield a line that counts the queries that are not shown, if there are any."""
    if rest := more(len(queries), bounds.TERMINAL_QUERIES):
        yield f"… and {rest} {what}" + (f", see {visible(file)}" if file else "")


def _broken(query: QueryReport, findings: FindingsByQuery, note: str) -> str:
    lines = [f"{_coloured(STATUS[query.status])} {_bold(visible(query.id))}{f' ({note})' if note else ''}"]
    for finding in findings.failing(query.id):
        expected, actual = (render(phrase, visible, visible) for phrase in (finding.expected, finding.found))
        lines += [f"  Expected {expected}", f"  Found: {actual}"]
    if answer := shown_answer(query, bounds.TERMINAL_ANSWER):
        lines.append(f"  Answer: {answer}")
    if why := findings.why_tolerated(query.id):
        waived = [
            f"{render(finding.expected, visible, visible)}: {render(finding.found, visible, visible)}"
            for finding in findings.tolerated(query.id)
        ]
        lines.append(f"  Not counted: {'; '.join(waived)} ({clipped(why, bounds.TERMINAL_WHY)})")
    return "\n".join(lines)


def _metric_table(report: Report, *, with_status: bool = True) -> Iterable[str]:
    has_baseline = report.inputs.baseline is not None
    cells = []
    for row in table_rows(report):
        verdict = [STATUS[row.status], row.limits] if with_status else []
        label = row.label if row.tag is None else f"{row.label} {visible(row.tag)}"
        values = [f"{row.baseline} -> {row.current}", row.moved] if row.compared else [row.current]
        values += [""] * (has_baseline and not row.compared)
        cells.append([", ".join(filter(None, [label, row.over, row.direction])), *values, *verdict])
    yield from aligned(cells)
    yield from (note for note in (shared_note(report), repeats_note(report), *report.run_notes) if note)


def aligned(cells: Sequence[Sequence[str]]) -> Iterable[str]:
    """Lay out rows of text in columns, two spaces between them; long cells are cut."""
    cells = [[shorten(cell, bounds.CELL) for cell in row] for row in cells]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        line = "  ".join(_coloured(cell) + " " * (width - len(cell)) for cell, width in zip(row, widths, strict=True))
        yield line.rstrip()


def _coloured(word: str) -> str:
    colour = COLOURS.get(word)
    return colour + _bold(word) if colour else word


def _bold(text: str) -> str:
    return f"{BOLD}{text}{END}"


def diff_text(report: Report) -> str:
    """Render how ranks changed, worst first; empty without a baseline."""
    if report.inputs.baseline is None:
        return ""
    moved = rank_changes(report)
    parts = [*changes(report, moved), "\n".join(_metric_table(report, with_status=False)), sizes(moved)]
    return "\n\n".join(part for part in parts if part) + "\n"


def sizes(moved: RankChanges) -> str:
    """Return how many queries got worse, got better and stayed the same."""
    even = [] if moved.even is None else [f"{moved.even} the same"]
    return ", ".join([f"{len(moved.worse)} worse", f"{len(moved.better)} better", *even])


def lists(groups: Mapping[str, Sequence[str]]) -> Iterable[str]:
    """Yield each group of ids under a heading with its name and size."""
    for name, ids in groups.items():
        head = f"{name[:1].upper()}{name[1:]} ({len(ids)})"
        yield "\n".join([head, *(f"  {visible(query_id)}" for query_id in ids)])


def changes(report: Report, moved: RankChanges) -> Iterable[str]:
    """Yield the differences between baseline and run as blocks: worse, better, not compared, versions."""
    for title, group in (("Worse", moved.worse), ("Better", moved.better)):
        if group:
            yield "\n".join([f"{title} ({len(group)})", *(_moved(item, report) for item in group)])
    baseline = report.inputs.baseline
    yield from lists(not_compared(baseline) if baseline else {})
    versions = changed_versions(report.inputs.run.versions, baseline.versions) if baseline else {}
    if versions:
        lines = [f"  {field}: {visible(old)} -> {visible(new)}" for field, (old, new) in versions.items()]
        yield "\n".join(["Versions that changed", *lines])


def _moved(item: RankChange, report: Report) -> str:
    steps = [
        f"    {visible(step.doc_id)}{' (forbidden)' if step.forbidden else ''}: {rank(step.before)} -> {rank(step.now)}"
        for step in item.steps
    ]
    if item.metric:
        ranks = f"; {worst_ranks(report)}:" if steps else ""
        steps.insert(0, f"    {metric_step(item, report, '->')}{ranks}")
    title = f"  {_bold(visible(item.query.id))}  {clipped(item.query.query, bounds.TERMINAL_QUESTION)}"
    return "\n".join([title, *steps, *(f"    {line}" for line in _retrieved(item.query, report))])


def _retrieved(query: QueryReport, report: Report) -> Iterable[str]:
    """Yield the results for a broken query, rank by rank."""
    if query.retrieved is None:
        return
    yield f"Retrieved, {top(report)}:"
    sides = [("before", query.baseline_retrieved), ("now", query.retrieved)]
    listed = [(name, results) for name, results in sides if results is not None]
    cells = [["", *(name if results else f"{name}: nothing" for name, results in listed)]]
    for pair in pairs(query):
        both = [_result(pair.before), _result(pair.now)]
        cells.append([str(pair.rank), *both[-len(listed) :]])
    yield from aligned(cells)


def _result(result: RetrievedReport | None) -> str:
    if result is None:
        return ""
    named = f" ({result.contract})" if result.contract else ""
    return shorten(", ".join(map(visible, [f"{result.doc_id}{named}", *about(result)])), bounds.TERMINAL_RESULT)


def score_text(report: Report) -> str:
    """Render the metrics of one run, overall and by tag."""
    shown = {key: metric for key, metric in report.metrics.items() if metric.diagnostic is UNSET}
    labels = [metric.label for metric in shown.values()]
    cells = [["", "queries", *labels]]
    overall = [fixed(metric.current, 4) for metric in shown.values()]
    cells.append(["all", str(report.inputs.golden.queries), *overall])
    for tag, numbers in report.tags.items():
        cells.append([visible(tag), str(numbers.queries), *(fixed(numbers.metrics.get(key), 4) for key in shown)])
    golden = report.inputs.golden
    text = "\n".join(aligned(cells)) + "\n"
    for note in (repeats_note(report), *report.run_notes):
        text += f"\n{note}\n" if note else ""
    if report.latency:
        text += f"\n{_latency(report.latency.current)}\n"
    unanswerable = golden.queries - golden.answerable
    if unanswerable:
        verb = "is" if unanswerable == 1 else "are"
        text += f"\n{count(unanswerable, 'query')} without relevant documents {verb} left out of the means.\n"
    return text


def _latency(latency: Latency) -> str:
    """Return a line such as ``latency: p50 41 ms, p95 80 ms, max 120 ms (25 rows)``."""
    values = {"p50": latency.p50_ms, "p95": latency.p95_ms, "max": latency.max_ms}
    shown = [f"{name} {milliseconds(value, ms_digits(value, value))}" for name, value in values.items()]
    return f"latency: {', '.join(shown)} ({count(latency.rows, 'row')})"
