"""Sections of the HTML report, and their text, with visible control characters and limited length.

The sections are cards of metrics and tiers, the table of tags, shades of the matrix, and folds. The templates escape
the text.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.metric import Scale
from ragcontract.core.numbers import count, fixed, more, signed
from ragcontract.core.phrase import Code, Name, Phrase, render
from ragcontract.core.safe_text import clipped, visible
from ragcontract.decision.gate_report import GateReport, Status
from ragcontract.decision.policy import QueryStatus
from ragcontract.report.headline import not_compared, other_warnings
from ragcontract.report.judge_section import TaskSection, evidence, has_passed, heading, judge_section, name_of
from ragcontract.report.limit_text import ends_of, outcomes_of, p_of, whole_of
from ragcontract.report.metric_table import (
    Row,
    table_rows,
    tag_changes,
    tag_mean,
    tag_metrics,
    tag_metrics_note,
    tags_worst_first,
)
from ragcontract.report.notes import about_inputs
from ragcontract.report.outcome_tables import PLACES, MatrixCell, minimum, overlap_section
from ragcontract.report.parts import TierReport
from ragcontract.report.queries import REASONS, score_reasons
from ragcontract.report.record import LeastOverlap, MetricReport, Report, TagReport

# These labels are also passed to the page's script.
STATUS: dict[Status | QueryStatus, str] = {
    "pass": "✓ pass",
    "fail": "✕ fail",
    "unproven": "! over, not proven",
    "too_few": "! over, too few changed",
    "waived": "○ waived",
    "known": "○ known",
    "warn": "! warn",
    "counted": "! counted",
    "skipped": "○ skipped",
    "none": "no limit",
}
Style = Literal["text", "name", "code", "small"]


class Part(Struct, frozen=True):
    """A part of a sentence with its style; the template macro ``sentence`` renders it."""

    text: str
    style: Style = "text"


def shown(text: str, length: int = bounds.HTML_TEXT) -> str:
    """Return text with control characters made visible, shortened to ``length``."""
    return clipped(text, length)


def lines(text: str) -> str:
    """Return a text of up to forty lines with visible control characters; further line breaks are made visible, too."""
    first_lines = text.replace("\r\n", "\n").split("\n", bounds.HTML_SAID_LINES - 1)
    return "\n".join(map(visible, first_lines))


def code(name: str) -> Part:
    """Return a name as a part in the style of code."""
    return Part(shown(name, bounds.HTML_ID), "code")


def note(text: str | None) -> Sequence[str]:
    """Return a list with the note, or an empty list for None."""
    return [shown(text, bounds.HTML_NOTE)] if text else []


def sentence(phrase: Phrase, length: int = bounds.HTML_NAME) -> list[Part]:
    """Return the parts of a phrase; names have their own style and are shortened to ``length`` characters."""
    marks = {True: '"', False: ""}
    return [
        Part(f"{marks[part.quoted]}{shown(part.name, length)}{marks[part.quoted]}", "name")
        if isinstance(part, Name)
        else Part(shown(part))
        for part in phrase
    ]


def with_code(phrase: Phrase) -> list[Part]:
    """Return the parts of a phrase with names and commands as code."""
    return [
        code(part.name) if isinstance(part, Name) else Part(shown(part), "code" if isinstance(part, Code) else "text")
        for part in phrase
    ]


def of_scale(value: float | None, scale: Scale) -> str | None:
    """Return the position of a value on its scale as a percentage; None without a value or on an unbounded scale."""
    width = scale.high - scale.low
    if value is None or not 0 < width < math.inf:
        return None
    return f"{min(1.0, max(0.0, (value - scale.low) / width)) * 100:.2f}%"


DIGITS = 3


Fact = tuple[str, str, str]  # name, value, and what is shown muted


class Bar(Struct, frozen=True, kw_only=True):
    """The bar of a metric. Positions are percentages of its whole scale, so that bars can be compared."""

    now: str
    before: str | None = None  # the baseline value
    limits: Sequence[str] = ()  # the worst values that are allowed
    # Where the value is likely to be: the baseline plus the bounds of the change.
    interval: tuple[str, str] | None = None


def cards(report: Report) -> tuple[list[Row], list[tuple[str, list[Row]]]]:
    """Return the rows of the open cards, and folded ones by title: those without a limit, and of further tags."""
    rows = table_rows(report)
    limited = [row for row in rows if row.gates]
    others = [row for row in rows if not row.gates]
    tags = [row for row in limited if row.tag is not None][bounds.HTML_CARDS :]
    broken = sum(row.status == "fail" for row in tags)
    title = count(len(tags), "more limited mean") + " of tags" + (f", {broken:,} broken" if broken else "")
    folds = [(f"{count(len(others), 'metric')} without a limit", others if limited else []), (title, tags)]
    return limited[: len(limited) - len(tags)] if limited else others, [(title, rows) for title, rows in folds if rows]


def facts_of(row: Row, tests: int) -> Iterable[Fact]:
    """Yield the limits and waivers, the bounds and p-value of the change, the queries that got better and worse.

    ``tests`` is the number of changes over which p-values are adjusted.
    """
    if row.limits:
        yield "Limit", shown(row.limits), ""
    for reason in dict.fromkeys(gate.waived for gate in row.gates if gate.waived is not None):
        yield "Waived", shown(reason, bounds.HTML_REASON), ""
    noise = row.metric.noise if row.metric else None
    if row.metric and (ends := ends_of(row.gates, row.metric)):
        worst, best = (signed(end, row.digits) for end in ends)
        outcome = outcomes_of(row.gates)
        yield "Change", f"at worst {worst}, at best {best}", outcome and f"(limit: {outcome})"
    if row.p_value is not None:
        worse = "an increase" if row.metric and row.metric.better == "lower" else "a drop"
        is_adjusted = tests > 1 and any(gate.alpha for gate in row.gates)
        among = f"(adjusted over {tests:,} limits)" if is_adjusted else ""
        yield "Chance", f"p {p_of(row.gates, row.p_value)} for {worse}", among
    if noise:
        yield "Queries", f"{noise.wins:,} better, {noise.ties:,} the same, {noise.losses:,} worse", ""
    if row.direction:
        yield "Direction", row.direction, ""
    if row.metric and row.metric.scale != Scale():
        yield "Scale", f"{row.metric.scale.low:g} to {row.metric.scale.high:g}", ""


def bar_of(row: Row) -> Bar | None:
    """Return the bar of a metric; None without a value, and on an unbounded scale."""
    metric = row.metric
    if metric is None:
        return None
    now = of_scale(metric.current if metric.delta is None else metric.current_shared, metric.scale)
    if now is None:
        return None
    before, change = metric.baseline, ends_of(row.gates, metric)
    ends = [of_scale(before + end, metric.scale) for end in sorted(change)] if change and before is not None else []
    return Bar(
        now=now,
        before=of_scale(before, metric.scale),
        limits=list(_marks(row.gates, metric)),
        interval=(ends[0] or "", ends[1] or "") if ends else None,
    )


def _marks(gates: Sequence[GateReport], metric: MetricReport) -> Iterable[str]:
    """Yield the positions of the limits that are on the scale."""
    for gate in gates:
        worst = _worst_allowed(gate, metric)
        if worst is not None and metric.scale.low <= worst <= metric.scale.high:
            yield of_scale(worst, metric.scale) or ""


def _worst_allowed(gate: GateReport, metric: MetricReport) -> float | None:
    """Return the worst value that a limit allows; None if that depends on a baseline value and there is none."""
    if not gate.compares:
        return gate.limit
    before, whole = metric.baseline, whole_of(metric)
    if before is None or whole is None:
        return None
    allowed = gate.limit * whole if gate.relative else gate.limit
    return before - allowed if gate.kind == "drop" else before + allowed


def bar_of_tier(tier: TierReport) -> Bar | None:
    """Return the bar of a tier's pass rate; None without one."""
    now, limit = of_scale(tier.rate, Scale()), of_scale(tier.minimum, Scale())
    return None if now is None else Bar(now=now, limits=[] if limit is None else [limit])


