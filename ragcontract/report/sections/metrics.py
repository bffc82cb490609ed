"""The sections on numbers: means with their limits, tags, how sure changes are, tiers, modes, labels, overlap."""

from collections import Counter
from collections.abc import Iterator

from msgspec import UNSET, UnsetType

from ragcontract.core import bounds
from ragcontract.core.gate import OF_LEVEL
from ragcontract.core.golden import FEWEST_LABELLED
from ragcontract.core.numbers import as_written, count, fixed, more, signed
from ragcontract.core.phrase import Name, joined
from ragcontract.core.safe_text import clipped
from ragcontract.decision.gate_report import GateReport
from ragcontract.report.blocks import Bars, Block, Fold, Form, Items, Mean, Note, Parts, Sentence, Table, Tally, Text
from ragcontract.report.headline import shared_note
from ragcontract.report.history_line import trend_lines
from ragcontract.report.limit_text import alpha_of, digits_of, ends_of, method_note, outcomes_of, p_of
from ragcontract.report.metric_table import (
    at_largest_k,
    table_rows,
    tag_changes,
    tag_mean,
    tag_metrics,
    tag_metrics_note,
    tag_size,
    tags_worst_first,
)
from ragcontract.report.notes import repeats_note
from ragcontract.report.parts import TierReport
from ragcontract.report.record import MetricReport, Report, TagReport

COMPARED = "In brackets the change since the baseline."


def metrics(report: Report, form: Form, max_tags: int, *, folds: bool = True, trend: bool = True) -> Iterator[Block]:
    """Yield the means with limits, those of tags the worst, and a fold of the means without a limit.

    If nothing is limited, no metrics are folded. Without ``folds``, metrics without a limit are left out. ``trend``
    says whether to show how metrics were in recorded runs.
    """
    rows, compared = table_rows(report), report.inputs.baseline is not None
    limited, others = [row for row in rows if row.gates], [row for row in rows if not row.gates]
    of_tags = [row for row in limited if row.tag is not None]
    unlimited, further = Bars(others, compared, limited=False), of_tags[max_tags:]
    folded = [Fold(f"{count(len(others), 'metric')} without a limit", [unlimited])] if others and limited else []
    yield Bars(limited[: len(limited) - len(further)], compared) if limited else unlimited
    if form == "html":
        yield from folded
        broken = sum(row.status == "fail" for row in further)
        title = count(len(further), "more limited mean") + " of tags" + (f", {broken:,} broken" if broken else "")
        yield from [Fold(title, [Bars(further, compared)])] if further else []
        return
    yield Note(more(len(of_tags), max_tags, "limited mean", "… and {} of tags, in `report.json`."))
    yield from map(Note, trends(report) if trend and report.history else [])
    yield from map(Note, metric_notes(report))
    yield from folded if folds else []


def metric_notes(report: Report) -> list[Text]:
    """Return the notes below the metrics: limits on levels that do not hold, what is compared, and on the run."""
    of_levels = [gate for gate in report.gates if gate.kind in OF_LEVEL]
    worth_saying = [gate.message for gate in of_levels if gate.status != "pass" or gate.is_of_part]
    facts = [Text(note, "fact") for note in (shared_note(report), repeats_note(report)) if note]
    return [
        *(Text(note, "line") for note in worth_saying[: bounds.NAMES]),
        *facts,
        *(Text(note, "line") for note in report.run_notes if note),
    ]


def trends(report: Report) -> list[Sentence]:
    """Return the lines on limited metrics in recorded runs."""
    return [Sentence(phrase, "line") for phrase in trend_lines(report)]


def tags(report: Report, form: Form, max_rows: int = bounds.HTML_TAGS) -> Iterator[Block]:
    """Yield the table of tags, worst first; in HTML, the first ones are open."""
    if not report.tags:
        return
    shown, worst = tag_metrics(report), tags_worst_first(report)
    alpha, digits = alpha_of(report), digits_of(report)
    head: list[Parts] = ["Tag", "Queries", *(Text(metric.label, "label") for metric in shown.values())]
    rows: list[list[Parts]] = [
        [Name(name), tag_size(tag), *_means(tag, shown, alpha, digits)] for name, tag in worst[:max_rows]
    ]
    where = "" if form == "html" else ", in `report.json`"
    rest, further = Note(more(len(worst), max_rows, "tag", f"… and {{}}{where}.")), Note(tag_metrics_note(report))
    align = "lr" + "r" * len(shown)
    if form == "html":
        yield Table(head, align, rows[: bounds.HTML_OPEN_TAGS])
        if len(worst) > bounds.HTML_OPEN_TAGS:
            title = count(len(worst) - bounds.HTML_OPEN_TAGS, "more tag")
            yield Fold(title, [Table(head, align, rows[bounds.HTML_OPEN_TAGS :]), rest])
        yield further
        return
    note = f"{COMPARED} Both are over the queries that both sides have." * any(map(tag_changes, report.tags.values()))
    if any(p <= alpha for tag in report.tags.values() for p in tag.p_values.values()):
        note += f" With a star: a drop that is significant among all tags (p ≤ {alpha:g})."
    yield Fold(count(len(worst), "tag"), [Table(head, align, rows), rest, Note(note), further])


