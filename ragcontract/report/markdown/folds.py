"""The folded sections of the Markdown report.

They are about overlap, tiers, modes, reasons for scores, tolerated findings, ranks, tags, noise, warnings and inputs.
"""

from collections.abc import Iterable, Sequence
from functools import partial

from ragcontract.core import bounds
from ragcontract.core.finding import phrase_of
from ragcontract.core.numbers import count, fixed, more, percent, signed
from ragcontract.core.phrase import Phrase
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
from ragcontract.report.notes import about_baseline, worst_ranks
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
from ragcontract.report.parts import BaselineInput, GoldenInput, RunInput, TierReport
from ragcontract.report.queries import REASONS, FindingsByQuery, score_reasons, tolerated_queries, waived_gates
from ragcontract.report.rank_changes import RankChange, metric_step, rank, rank_changes
from ragcontract.report.record import MetricReport, QueryReport, Report, TagReport

COMPARED = "In brackets the change since the baseline."
TAG_DIGITS = 3
INPUTS = "Inputs"


def overlap_fold(report: Report, max_rows: int) -> list[str]:
    """Return the section on overlap, in a list, with the queries that have the least; empty without a baseline."""
    section = overlap_section(report)
    if section is None:
        return []
    rows = [
        [code(query.id), fixed(query.overlap, PLACES), fixed(query.rbo, PLACES)] for query in section.least[:max_rows]
    ]
    parts = [*map(line, section.facts), *([table(["Least overlap", "Overlap", "RBO"], "lrr", rows)] if rows else [])]
    return [fold(section.title, *parts)]


def outcomes_folds(report: Report) -> list[str]:
    """Return the sections on tiers and modes that the report has."""
    return [*_tiers(report), *_modes(report)]


def _modes(report: Report) -> list[str]:
    matrix = mode_matrix(report)
    if matrix is None:
        return []
    body = [[_name(row.name), *map(_cell, row.cells), row.recall] for row in matrix.lines]
    body.append(["Precision", *matrix.precision, ""])
    head = [CORNER, *map(_name, matrix.columns), "Recall"]
    notes = [COMPARED] if matrix.compared else []
    return [fold(matrix.title, table(head, "l" + "r" * (len(head) - 1), body), *notes)]


def _cell(cell: MatrixCell) -> str:
    """Return a number, in bold where the mode is the expected one."""
    number = f"<b>{cell.number:,}</b>" if cell.verdict == "right" else f"{cell.number:,}"
    change = 0 if cell.before is None else cell.number - cell.before
    return f"{number} ({change:+,})" if change else number


def _name(mode: str) -> str:
    return text(clipped(mode, bounds.MARKDOWN_ID))


def _tiers(report: Report) -> list[str]:
    tiers = tier_rows(report)
    if not tiers:
        return []
    body = [[code(tier.name), STATUS[tier.status], rate(tier), minimum(tier), _gated(tier)] for tier in tiers]
    return [fold(tiers_title(report), table(["Tier", "Status", "Pass rate", "Minimum", ""], "llrrl", body))]


def _gated(tier: TierReport) -> str:
    """Return why a tier is skipped, and which tiers it gates."""
    gates = first_of(tier.gates, bounds.NAMES, code)
    gated = [f"gates {gates}"] if gates else []
    return "; ".join([*([line(tier.skipped)] if tier.skipped else []), *gated])


def folds(report: Report, max_rows: int) -> list[str]:
    """Return the sections from the reasons for scores to the warnings; empty ones are left out."""
    return [
        *_score_reasons(report),
        *_tolerated(report, max_rows),
        *_rank_changes(report, max_rows),
        *_tags(report, max_rows),
        *_noise(report),
        *warnings_fold(other_warnings(report), max_rows),
    ]


def _score_reasons(report: Report) -> list[str]:
    def as_list(reasons: Sequence[Phrase]) -> str:
        return "\n".join(f"- {sentence(phrase)}" for phrase in reasons)

    reasons = cut(score_reasons(report), bounds.ROWS, "reason", as_list)
    return [fold(REASONS, *reasons)] if reasons else []


