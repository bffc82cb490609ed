"""Reports as text for a terminal, with colours as ANSI codes, which are removed if the output is not a terminal.

The codes are defined here so that the action, whose log has no colours, does not import click.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import get_args

from msgspec import UNSET
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.numbers import count, fixed, milliseconds, ms_digits
from ragcontract.core.phrase import Name
from ragcontract.core.phrase import render as render_phrase
from ragcontract.core.run import Latency
from ragcontract.core.safe_text import clipped, shorten, visible
from ragcontract.report.blocks import (
    Bars,
    Block,
    Fold,
    Form,
    Group,
    Heading,
    Items,
    Kind,
    Mean,
    Note,
    Parts,
    Sentence,
    Style,
    Table,
    Text,
    rendered,
)
from ragcontract.report.headline import drift
from ragcontract.report.metric_table import Row, table_rows
from ragcontract.report.notes import repeats_note
from ragcontract.report.record import ErrorReport, Report
from ragcontract.report.sections.broken import broken_lists
from ragcontract.report.sections.changes import diff
from ragcontract.report.sections.frame import open_notes, other_causes, reasons, verdict
from ragcontract.report.sections.metrics import labels, metric_notes, modes, tiers, trends

FORM: Form = "terminal"
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
COLOURS = {word: YELLOW for word in STATUS.values() if word != "-"} | {"PASS": GREEN, "FAIL": RED}


def without_colours(text: str) -> str:
    """Return the text without the colour codes."""
    for code in (RED, GREEN, YELLOW, BOLD, END):
        text = text.replace(code, "")
    return text


def _coloured(word: str) -> str:
    colour = COLOURS.get(word)
    return f"{colour}{BOLD}{word}{END}" if colour else word


WORDS: dict[Kind, Callable[[str], str]] = dict.fromkeys(get_args(Kind), visible) | {
    "question": lambda value: clipped(value, bounds.TERMINAL_QUESTION),
    "why": lambda value: clipped(value, bounds.TERMINAL_WHY),
    "name": lambda value: shorten(visible(value), bounds.TERMINAL_RESULT),
}


def _sentence(words: Sentence) -> str:
    text = render_phrase(words.phrase, visible, visible, marks=words.marks)
    return shorten(text, bounds.CELL) if words.kind == "reason" else text


CELL = Style(
    name=visible,
    words=WORDS | {"status": STATUS.__getitem__},
    sentence=_sentence,
    styles={"strong": str, "small": str},  # colours would take room
    numbers=lambda part: part.text if isinstance(part, Mean) else f"{part.number:,}",
    line_break=", ",
)
STYLE = replace(
    CELL,
    words=WORDS | {"status": lambda status: _coloured(STATUS[status])},
    styles={"strong": f"{BOLD}{{}}{END}".format, "small": str},
)


def page(blocks: Iterable[Block]) -> str:
    """Render blocks with blank lines between them."""
    return "\n\n".join(filter(None, ("\n".join(_lines(block)) for block in blocks))) + "\n"


def _lines(block: Block) -> Iterable[str]:
    match block:
        case Heading(parts) | Note(parts):
            return filter(None, [rendered(parts, STYLE)])
        case Items(items):
            return [rendered(item, STYLE) for item in items]
        case Table(head, _, rows):
            return aligned([[rendered(cell, CELL) for cell in row] for row in [*([head] if head else []), *rows]])
        case Bars():
            return aligned([_cells(row, block) for row in block.rows])
        case Fold(title, blocks):
            return [rendered(title, STYLE), *(f"  {line}" for inner in blocks for line in _lines(inner))]
        case Group(blocks):
            return [line for inner in blocks for line in _lines(inner)]


def _cells(row: Row, bars: Bars) -> list[str]:
    label = visible(row.label if row.tag is None else f"{row.label} {row.tag}")
    values = [f"{row.baseline} -> {row.current}", row.change] if row.compared else [row.current]
    values += [""] * (bars.compared and not row.compared)
    verdict = [STATUS[row.status], row.limits] if bars.limited else []
    return [", ".join(filter(None, [label, row.over, row.direction])), *values, *verdict]


def aligned(cells: Sequence[Sequence[str]]) -> Iterable[str]:
    """Lay out rows of text in columns, two spaces between them; long cells are cut."""
    cells = [[shorten(cell, bounds.CELL) for cell in row] for row in cells]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        line = "  ".join(_coloured(cell) + " " * (width - len(cell)) for cell, width in zip(row, widths, strict=True))
        yield line.rstrip()


def check_text(report: Report, file: str = "") -> str:
    """Render a check; ``file`` is the full report."""
    return page(check(report, file))


def check(report: Report, file: str = "") -> list[Block]:
    """Return the blocks of a check: the worst broken queries, the metric table, causes, the verdict."""
    mistakes = [Sentence(mistake) for mistake in report.likely_mistakes[1:]]
    table = Bars(table_rows(report), report.inputs.baseline is not None)
    return [
        *broken_lists(report, file),
        Group(
            [
                Items([*mistakes, *drift(report)]),
                table,
                Items(trends(report) if report.history else []),
                *map(Note, metric_notes(report)),
            ]
        ),
        *reasons(report, FORM),
        *tiers(report, FORM),
        *modes(report, FORM),
        *labels(report, FORM),
        *other_causes(report),
        Items([part for part in verdict(report) if part]),
    ]


def error_text(report: ErrorReport) -> str:
    """Render the report on input that cannot be judged."""
    more = f"and {count(report.more_problems, 'other problem')}" if report.more_problems else ""
    problems = [f"error: {problem}" for problem in report.problems]
    warnings = [f"warning: {warning}" for warning in report.warnings]
    last = "The input cannot be judged"
    return page([Items([Text(line, "line") for line in (*warnings, *problems, more, last) if line])])


def verdict_text(report: Report) -> str:
    """Render what remains open and what changed, the likeliest cause, and the verdict as the last line."""
    return page([Items([part for part in verdict(report) if part])])


def pass_notes(report: Report) -> Iterable[str]:
    """Return the notes beside a verdict and its metrics, without which a pass says more than was checked."""
    return [rendered(note, STYLE) for note in (*open_notes(report), *trends(report), *metric_notes(report))]


def diff_text(report: Report) -> str:
    """Render how ranks changed, worst first; empty without a baseline."""
    return "" if report.inputs.baseline is None else page(diff(report, FORM))


def score_text(report: Report) -> str:
    """Render the metrics of one run, overall and by tag."""
    shown = {key: metric for key, metric in report.metrics.items() if metric.diagnostic is UNSET}
    golden = report.inputs.golden
    rows: list[list[Parts]] = [["all", str(golden.queries), *(fixed(metric.current, 4) for metric in shown.values())]]
    for tag, numbers in report.tags.items():
        rows.append([Name(tag), str(numbers.queries), *(fixed(numbers.metrics.get(key), 4) for key in shown)])
    head: list[Parts] = ["", "queries", *(Text(metric.label, "label") for metric in shown.values())]
    notes = [repeats_note(report), *report.run_notes, _latency(report.latency.current) if report.latency else ""]
    if unanswerable := golden.queries - golden.answerable:
        verb = "is" if unanswerable == 1 else "are"
        notes.append(f"{count(unanswerable, 'query')} without relevant documents {verb} left out of the means.")
    return page([Table(head, "l" * len(head), rows), *(Note(Text(note, "line")) for note in notes if note)])


def _latency(latency: Latency) -> str:
    """Return a line such as ``latency: p50 41 ms, p95 80 ms, max 120 ms (25 rows)``."""
    values = {"p50": latency.p50_ms, "p95": latency.p95_ms, "max": latency.max_ms}
    shown = [f"{name} {milliseconds(value, ms_digits(value, value))}" for name, value in values.items()]
    return f"latency: {', '.join(shown)} ({count(latency.rows, 'row')})"
