"""The comparison of runs as a self-contained HTML page, without a script (``compare --format html``)."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.report import comparison
from ragcontract.report.comparison import ComparedMetric, Interval, MeanRow, MeanTable, RunComparison
from ragcontract.report.html.page import asset, digest, environment
from ragcontract.report.html.page_text import shown


class Bar(Struct, frozen=True, kw_only=True):
    """A mean and its interval; positions are percentages of the metric's scale."""

    low: str
    width: str
    mean: str


class RunRow(Struct, frozen=True, kw_only=True):
    """One run in the card of a metric."""

    label: str
    text: MeanRow
    bar: Bar | None
    direction: str  # of its change: better, worse or empty


class MetricCard(Struct, frozen=True, kw_only=True):
    """One metric in all runs."""

    label: str
    rows: Sequence[RunRow]


class QueryRow(Struct, frozen=True, kw_only=True):
    """A query that the runs disagree about."""

    id: str
    question: str
    ranks: Sequence[str]


class ComparisonPage(Struct, frozen=True, kw_only=True):
    """The view of the page for the template."""

    policy: str
    style: str  # not escaped
    title: str
    tag: str
    about: str
    first: str
    method: str
    notes: Sequence[tuple[str, str]]
    cards: Sequence[MetricCard]
    disagreements: str
    labels: Sequence[str]
    queries: Sequence[QueryRow]
    rest: str
    inputs: Sequence[str]
    warnings: Sequence[str]


def render(made: RunComparison) -> bytes:
    """Render the page as UTF-8."""
    style = asset("page.css")
    labels = comparison.labels(made)
    page = ComparisonPage(
        policy=f"default-src 'none'; style-src '{digest(style)}'; img-src data:; base-uri 'none'; form-action 'none'",
        style=style,
        title=comparison.title(made),
        tag="" if made.tag is None else shown(made.tag, bounds.HTML_ID),
        about=shown(f"{made.created_at} · {made.tool.name} {made.tool.version}"),
        first=labels[0],
        method=comparison.METHOD,
        notes=list(comparison.notes(made)),
        cards=[_card(table, labels) for table in comparison.mean_tables(made)],
        disagreements=comparison.disagreements_title(made),
        labels=labels,
        queries=[
            QueryRow(
                id=shown(item.id, bounds.HTML_ID),
                question=comparison.question(item, bounds.HTML_QUESTION),
                ranks=list(map(comparison.ranks, item.ranks)),
            )
            for item in made.disagreements
        ],
        rest=comparison.rest(made),
        inputs=list(_inputs(made, labels)),
        warnings=list(map(shown, made.warnings)),
    )
    return environment().get_template("comparison.html").render(page=page).encode()


def _card(table: MeanTable, labels: Sequence[str]) -> MetricCard:
    rows = [_run_row(table.metric, label, row) for label, row in zip(labels, table.rows, strict=True)]
    return MetricCard(label=shown(table.metric.label), rows=rows)


def _run_row(metric: ComparedMetric, label: str, row: MeanRow) -> RunRow:
    mean, interval, change = row.numbers.mean, row.numbers.interval, row.numbers.against_first
    gained = 0.0 if change is None else change.delta * (1 if metric.better == "higher" else -1)
    return RunRow(
        label=label,
        text=row,
        bar=None if mean is None or interval is None else _bar(mean, interval, metric),
        direction="better" if gained > 0 else "worse" if gained < 0 else "",
    )


def _bar(mean: float, interval: Interval, metric: ComparedMetric) -> Bar:
    """Return the positions on the metric's scale, which is the same in all cards of one scale."""
    start, width = metric.scale.low, metric.scale.high - metric.scale.low

    def x(value: float) -> float:
        return (value - start) / width * 100

    low, high = interval
    return Bar(low=f"{x(low):.2f}%", width=f"{x(high) - x(low):.2f}%", mean=f"{x(mean):.2f}%")


def _inputs(made: RunComparison, labels: Sequence[str]) -> Iterator[str]:
    yield f"golden: {shown(made.golden[0].path)}" if made.golden else "golden"
    for name, run in zip(labels, made.runs, strict=True):
        more = f" and {len(run.files) - 1:,} more" if len(run.files) > 1 else ""
        missing = f", {len(run.missing):,} missing" if run.missing else ""
        yield f"{name}: {shown(run.files[0].path)}{more}, {run.queries:,} queries{missing}"