def _tolerated(report: Report, max_rows: int) -> list[str]:
    findings = FindingsByQuery(report)
    gates = [
        [code(finding.ids[0]), sentence(phrase_of(finding), marks=""), line(finding.why.removeprefix("waived "))]
        for finding in waived_gates(report)
    ]
    queries = tolerated_queries(report)
    if not (gates or queries):
        return []

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

    title = f"Broken and not failing: {len(gates) + len(queries):,}"
    items: list[list[str] | QueryReport] = [*gates, *queries]
    return [fold(title, *cut(items, max_rows, "row", as_table))]


def _rank_changes(report: Report, max_rows: int) -> list[str]:
    baseline = report.inputs.baseline
    if baseline is None:
        return []
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
    return [fold(f"{title}: {summary}", *parts)] if parts else []


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


def _tags(report: Report, max_rows: int) -> list[str]:
    if not report.tags:
        return []
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
    return [fold(count(len(report.tags), "tag"), *cut(tags_worst_first(report), max_rows, "tag", as_table), *notes)]


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


def _noise(report: Report) -> list[str]:
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
    if not body:
        return []
    head = ["Metric", "Change, at worst to at best", "Better / same / worse", "p of a drop", "Its limit"]
    return [fold("How sure the changes are", table(head, "lrrrl", body), text(method_note(report)))]


def warnings_fold(warnings: Sequence[str], max_rows: int) -> list[str]:
    """Return the folded section of warnings, in a list; empty without warnings."""
    return [fold(count(len(warnings), "warning"), bullets(warnings, max_rows))] if warnings else []


def inputs_fold(report: Report) -> str:
    """Return the folded section of inputs: files, digests and counts."""
    inputs = report.inputs
    golden, run, baseline = inputs.golden, inputs.run, inputs.baseline
    missing = f", {len(run.missing):,} missing" if run.missing else ""
    repeated = f", {percent(run.duplicate_rate)} of the results repeat a document" if run.duplicate_rate else ""
    scores = [["scores", _files(inputs.scores.files), ""]] if inputs.scores else []
    body = [
        ["golden", _files(golden.files), f"{_queries(golden)}, {golden.answerable:,} with relevant documents"],
        ["run", _files(run.files), f"{_queries(run)}{missing}{repeated}"],
        *scores,
        *([["judgments", _files(inputs.judgments.files), ""]] if inputs.judgments else []),
        ["baseline", "", "none given: nothing was compared"],
        ["config", "", "none given: rules on, no gates"],
    ]
    if baseline:
        made = f", made {code(baseline.created_at)}" if baseline.created_at else ""
        past = "".join(f", {inline(fact)}" for fact in about_baseline(baseline))
        body[-2] = ["baseline", _files(baseline.files), f"{_queries(baseline)}, {baseline.shared:,} shared{made}{past}"]
    if inputs.config:
        body[-1] = ["config", _files(inputs.config.files), count(len(report.gates), "gate")]
    k = ", ".join(map(str, report.k))
    foot = f"k = {k} · {text(f'{report.tool.name} {report.tool.version}')} · {code(report.created_at)}"
    return fold(INPUTS, table(["", "File", ""], "lll", body), *_accepted(baseline), foot)


def _accepted(baseline: BaselineInput | None) -> Iterable[str]:
    """Yield the last reason for which a broken contract was accepted as the baseline, with a count of earlier ones."""
    if baseline and baseline.accepted:
        last = baseline.accepted[-1]
        before = len(baseline.accepted) - 1
        more = f" ({count(before, 'earlier acceptance')} in `report.json`)" if before else ""
        checks = count(last.failed, "failed check")
        reason = line(last.reason)
        yield f"The baseline accepted regressions ({code(last.at)}, {checks}): {reason}{more}"


def _queries(source: GoldenInput | RunInput | BaselineInput) -> str:
    return count(source.queries, "query")


def _files(files: Sequence[SourceFile]) -> str:
    digest = f" (sha256 {code(files[0].sha256[:12])})" if files[0].sha256 else ""
    first = code(files[0].path) + digest
    return first + more(len(files), 1, "file", " and {}")
