"""The folded sections of the Markdown report.

They are about overlap, tiers, modes, reasons for scores, tolerated findings, ranks, tags, noise, warnings and inputs.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from ragcontract.core import bounds
from ragcontract.core.finding import phrase_of
from ragcontract.core.numbers import count, fixed, more, signed
from ragcontract.core.phrase import render
from ragcontract.core.run import SourceFile
from ragcontract.core.safe_text import clipped
from ragcontract.decision.gate_report import GateReport
from ragcontract.report.headline import not_compared, other_warnings
from ragcontract.report.limit_text import alpha_of, ends_of, method_note, outcomes_of, p_of
from ragcontract.report.markdown.gfm import bullets, code, cut, first_of, fold, inline, line, sentence, table, text
from ragcontract.report.markdown.query_tables import STATUS, query_cell
from ragcontract.report.metric_table import (
    at_largest_k,
    tag_changes,
    tag_mean,
    tag_metrics,
    tag_metrics_note,
    tag_size,
    tags_worst_first,
)
from ragcontract.report.notes import about_inputs, worst_ranks
from ragcontract.report.outcome_tables import (
    CORNER,
    PLACES,
    MatrixCell,
    minimum,
    mode_matrix,
    overlap_section,
    rate,
    tier_rows,
    tiers_title,
)
from ragcontract.report.parts import BaselineInput, TierReport
from ragcontract.report.queries import REASONS, FindingsByQuery, score_reasons, tolerated_queries, waived_gates
from ragcontract.report.rank_changes import RankChange, metric_step, rank, rank_changes
from ragcontract.report.record import MetricReport, QueryReport, Report, TagReport

COMPARED = "In brackets the change since the baseline."
TAG_DIGITS = 3
INPUTS = "Inputs"
NOT_GIVEN = {"baseline": "nothing was compared", "config": "rules on, no gates"}


def overlap_fold(report: Report, max_rows: int) -> Iterator[str]:
    """Yield the section on overlap, with the queries that have the least, if there is a baseline."""
    if section := overlap_section(report):
        least = section.least[:max_rows]
        rows = [[code(query.id), fixed(query.overlap, PLACES), fixed(query.rbo, PLACES)] for query in least]
        tables = [table(["Least overlap", "Overlap", "RBO"], "lrr", rows)] if rows else []
        yield fold(section.title, *map(line, section.facts), *tables)


def outcomes_folds(report: Report) -> Iterator[str]:
    """Yield the sections on tiers and modes that the report has."""
    if tiers := tier_rows(report):
        body = [[code(tier.name), STATUS[tier.status], rate(tier), minimum(tier), _gated(tier)] for tier in tiers]
        yield fold(tiers_title(report), table(["Tier", "Status", "Pass rate", "Minimum", ""], "llrrl", body))
    if matrix := mode_matrix(report):
        body = [[_name(row.name), *map(_cell, row.cells), row.recall] for row in matrix.lines]
        body.append(["Precision", *matrix.precision, ""])
        head = [CORNER, *map(_name, matrix.columns), "Recall"]
        notes = [COMPARED] if matrix.compared else []
        yield fold(matrix.title, table(head, "l" + "r" * (len(head) - 1), body), *notes)


def _cell(cell: MatrixCell) -> str:
    """Return a number, in bold where the mode is the expected one."""
    number = f"<b>{cell.number:,}</b>" if cell.verdict == "right" else f"{cell.number:,}"
    change = 0 if cell.before is None else cell.number - cell.before
    return f"{number} ({change:+,})" if change else number


def _name(mode: str) -> str:
    return text(clipped(mode, bounds.MARKDOWN_ID))


def _gated(tier: TierReport) -> str:
    """Return why a tier is skipped, and which tiers it gates."""
    gates = first_of(tier.gates, bounds.NAMES, code)
    gated = [f"gates {gates}"] if gates else []
    return "; ".join([*([line(tier.skipped)] if tier.skipped else []), *gated])


def folds(report: Report, max_rows: int) -> Iterator[str]:
    """Yield the sections from the reasons for scores to the warnings; empty ones are left out."""
    reasons = [f"- {sentence(phrase)}" for phrase in score_reasons(report)]
    if parts := cut(reasons, bounds.ROWS, "reason", "\n".join):
        yield fold(REASONS, *parts)
    yield from _tolerated(report, max_rows)
    yield from _rank_changes(report, max_rows)
    yield from _tags(report, max_rows)
    yield from _noise(report)
    yield from warnings_fold(other_warnings(report), max_rows)


def _tolerated(report: Report, max_rows: int) -> Iterator[str]:
    findings = FindingsByQuery(report)
    gates = [
        [code(finding.ids[0]), sentence(phrase_of(finding), marks=""), line(finding.why.removeprefix("waived "))]
        for finding in waived_gates(report)
    ]
    queries = tolerated_queries(report)

    def row_of(item: list[str] | QueryReport) -> list[str]:
        if isinstance(item, list):
            return item
        tolerated = [
            sentence((*finding.expected, ": ", *finding.found), marks="")
            for finding in findings.tolerated(item.id)[: bounds.MARKDOWN_FINDINGS]
        ]
        tolerated += filter(None, [more(len(findings.tolerated(item.id)), len(tolerated), form="… and {}")])
        return [query_cell(item), "; ".join(tolerated), line(findings.why_tolerated(item.id))]

    def as_table(items: Sequence[list[str] | QueryReport]) -> str:
        return table(["", "Broken", "Why it does not fail"], "lll", map(row_of, items))

    items: list[list[str] | QueryReport] = [*gates, *queries]
    if items:
        yield fold(f"Broken and not failing: {len(items):,}", *cut(items, max_rows, "row", as_table))


def _rank_changes(report: Report, max_rows: int) -> Iterator[str]:
    baseline = report.inputs.baseline
    if baseline is None:
        return
    changes = rank_changes(report)
    parts: list[str] = []
    for title, group in (("Worse", changes.worse), ("Better", changes.better)):
        if group:
            parts += [f"**{title}**", *cut(group, max_rows, "query", partial(moved_table, report), where="")]
    apart = not_compared(baseline)
    for name, ids in apart.items():
        parts.append(f"**{name.capitalize()}**: {first_of(ids, max_rows, code)}")
    sizes = {"worse": len(changes.worse), "better": len(changes.better), "the same": changes.even}
    sizes |= {name: len(ids) for name, ids in apart.items()}
    summary = ", ".join(f"{size:,} {word}" for word, size in sizes.items() if size)
    title = "Rank changes" if changes.even is not None else "Rank changes of broken queries"
    if parts:
        yield fold(f"{title}: {summary}", *parts)


def moved_table(report: Report, group: Sequence[RankChange]) -> str:
    """Return the table of queries whose ranks changed, with their documents."""
    return table(["Query", "Documents, rank before → now"], "ll", [_moved(item, report) for item in group])


def _moved(item: RankChange, report: Report) -> list[str]:
    steps = [
        f"{code(step.doc_id)}{' (forbidden)' if step.forbidden else ''} {rank(step.before)} → {rank(step.now)}"
        for step in item.steps
    ]
    shown = first_of(steps, bounds.CHANGED_DOCS, str)
    if item.metric:
        shown = text(metric_step(item, report, "→")) + (f"; {worst_ranks(report)}: {shown}" if shown else "")
    return [query_cell(item.query), shown]


def _tags(report: Report, max_rows: int) -> Iterator[str]:
    if not report.tags:
        return
    metrics = tag_metrics(report)

    def as_table(tags: Sequence[tuple[str, TagReport]]) -> str:
        labels = [label(metric) for metric in metrics.values()]
        body = [[code(name), tag_size(tag), *_tag_cells(tag, metrics, alpha_of(report))] for name, tag in tags]
        return table(["Tag", "Queries", *labels], "lr" + "r" * len(labels), body)

    notes = []
    if any(map(tag_changes, report.tags.values())):
        notes.append("In brackets the change since the baseline. Both are over the queries that both sides have.")
    alpha = alpha_of(report)
    if any(p <= alpha for tag in report.tags.values() for p in tag.p_values.values()):
        notes[0] += f" With a star: a drop that is significant among all tags (p ≤ {alpha:g})."
    notes += filter(None, [tag_metrics_note(report)])
    yield fold(count(len(report.tags), "tag"), *cut(tags_worst_first(report), max_rows, "tag", as_table), *notes)


def label(metric: MetricReport) -> str:
    """Return the name of a metric for a table, escaped."""
    return text(clipped(metric.label, bounds.MARKDOWN_NAME))


def _tag_cells(tag: TagReport, metrics: Iterable[str], alpha: float) -> Iterable[str]:
    changes = tag_changes(tag)
    for key in metrics:
        change = changes.get(key, 0.0)
        star = "\\*" if tag.p_values.get(key, 1) <= alpha else ""
        moved = f" ({signed(change, TAG_DIGITS)}{star})" if round(change, TAG_DIGITS) else ""
        mean = tag_mean(tag, key)
        yield ("no value" if mean is None else fixed(mean, TAG_DIGITS)) + moved


def _noise(report: Report) -> Iterator[str]:
    limits: dict[str, list[GateReport]] = {key: [] for key in report.metrics}
    for gate in report.gates:
        if gate.tag is None and gate.metric in limits:
            limits[gate.metric].append(gate)
    body = [
        [
            label(metric),
            f"{signed(metric.delta, TAG_DIGITS)}<br>{' to '.join(signed(end, TAG_DIGITS) for end in ends)}",
            f"{noise.wins:,} / {noise.ties:,} / {noise.losses:,}",
            p_of(limits[key], noise.p_value),
            outcomes_of(limits[key]) or "no limit",
        ]
        for key, metric in at_largest_k(report).items()
        if (noise := metric.noise) and (ends := ends_of(limits[key], metric))
    ]
    if body:
        head = ["Metric", "Change, at worst to at best", "Better / same / worse", "p of a drop", "Its limit"]
        yield fold("How sure the changes are", table(head, "lrrrl", body), text(method_note(report)))


def warnings_fold(warnings: Sequence[str], max_rows: int) -> Iterator[str]:
    """Yield the folded section of warnings, if there are any."""
    if warnings:
        yield fold(count(len(warnings), "warning"), bullets(warnings, max_rows))


def inputs_fold(report: Report) -> str:
    """Return the folded section of inputs: files, digests and counts."""
    body = {
        name: [name, _files(files), ", ".join(render(fact, code, inline) for fact in facts)]
        for name, files, facts in about_inputs(report)
    }
    body["golden"][-1] += f", {report.inputs.golden.answerable:,} with relevant documents"
    for name, what in NOT_GIVEN.items():
        body[name] = body.pop(name, [name, "", f"none given: {what}"])
    k = ", ".join(map(str, report.k))
    foot = f"k = {k} · {text(f'{report.tool.name} {report.tool.version}')} · {code(report.created_at)}"
    return fold(INPUTS, table(["", "File", ""], "lll", body.values()), *_accepted(report.inputs.baseline), foot)


def _accepted(baseline: BaselineInput | None) -> Iterable[str]:
    """Yield the last reason for which a broken contract was accepted as the baseline, with a count of earlier ones."""
    if baseline and baseline.accepted:
        last = baseline.accepted[-1]
        before = len(baseline.accepted) - 1
        earlier = f" ({count(before, 'earlier acceptance')} in `report.json`)" if before else ""
        checks = count(last.failed, "failed check")
        reason = line(last.reason)
        yield f"The baseline accepted regressions ({code(last.at)}, {checks}): {reason}{earlier}"


def _files(files: Sequence[SourceFile]) -> str:
    digest = f" (sha256 {code(files[0].sha256[:12])})" if files[0].sha256 else ""
    first = code(files[0].path) + digest
    return first + more(len(files), 1, "file", " and {}")