def facts_of_tier(tier: TierReport) -> list[str]:
    """Return the minimum of a tier, the tiers that it gates, and why it is skipped."""
    gates = ", ".join(shown(name, bounds.HTML_NAME) for name in tier.gates[: bounds.NAMES])
    others = more(len(tier.gates), bounds.NAMES, form=" and {}")
    return [
        *([f"minimum {minimum(tier)}"] if tier.minimum is not None else []),
        *([f"gates {gates}{others}"] if gates else []),
        *([shown(tier.skipped, bounds.HTML_REASON)] if tier.skipped else []),
    ]


class Tags(Struct, frozen=True, kw_only=True):
    """The table of tags."""

    metrics: Mapping[str, MetricReport]
    numbers: Mapping[str, int]  # by which the script knows the tags
    open: Sequence[tuple[str, TagReport]]  # the first tags
    title: str  # of the folded ones
    folded: Sequence[tuple[str, TagReport]]
    rest: str  # counts the tags that are left out
    note: str  # counts the metrics that are left out


def tags(report: Report) -> Tags | None:
    """Return the table of tags, or None if no query has a tag."""
    if not report.tags:
        return None
    worst = tags_worst_first(report)
    return Tags(
        metrics=tag_metrics(report),
        numbers={name: number for number, name in enumerate(report.tags)},
        open=worst[: bounds.HTML_OPEN_TAGS],
        title=count(len(worst) - bounds.HTML_OPEN_TAGS, "more tag"),
        folded=worst[bounds.HTML_OPEN_TAGS : bounds.HTML_TAGS],
        rest=more(len(worst), bounds.HTML_TAGS, "tag", "… and {}."),
        note=tag_metrics_note(report),
    )


