"""The sections on what changed since the baseline: ranks, queries that cannot be compared, versions."""

from collections.abc import Iterator, Mapping, Sequence

from ragcontract.core import bounds
from ragcontract.core.numbers import count, fixed, more
from ragcontract.core.phrase import Name, joined
from ragcontract.report.blocks import (
    Bars,
    Block,
    Fold,
    Form,
    Group,
    Heading,
    Items,
    Note,
    Part,
    Parts,
    Sentence,
    Styled,
    Table,
    Text,
)
from ragcontract.report.headline import changed_versions, not_compared
from ragcontract.report.limit_text import digits_of
from ragcontract.report.metric_table import table_rows
from ragcontract.report.notes import worst_ranks
from ragcontract.report.rank_changes import RankChange, RankChanges, Step, rank, rank_changes, top
from ragcontract.report.record import Report
from ragcontract.report.sections.broken import query_cell, results, retrieved
from ragcontract.report.sections.metrics import metric_notes


def diff(report: Report, form: Form) -> Iterator[Block]:
    """Yield the differences in a report that has a baseline: worse, better, not compared, versions, metrics."""
    ranks, rows = rank_changes(report), table_rows(report)
    if form == "terminal":
        yield from changes(report, ranks, form)
        yield Group([Bars(rows, compared=True, limited=False), *map(Note, metric_notes(report))])
        yield Note(sizes(ranks))
        return
    yield Heading(f"Since the baseline: {sizes(ranks)}", 1)
    yield Items([Sentence(phrase, "line") for phrase in report.likely_mistakes])
    yield from changes(report, ranks, form)
    body: list[list[Parts]] = [[Text(row.label, "fact"), row.baseline, row.current, row.change] for row in rows]
    yield Table(["Metric", "Baseline", "Current", "Change"], "lrrr", body)
    yield from map(Note, metric_notes(report))


def changes(report: Report, ranks: RankChanges, form: Form) -> Iterator[Block]:
    """Yield the differences between baseline and run: worse, better, not compared, versions."""
    in_terminal, baseline = form == "terminal", report.inputs.baseline
    yield from _groups(report, ranks, form)
    if not in_terminal:
        broken = [item.query for item in (*ranks.worse, *ranks.better) if item.query.violations]
        listed = [query for query in broken if query.retrieved is not None]
        yield from retrieved(report, listed, bounds.ROWS, len(broken))
    yield from apart(not_compared(baseline) if baseline else {}, form)
    versions = changed_versions(report.inputs.run.versions, baseline.versions) if baseline else {}
    steps = [(field, Name(before), Name(now)) for field, (before, now) in versions.items()]
    if not in_terminal:
        body: list[list[Parts]] = [[field.replace("_", " "), before, now] for field, before, now in steps]
        yield Table(["Version", "Before", "Now"], "lll", body)
    elif steps:
        lines = [(f"{field}: ", before, " -> ", now) for field, before, now in steps]
        yield Fold("Versions that changed", [Items(lines)])


def _groups(
    report: Report, ranks: RankChanges, form: Form, max_rows: int = bounds.ROWS, *, with_size: bool = True
) -> Iterator[Block]:
    """Yield the queries that got worse, and those that got better."""
    for title, group in (("Worse", ranks.worse), ("Better", ranks.better)):
        if group and form == "terminal":
            yield Fold(f"{title} ({len(group)})", [_moved_fold(item, report) for item in group])
        elif group:
            yield Heading(title + (f": {count(len(group), 'query')}" if with_size else ""))
            yield from moved(report, group, max_rows)


def apart(
    groups: Mapping[str, Sequence[str]], form: Form, max_ids: int = bounds.ROWS, *, with_size: bool = True
) -> Iterator[Block]:
    """Yield groups of queries that are not compared, by the name of the group."""
    for name, ids in groups.items():
        if form == "html":
            yield Fold(f"{len(ids):,} {name}", [Items([Text(query_id, "id") for query_id in ids])])
        elif form == "terminal":
            yield Fold(f"{name[:1].upper()}{name[1:]} ({len(ids)})", [Items(list(map(Name, ids)))])
        else:
            title = name.capitalize() + (f": {count(len(ids), 'query')}" if with_size else "")
            names = joined(([Name(query_id)] for query_id in ids[:max_ids]), len(ids) - max_ids)
            yield Note((Styled(title), ": ", *names))


def sizes(ranks: RankChanges) -> str:
    """Return how many queries got worse, got better and stayed the same."""
    even = [] if ranks.even is None else [f"{ranks.even} the same"]
    return ", ".join([f"{len(ranks.worse)} worse", f"{len(ranks.better)} better", *even])


def changed_ranks(report: Report, max_rows: int) -> Iterator[Block]:
    """Yield the section on the queries whose ranks changed, if there is a baseline."""
    baseline = report.inputs.baseline
    if baseline is None:
        return
    ranks, groups = rank_changes(report), not_compared(baseline)
    blocks = [
        *_groups(report, ranks, "markdown", max_rows, with_size=False),
        *apart(groups, "markdown", max_rows, with_size=False),
    ]
    counts = {"worse": len(ranks.worse), "better": len(ranks.better), "the same": ranks.even}
    counts |= {name: len(query_ids) for name, query_ids in groups.items()}
    summary = ", ".join(f"{size:,} {word}" for word, size in counts.items() if size)
    title = "Rank changes" if ranks.even is not None else "Rank changes of broken queries"
    if blocks:
        yield Fold(f"{title}: {summary}", blocks)


def moved(report: Report, group: Sequence[RankChange], max_rows: int) -> Iterator[Block]:
    """Yield the table of the first queries whose ranks changed, with their documents, and a count of the others."""
    body: list[list[Parts]] = []
    for item in group[:max_rows]:
        steps = [_step(step, "→") for step in item.steps[: bounds.CHANGED_DOCS]]
        documents = joined(steps, len(item.steps) - bounds.CHANGED_DOCS)
        metric = _metric(item, report, "→")
        body.append([query_cell(item.query), (*metric, *([" "] if metric and documents else []), *documents)])
    yield Table(["Query", "Documents, rank before → now"], "ll", body)
    yield Note(more(len(group), max_rows, "query", "… and {}."))


def _metric(item: RankChange, report: Report, arrow: str) -> tuple[Part, ...]:
    """Return the change of a query with several rows, which stands before its documents: ``MRR@5 0.8333 → 0.6667``."""
    if not item.metric:
        return ()
    before, now = (item.query.baseline_metrics or {}).get(item.metric), item.query.metrics[item.metric]
    digits = digits_of(report)
    change = f"{report.metrics[item.metric].label} {fixed(before, digits)} {arrow} {fixed(now, digits)}"
    return (Text(change, "fact"), f"; {worst_ranks(report)}:" if item.steps else "")


def _step(step: Step, arrow: str, colon: str = "") -> tuple[str | Name, ...]:
    forbidden = " (forbidden)" if step.forbidden else ""
    return (Name(step.doc_id), f"{forbidden}{colon} {rank(step.before)} {arrow} {rank(step.now)}")


def _moved_fold(item: RankChange, report: Report) -> Block:
    """Return a query whose ranks changed, with its documents and, if it is broken, its results."""
    metric = _metric(item, report, "->")
    steps: list[Parts] = [*([metric] if metric else []), *(_step(step, "->", ":") for step in item.steps)]
    blocks: list[Block] = [Items(steps)]
    if item.query.retrieved is not None:
        blocks += [Note(f"Retrieved, {top(report)}:"), results(item.query, "terminal")]
    return Fold((Styled(Name(item.query.id)), "  ", Text(item.query.query, "question")), blocks)
