"""Sections of the HTML report: the matrix of modes as a heat table, the tiers, and the folded sections."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.numbers import count, fixed, percent
from ragcontract.core.run import SourceFile
from ragcontract.report.answer_report import TierReport
from ragcontract.report.headline import not_compared, other_warnings
from ragcontract.report.html.metric_cards import Bar
from ragcontract.report.html.page_text import Badge, Part, badge, code, of_share, sentence, shown
from ragcontract.report.inputs import BaselineInput
from ragcontract.report.judge_section import TaskSection, evidence, has_passed, heading, judge_section, name_of
from ragcontract.report.notes import about_baseline
from ragcontract.report.outcome_tables import (
    PLACES,
    Matrix,
    MatrixCell,
    MatrixLine,
    minimum,
    mode_matrix,
    overlap_section,
    rate,
    tiers_of,
)
from ragcontract.report.queries import REASONS, score_reasons
from ragcontract.report.record import LeastOverlap, Report
from ragcontract.runs.baseline_file import Accepted

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
            sections.append(_fold(title, [_accepted(accepted) for accepted in reversed(baseline.accepted)]))
    if warnings := other_warnings(report):
        title = count(len(warnings), "warning")
        sections.append(_fold(title, [[Part(shown(warning))] for warning in warnings]))
    return [*sections, _fold("Inputs", list(_inputs(report)))]


def _fold(title: str, lines: Sequence[Line]) -> Fold:
    more = f"… and {len(lines) - bounds.HTML_LINES:,} more" if len(lines) > bounds.HTML_LINES else ""
    return Fold(title=title, lines=lines[: bounds.HTML_LINES], more=more)


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


def _accepted(accepted: Accepted) -> Line:
    return [code(accepted.at), Part(f" {count(accepted.failed, 'failed check')}: {shown(accepted.reason)}")]


def _inputs(report: Report) -> Iterable[Line]:
    inputs, run = report.inputs, report.inputs.run
    yield [Part(f"k = {', '.join(map(str, report.k))}")]
    yield _source("golden", inputs.golden.files, count(inputs.golden.queries, "query"))
    repeated = [f"{percent(run.duplicate_rate)} of the results repeat a document"] if run.duplicate_rate else []
    missing = [f"{len(run.missing):,} missing"] if run.missing else []
    yield _source("run", run.files, count(run.queries, "query"), *missing, *repeated)
    if inputs.scores:
        yield _source("scores", inputs.scores.files)
    if inputs.judgments:
        yield _source("judgments", inputs.judgments.files)
    if inputs.baseline:
        yield _source("baseline", inputs.baseline.files, *_about(inputs.baseline))
    if inputs.config:
        yield _source("config", inputs.config.files, count(len(report.gates), "gate"))


def _about(baseline: BaselineInput) -> Iterable[str]:
    yield count(baseline.queries, "query")
    yield f"{baseline.shared:,} shared"
    if baseline.created_at:
        yield f"made {shown(baseline.created_at, bounds.HTML_ID)}"
    yield from about_baseline(baseline)


def _source(name: str, files: Sequence[SourceFile], *facts: str) -> Line:
    more = f" and {count(len(files) - 1, 'more file')}" if len(files) > 1 else ""
    digest = [Part(" "), Part(f"sha256 {shown(files[0].sha256[:DIGEST])}", "small")] if files[0].sha256 else []
    end = f", {', '.join(facts)}" if facts else ""
    return [Part(f"{name}: {shown(files[0].path)}"), *digest, Part(f"{more}{end}")]


class HeatCell(Struct, frozen=True, kw_only=True):
    """A cell of the matrix."""

    number: str
    share: str
    before: str
    heat: str  # the name of its shade
    sign: str  # whether it is right, for those who do not see the colour


class TierRow(Struct, frozen=True, kw_only=True):
    """One tier."""

    name: str
    badge: Badge
    rate: str
    bar: Bar | None  # None without a pass rate
    facts: Sequence[str]


def heat(report: Report) -> Matrix[HeatCell] | None:
    """Return the matrix of modes with its shades; None if no query expects one."""
    matrix = mode_matrix(report)
    if matrix is None:
        return None
    return Matrix(
        title=matrix.title,
        columns=[shown(name, bounds.HTML_NAME) for name in matrix.columns],
        lines=[
            MatrixLine(name=shown(line.name, bounds.HTML_NAME), cells=list(map(_cell, line.cells)), recall=line.recall)
            for line in matrix.lines
        ],
        precision=matrix.precision,
        compared=matrix.compared,
    )


def _cell(cell: MatrixCell) -> HeatCell:
    changed = cell.before is not None and cell.before != cell.number
    return HeatCell(
        number=f"{cell.number:,}",
        share=percent(cell.share, 0) if cell.number else "",
        before=f"was {cell.before:,}" if changed else "",
        heat=f"{cell.verdict} heat{min(HEATS, int(cell.share * HEATS) + 1)}" if cell.verdict else "",
        sign={"right": "✓", "wrong": "✕", "": ""}[cell.verdict],
    )


def tier_rows(report: Report) -> list[TierRow]:
    """Return the tiers; empty if the contract has none."""
    return [_tier(tier) for tier in tiers_of(report)]


def _tier(tier: TierReport) -> TierRow:
    gates = ", ".join(shown(name, bounds.HTML_NAME) for name in tier.gates[: bounds.NAMES])
    more = f" and {len(tier.gates) - bounds.NAMES:,} more" if len(tier.gates) > bounds.NAMES else ""
    facts = [
        f"minimum {minimum(tier)}" if tier.minimum is not None else "",
        f"gates {gates}{more}" if gates else "",
        shown(tier.skipped, bounds.HTML_REASON) if tier.skipped else "",
    ]
    now, limit = of_share(tier.rate), of_share(tier.minimum)
    return TierRow(
        name=shown(tier.name, bounds.HTML_ID),
        badge=badge(tier.status),
        rate=rate(tier),
        bar=None if now is None else Bar(now=now, limits=[] if limit is None else [limit]),
        facts=list(filter(None, facts)),
    )