def _means(tag: TagReport, metrics: dict[str, MetricReport], alpha: float, digits: int) -> Iterator[Mean]:
    changes, before = tag_changes(tag), tag.baseline_metrics or {}
    for key, metric in metrics.items():
        mean, change = tag_mean(tag, key), round(changes.get(key, 0.0), digits)
        yield Mean(
            text="no value" if mean is None else fixed(mean, digits),
            change=signed(change, digits) if change else "",
            is_better=(change > 0) == (metric.better == "higher"),
            is_significant=tag.p_values.get(key, 1) <= alpha,
            now=mean,
            before=before.get(key),
            scale=metric.scale,
        )


def noise(report: Report) -> Iterator[Block]:
    """Yield the section on how sure the changes are."""
    digits = digits_of(report)
    limits: dict[str, list[GateReport]] = {key: [] for key in report.metrics}
    for gate in report.gates:
        if gate.tag is None and gate.metric in limits:
            limits[gate.metric].append(gate)
    body: list[list[Parts]] = [
        [
            Text(metric.label, "label"),
            signed(metric.delta, digits),
            " to ".join(signed(end, digits) for end in sorted(ends)),
            f"{noise.wins:,} / {noise.ties:,} / {noise.losses:,}",
            p_of(limits[key], noise.p_value),
            outcomes_of(limits[key]) or "no limit",
        ]
        for key, metric in at_largest_k(report).items()
        if (noise := metric.noise) and (ends := ends_of(limits[key], metric))
    ]
    if body:
        head = ["Metric", "Change", "Interval", "Better / same / worse", "p", "Limit on the change"]
        table = Table(head, "lrrrrl", body)
        yield Fold("How sure the changes are", [table, Note(Text(method_note(report), "fact"))])


def rate(tier: TierReport, digits: int) -> str:
    """Return the pass rate of a tier and its counts: ``0.95 (57 of 60)``."""
    return f"{fixed(tier.rate, digits)} ({tier.passed:,} of {tier.queries:,})"


def tiers(report: Report, form: Form) -> Iterator[Block]:
    """Yield the section on tiers, if there are any; a terminal does not show which tiers are gated."""
    in_terminal, rows, digits = form == "terminal", list[list[Parts]](), digits_of(report)
    for tier in (report.tiers or [])[: bounds.ROWS]:
        least = "" if tier.minimum is None else f"{'minimum ' if in_terminal else ''}{as_written(tier.minimum)}"
        skipped = Text(tier.skipped or "", "line")
        gates = joined(([Name(name)] for name in tier.gates[: bounds.NAMES]), len(tier.gates) - bounds.NAMES)
        gated = ("; " if tier.skipped else "", "gates ", *gates) if gates and not in_terminal else ()
        rows.append([Name(tier.name), Text(tier.status, "status"), rate(tier, digits), least, (skipped, *gated)])
    if rows:
        sizes = Counter[str](tier.status for tier in report.tiers or [])
        words = {"fail": "broken", "waived": "waived", "skipped": "skipped"}
        parts = ", ".join(f"{sizes[status]:,} {word}" for status, word in words.items() if sizes[status])
        title = count(sizes.total(), "tier") + (f": {parts}" if parts else "")
        head = [] if in_terminal else ["Tier", "Status", "Pass rate", "Minimum", ""]
        yield Fold("Tiers" if in_terminal else title, [Table(head, "llrrl", rows)])


