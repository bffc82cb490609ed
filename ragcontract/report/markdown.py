"""The report as GitHub Flavored Markdown for a pull request: verdict and reason first, details folded.

All text from files is escaped here: ids become code, questions become plain text. Neither can mention a user, refer to
an issue or a commit, link, show an image, open an HTML tag, or end a table, a fence or a folded section.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from typing import get_args

from msgspec import UNSET, Struct
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.numbers import count
from ragcontract.core.phrase import Name, Phrase, shortened
from ragcontract.core.phrase import render as render_phrase
from ragcontract.core.safe_text import clipped, clipped_line
from ragcontract.report.blocks import (
    Bars,
    Block,
    Fold,
    Form,
    Group,
    Heading,
    Items,
    Kind,
    Lines,
    Mean,
    Note,
    Part,
    Parts,
    Sentence,
    Style,
    Table,
    Tally,
    Text,
    rendered,
)
from ragcontract.report.formats import Reported
from ragcontract.report.headline import headline, other_warnings, subject
from ragcontract.report.limit_text import could_hide
from ragcontract.report.notes import scope_note
from ragcontract.report.rank_changes import listed_queries
from ragcontract.report.record import ErrorReport, Report
from ragcontract.report.sections.broken import answered, broken, retrieved, tolerated
from ragcontract.report.sections.changes import changed_ranks
from ragcontract.report.sections.frame import cause, inputs, listed, notes, other_causes, reasons, warnings
from ragcontract.report.sections.metrics import labels, metrics, modes, noise, overlap, tags, tiers

ZERO_WIDTH_SPACE = "\u200b"

# GitHub turns these into links and images after rendering Markdown, so escapes have no effect; a zero-width space has.
_MADE_A_LINK = re.compile(
    r"(?<=@)(?!(?<=\w@)\d+(?![\w.+-]))"  # a user, a team, an e-mail address; not MRR@5
    r"|(?<=#)(?=\d)"  # an issue, also of another repository
    r"|(?<=gh)(?=-\d)|(?<=ghsa)(?=-)|(?<=cve)(?=-\d)"
    r"|(?<=:)(?=//)|(?<=www)(?=\.)"
    r"|(?<=:)(?=[\w+-]+:)",  # an emoji
    re.IGNORECASE,
)
_COMMIT = re.compile(r"\b[0-9a-f]{7,40}\b", re.IGNORECASE)
# Joiners and variation selectors, which `visible` allows. A renderer may drop them and see a line start behind them.
_START = re.compile("^([ \u180b-\u180d\u200c\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef]*)([0-9]*[-+#.)])?")


def text(value: str) -> str:
    """Escape plain text that may be at the start of a line."""
    return _START.sub(_escaped_start, inline(value), count=1)


def _escaped_start(start: re.Match[str]) -> str:
    block = start[2] or ""  # a list, a heading
    return start[1].replace(" ", "&#32;") + (f"{block[:-1]}\\{block[-1]}" if block else "")  # blanks: an indented block


# Each of these characters becomes the text beside it. The span is GitHub's documented escape from formulas.
_ESCAPES = str.maketrans(
    {
        **{char: f"\\{char}" for char in r"\`*_[]~"},
        "&": "&amp;",
        "<": "&lt;",
        ">": "&gt;",
        "|": "&#124;",
        "$": "<span>$</span>",
        ZERO_WIDTH_SPACE: "&#8203;",
    }
)


def inline(value: str) -> str:
    """Escape plain text within a line or a table cell, shortened: a text from a file may have any length."""
    plain = _MADE_A_LINK.sub(ZERO_WIDTH_SPACE, clipped(value, bounds.MARKDOWN_SENTENCE))
    plain = _COMMIT.sub(lambda match: ZERO_WIDTH_SPACE.join(re.findall(".{1,6}", match[0])), plain)
    return plain.translate(_ESCAPES)


def sentence(words: Phrase, *, starts_line: bool = False, marks: str = '"') -> str:
    """Render a phrase, shortened, with its names as code; ``starts_line`` if it may be at the start of a line."""
    short = shortened(words, bounds.MARKDOWN_SENTENCE, bounds.MARKDOWN_ID)
    # Together, parts may look like the beginning of a list that none of them is.
    first = [part for part in takewhile(lambda part: isinstance(part, str), short) if isinstance(part, str)]
    number = len(first) if starts_line else 0
    return line("".join(first[:number])) + render_phrase(short[number:], code, inline, marks=marks)


def code(value: str) -> str:
    """Format an id as code, shortened; nothing in it is interpreted as Markdown, a mention or a link."""
    shown = clipped(value, bounds.MARKDOWN_ID)
    if shown and not re.search(r"[`|\\]", shown) and shown.strip() == shown:
        return f"`{shown}`"
    # Two backquotes around nothing would start code instead of being code, so they do not quote an empty name.
    return f"<code>{_entities(shown)}</code>"


def breaking_code(value: str) -> str:
    """Format an id as :func:`code` does, but allow line breaks in it, for tables that must fit on a phone."""
    shown = clipped(value, bounds.MARKDOWN_ID)
    pieces = re.findall("[A-Za-z0-9]{1,12}[^A-Za-z0-9]?|[^A-Za-z0-9]", shown)
    return f"<code>{'<wbr>'.join(map(_entities, pieces))}</code>" if len(pieces) > 1 else code(value)


def _entities(shown: str) -> str:
    """Write everything but letters and digits as entities: backquotes and pipes would end the code or the table cell.

    The empty comment prevents that the text around an @ is taken for an e-mail address.
    """
    entities = re.sub("[^A-Za-z0-9 ]", lambda match: f"&#{ord(match[0])};", shown)
    return entities.replace("&#64;", "&#64;<!-- -->")


def line(value: str) -> str:
    """Shorten plain text and escape it."""
    return text(clipped(value, bounds.MARKDOWN_LINE))


STATUS = {
    "pass": "✅ pass",
    "fail": "❌ fail",
    "unproven": "⚠️ over, not proven",
    "too_few": "⚠️ over, too few changed",
    "waived": "☑️ waived",
    "skipped": "⏭️ skipped",
    "none": "no limit",
}
# How words are escaped and shortened, by their kind; others are lines.
WORDS: dict[Kind, Callable[[str], str]] = dict.fromkeys(get_args(Kind), line) | {
    "label": lambda value: text(clipped(value, bounds.MARKDOWN_NAME)),
    "question": lambda value: text(clipped(value, bounds.MARKDOWN_QUESTION)),
    "mode": lambda value: text(clipped(value, bounds.MARKDOWN_ID)),
    "fact": text,
    "note": inline,
    "said": lambda value: inline(clipped_line(value, bounds.MARKDOWN_SAID)),
    "context": lambda value: inline(clipped_line(value, bounds.MARKDOWN_CONTEXT)),
    "name": breaking_code,
    "run": breaking_code,
    "status": STATUS.__getitem__,
}


def _numbers(part: Mean | Tally) -> str:
    if isinstance(part, Mean):
        change, number = part.change + ("\\*" if part.is_significant else ""), part.text
        return f"{number} ({change})" if part.change else number
    number = f"<b>{part.number:,}</b>" if part.is_right and part.number else f"{part.number:,}"
    moved = 0 if part.before is None else part.number - part.before
    return f"{number} ({moved:+,})" if moved else number


STYLE = Style(
    name=code,
    words=WORDS,
    sentence=lambda words: sentence(words.phrase, starts_line=words.kind == "line", marks=words.marks),
    styles={"strong": "**{}**".format, "small": str},
    numbers=_numbers,
    line_break="<br>",
)
IN_CELL = replace(STYLE, styles={**STYLE.styles, "strong": "<b>{}</b>".format})


def page(blocks: Iterable[Block]) -> str:
    """Render the blocks of a page."""
    return _block(Group([*blocks])) + "\n"


def _block(block: Block) -> str:
    match block:
        case Heading(parts, level):
            return f"### {rendered(parts, STYLE)}" if level == 1 else f"**{rendered(parts, STYLE)}**"
        case Note(parts):
            return rendered(parts, STYLE)
        case Items(items):
            return "\n".join(f"- {rendered(item, IN_CELL)}" for item in items)
        case Table(head, align, rows):
            ruler = ["---:" if side == "r" else "---" for side in align]
            cells = [[rendered(cell, IN_CELL) for cell in row] for row in (head, ruler, *rows)]
            return "\n".join(f"| {' | '.join(row)} |" for row in cells) if rows else ""
        case Bars():
            return _block(_table_of(block))
        case Fold(title, blocks):
            return _block(Group([Note(("<details><summary>", title, "</summary>")), *blocks, Note("</details>")]))
        case Group(blocks):
            return "\n\n".join(filter(None, map(_block, blocks)))


def _table_of(bars: Bars) -> Table:
    """Return metrics as a narrow table, because a phone cuts off the last columns: values and limits share one."""
    values = "Baseline → current" if bars.compared else "Current"
    rows: list[list[Parts]] = []
    for row in bars.rows:
        of: tuple[Part, ...] = () if row.tag is None else (" of ", Name(row.tag))
        over = "".join(f", {more}" for more in (row.over, row.direction) if more)
        numbers = [Text(row.status, "status"), Lines([row.values(), row.limits])] if bars.limited else [row.values()]
        rows.append([(Text(row.label, "label"), *of, over), *numbers])
    if bars.limited:
        return Table(["Metric", "Status", f"{values}, and limit"], "lll", rows)
    return Table(["Metric", values], "ll", rows)


FORM: Form = "markdown"
ICONS = {"pass": "✅", "fail": "❌"}
ACCEPTED = "☑️"


class Layout(Struct, frozen=True, kw_only=True):
    """How much of a report to render."""

    rows: int = bounds.ROWS  # in each table
    retrieved: int = bounds.ROWS  # broken queries whose results and texts are listed, in folded sections
    folds: bool = True
    inputs: bool = True  # they differ for each run
    trend: bool = True  # of metrics in recorded runs


FULL = Layout()


class Remark(Struct, frozen=True, kw_only=True):
    """What is known about a verdict beyond the report."""

    status: str = ""  # added to the heading of a broken contract that does not fail the job
    markdown: str = ""  # under the heading


NO_REMARK = Remark()


def render(
    report: Report,
    *,
    name: str = "",
    layout: Layout = FULL,
    recovered: bool = False,
    remark: Remark = NO_REMARK,
    replaced_here: bool | None = None,
    judged_here: Sequence[str] | None = (),
) -> str:
    """Render the report; ``name`` is the contract's name, ``recovered`` says that the contract was broken before.

    ``replaced_here`` says whether the pull request changes the baseline's file, and ``judged_here`` are the files of
    judgments, and the calibration, that it changes. Each is None if that is not known.
    """
    icon = ACCEPTED if remark.status else ICONS[report.verdict]
    verdict = "Holds again: " if recovered else (remark.status and f"{remark.status}: ")
    title = (f"{icon} ", *((Text(name, "label"), " — ") if name else ()), verdict, Text(headline(report), "fact"))
    blocks: list[Block] = [
        Heading(title, 1),
        Note(cause(report)),
        *([Note(remark.markdown)] if remark.markdown else []),
        *[Note(Sentence(phrase)) for phrase in (scope_note(report), could_hide(report)) if phrase],
    ]
    blocks.append(Items([*notes(report, replaced_here=replaced_here, judged_here=judged_here)]))
    blocks += broken(report, layout.rows, folds=layout.folds)
    blocks += metrics(report, FORM, layout.rows, folds=layout.folds, trend=layout.trend)
    if layout.folds:
        blocks += [*tiers(report, FORM), *modes(report, FORM), *labels(report, FORM)]
        blocks += [*other_causes(report), *answered(report, layout.retrieved)]
        blocks += [*retrieved(report, listed_queries(report), layout.retrieved)]
        blocks += [*reasons(report, FORM), *tolerated(report, layout.rows), *changed_ranks(report, layout.rows)]
        blocks += [*tags(report, FORM, layout.rows), *noise(report), *warnings(other_warnings(report), layout.rows)]
        blocks += overlap(report, FORM, layout.rows)
    if layout.folds and report.judge is not UNSET:
        from ragcontract.report.judge_section import judge

        blocks += judge(report, FORM, layout.retrieved)
    if layout.folds and layout.inputs:
        blocks.append(inputs(report, FORM))
    return page(blocks)


def render_error(
    report: ErrorReport,
    *,
    name: str = "",
    advice: str = "Fix the input and run the check again.",
    max_rows: int = bounds.ROWS,
) -> str:
    """Render the report on input that cannot be judged."""
    problems = count(len(report.problems) + report.more_problems, "problem")
    blocks = [
        Heading(
            (
                f"⚠️ {subject(report)}",
                *((" ", Text(name, "label")) if name else ()),
                f" could not be judged: {problems}",
            ),
            1,
        ),
        listed(report.problems, max_rows, report.more_problems),
        *warnings(report.warnings, max_rows),
        Note(f"No verdict was reached. {advice}"),
    ]
    return page(blocks)


def file_of(outcome: Reported) -> list[bytes]:
    """Render the whole report of a check."""
    return [render(outcome.report, name=outcome.report.contract).encode()]


def file_of_error(report: ErrorReport) -> bytes:
    """Render the whole report on input that cannot be judged."""
    return render_error(report, name=report.contract).encode()