def metrics_of_tag(tag: TagReport, metrics: Mapping[str, MetricReport]) -> Iterable[tuple[str, str, str, Bar]]:
    """Yield the mean of each metric, its change if it has changed, whether that is better or worse, and its bar."""
    changes, before = tag_changes(tag), tag.baseline_metrics or {}
    for key, metric in metrics.items():
        mean, change = tag_mean(tag, key), round(changes.get(key, 0.0), DIGITS)
        is_better = (change > 0) == (metric.better == "higher")
        bar = Bar(now=of_scale(mean, metric.scale) or "", before=of_scale(before.get(key), metric.scale))
        shown_mean = "no value" if mean is None else fixed(mean, DIGITS)
        yield shown_mean, signed(change, DIGITS) if change else "", "better" if is_better else "worse", bar


INDENT = "\u2003"
DIGEST = 12  # characters that are enough to recognise a file
HEATS = 5  # shades; page.css has a class for each
Line = Sequence[Part]


class Fold(Struct, frozen=True, kw_only=True):
    """A folded section."""

    title: str
    lines: Sequence[Line]
    more: str  # counts the lines that are left out


def folds(report: Report) -> list[Fold]:
    """Return the folded sections, from the reasons for scores to the inputs."""
    baseline = report.inputs.baseline
    sections = []
    if reasons := score_reasons(report):
        sections.append(_fold(REASONS, [sentence(phrase, bounds.HTML_REASON) for phrase in reasons]))
    if overlap := overlap_section(report):
        least = [_least(query) for query in overlap.least]
        sections.append(_fold(overlap.title, [*([Part(shown(fact))] for fact in overlap.facts), *least]))
    if judged := judge_section(report):
        sections.append(_fold(judged.title, [[Part(shown(fact))] for fact in judged.facts]))
        sections += [_fold(shown(task.title), list(_judged(task))) for task in judged.tasks]
    if baseline:
        for name, ids in not_compared(baseline).items():
            sections.append(
                _fold(f"{len(ids):,} {name}", [[Part(shown(query_id, bounds.HTML_ID))] for query_id in ids])
            )
        if baseline.accepted:
            times = len(baseline.accepted)
            title = "The baseline accepted regressions" + (f" {times} times" if times > 1 else "")
            sections.append(
                _fold(
                    title,
                    [
                        [
                            code(accepted.at),
                            Part(f" {count(accepted.failed, 'failed check')}: {shown(accepted.reason)}"),
                        ]
                        for accepted in reversed(baseline.accepted)
                    ],
                )
            )
    if warnings := other_warnings(report):
        title = count(len(warnings), "warning")
        sections.append(_fold(title, [[Part(shown(warning))] for warning in warnings]))
    return [*sections, _fold("Inputs", list(_inputs(report)))]


def _fold(title: str, lines: Sequence[Line]) -> Fold:
    rest = more(len(lines), bounds.HTML_LINES, form="… and {}")
    return Fold(title=title, lines=lines[: bounds.HTML_LINES], more=rest)


def _least(query: LeastOverlap) -> Line:
    numbers = f": overlap {fixed(query.overlap, PLACES)}, RBO {fixed(query.rbo, PLACES)}"
    return [Part(shown(query.id, bounds.HTML_ID)), Part(numbers)]


def _judged(task: TaskSection) -> Iterable[Line]:
    yield from ([Part(shown(fact))] for fact in task.facts)
    for query in task.queries:
        yield [code(query.id), Part(f": {heading(query, task.words)}")]
        for item in query.items:
            by = evidence(item, bounds.HTML_REASON)
            sign, verdict = ("✓", task.words.passed) if has_passed(item) else ("✕", task.words.failed)
            judged = Part(f" {verdict}{f': {by}' if by else ''}", "small")
            yield [Part(f"{INDENT}{sign} {name_of(item, bounds.HTML_REASON)}"), judged]


def _inputs(report: Report) -> Iterable[Line]:
    yield [Part(f"k = {', '.join(map(str, report.k))}")]
    for name, files, facts in about_inputs(report):
        digest = [Part(" "), Part(f"sha256 {shown(files[0].sha256[:DIGEST])}", "small")] if files[0].sha256 else []
        end = "".join(f", {render(fact, lambda name: shown(name, bounds.HTML_ID))}" for fact in facts)
        yield [Part(f"{name}: {shown(files[0].path)}"), *digest, Part(more(len(files), 1, "file", " and {}") + end)]


def heat_of(cell: MatrixCell) -> str:
    """Return the class of a cell of the matrix of modes: whether it is right, and its shade."""
    return f"{cell.verdict} heat{min(HEATS, int(cell.share * HEATS) + 1)}" if cell.verdict else ""