def modes(report: Report, form: Form) -> Iterator[Block]:
    """Yield the confusion matrix of modes, if any query expects one."""
    modes, digits = report.modes, digits_of(report)
    if not modes or not modes.matrix:
        return
    names = list(modes.matrix)[: bounds.MATRIX]
    columns = list(dict.fromkeys(name for line in names for name in modes.matrix[line]))[: bounds.MATRIX]
    right = sum(modes.matrix[name].get(name, 0) for name in names)
    total = sum(number for line in modes.matrix.values() for number in line.values())
    rows: list[list[Parts]] = []
    for name in names:
        line, before = (
            modes.matrix[name],
            None if modes.baseline_matrix is None else modes.baseline_matrix.get(name, {}),
        )
        cells = [
            Tally(
                number=line.get(column, 0),
                of=sum(line.values()),
                before=None if before is None else before.get(column, 0),
                is_right=name == column,
            )
            for column in columns
        ]
        recall = fixed(measures.recall, digits) if (measures := modes.per_mode.get(name)) else "-"
        rows.append([Text(name, "mode"), *cells, recall])
    precisions = [
        fixed(measures.precision, digits) if (measures := modes.per_mode.get(name)) else "" for name in columns
    ]
    words = ("Recall", "Precision") if form != "terminal" else ("recall", "precision")
    rows.append([words[1], *precisions, ""])
    head: list[Parts] = ["Expected ↓ found →", *(Text(name, "mode") for name in columns), words[0]]
    note = COMPARED if form == "markdown" and modes.baseline_matrix is not None else ""
    title = f"Modes: {right:,} of {count(total, 'row')} as expected"
    yield Fold(title, [Table(head, "l" + "r" * (len(head) - 1), rows), Note(note)])


def labels(report: Report, form: Form) -> Iterator[Block]:
    """Yield how well each label was chosen, the worst first, if any query expects one."""
    labels, digits = report.labels, digits_of(report)
    if not labels:
        return
    listed = sorted(labels.per_label.items(), key=lambda item: (not item[1].support, item[1].f1, item[0]))
    rows: list[list[Parts]] = [
        [Name(name), *(fixed(value, digits) for value in (of.precision, of.recall, of.f1)), f"{of.support:,}"]
        for name, of in listed[: bounds.LABELS_LISTED]
    ]
    macro = "" if labels.macro_f1 is None else f", macro F1 {fixed(labels.macro_f1, digits)}"
    head: list[Parts] = ["Label", "Precision", "Recall", "F1", "Rows"]
    rest = more(len(listed), len(rows), "label", "… and {}, in `report.json`.")
    title = f"{count(labels.classes, 'label')}{macro}"
    yield Fold(title, [Table(head, "lrrrr", rows), Note(rest if form == "markdown" else rest.replace("`", ""))])


def overlap(report: Report, form: Form, max_rows: int) -> Iterator[Block]:
    """Yield the section on what the run retrieved that the baseline did not, and how much labels could still change."""
    if not report.least_overlap:
        return
    digits = digits_of(report)
    k, has_labels = max(report.k), report.inputs.golden.answerable >= FEWEST_LABELLED
    measured = [metric for metric in report.metrics.values() if metric.k == k and metric.current is not None]
    diagnostics = [_shown(metric, digits) for metric in measured if metric.diagnostic is not UNSET]
    best = [
        f"{_shown(metric, digits)}, at most {highest}" for metric in measured if (highest := _highest(metric, digits))
    ]
    unjudged = f"Nobody has judged the documents that have no label and were not in the baseline's top {k}"
    labels = f"{unjudged}. If they were relevant: {'; '.join(best)}." if best and has_labels else ""
    title = f"Overlap with the baseline{', and what labels could change' if labels else ''}"
    facts = [Text(fact, "line") for fact in (f"{', '.join(diagnostics)}.", labels) if fact]
    lines: list[Parts] = []
    body: list[list[Parts]] = []
    for query in report.least_overlap[:max_rows]:
        shared, rbo = fixed(query.overlap, digits), fixed(query.rbo, digits)
        lines.append((Text(query.id, "id"), f": overlap {shared}, RBO {rbo}"))
        body.append([Name(query.id), shared, rbo])
    if form == "html":
        yield Fold(title, [Items([*facts, *lines])])
    else:
        yield Fold(title, [*map(Note, facts), Table(["Least overlap", "Overlap", "RBO"], "lrr", body)])


def _shown(metric: MetricReport, digits: int) -> str:
    return f"{clipped(metric.label, bounds.NAME)} {fixed(metric.current, digits)}"


def _highest(metric: MetricReport, digits: int) -> str:
    """Return the highest possible value; empty if it is the current one in the digits that are shown."""
    if isinstance(metric.if_relevant, UnsetType):
        return ""
    highest = fixed(metric.if_relevant, digits)
    return highest if highest != fixed(metric.current, digits) else ""
