"""The report as a self-contained HTML page, which loads nothing from the network.

``templates/`` renders the parts of the report as HTML and escapes all text. The modules in this folder compute what the
templates show. ``assets/`` has the stylesheet and the script. The most important content is readable without
JavaScript; the script renders the table of all queries and the chart from the data in the page.
"""

import base64
import hashlib
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from ragcontract.core import bounds
from ragcontract.core.numbers import more
from ragcontract.report import comparison
from ragcontract.report.comparison import ComparedMetric, RunComparison, RunMean
from ragcontract.report.formats import Reported
from ragcontract.report.headline import VERDICTS, headline, subject
from ragcontract.report.html import elements, query_rows
from ragcontract.report.html.charts import charts_of
from ragcontract.report.html.elements import FORM, PACKAGE, environment, phrase, shown
from ragcontract.report.limit_text import could_hide, digits_of, tested_together
from ragcontract.report.metric_table import main_metric, table_rows
from ragcontract.report.notes import scope_note
from ragcontract.report.queries import FindingsByQuery
from ragcontract.report.record import ErrorReport, Report
from ragcontract.report.sections.broken import line_of
from ragcontract.report.sections.frame import cause, notes
from ragcontract.report.sections.metrics import labels, metric_notes, metrics, modes, rate, tags, trends

LEGEND = "All bars cover the whole scale, from 0 to 1 if nothing else is said. A dashed line is a limit."
COMPARED = " The line across a bar is the baseline, the line below it the interval in which the value is likely to be."
NO_PASSAGES: query_rows.Passages = {}
SCRIPTS = ("queries.js", "slopes.js", "start.js")


def render(report: Report, passages: query_rows.Passages = NO_PASSAGES) -> bytes:
    """Render the page as UTF-8; ``passages`` are the texts of documents that entered or left the top k."""
    return rendered("page.html", script=script(), **view_of(report, passages))


def view_of(report: Report, passages: query_rows.Passages = NO_PASSAGES) -> dict[str, Any]:
    """Return what the templates show of a report, and what the script of its page reads."""
    blocks = list(metrics(report, FORM, bounds.HTML_CARDS))
    legend = LEGEND + (COMPARED if report.inputs.baseline else "")
    has_bars = any(elements.bar_of(row) for row in table_rows(report))
    return {
        "data": query_rows.encode(report, passages),
        "verdict": report.verdict,
        "title": _title(report, VERDICTS[report.verdict]),
        "headline": shown(headline(report)),
        "cause": phrase(cause(report)),
        "hidden": could_hide(report) or (),
        "scope": scope_note(report),
        "about": about(report),
        "notes": [phrase(note) for note in notes(report)],
        "metrics": blocks,
        "tests": tested_together(report),
        "legend": [*([legend] if has_bars else []), *trends(report), *metric_notes(report)],
        "tiers": (report.tiers or [])[: bounds.ROWS],
        "rate": rate,
        "digits": digits_of(report),
        "modes": list(modes(report, FORM)),
        "labels": list(labels(report, FORM)),
        "tags": list(tags(report, FORM)),
        "tag_numbers": {name: number for number, name in enumerate(report.tags)},
        "report": report,
        "listed": query_rows.listed_queries(report),
        "findings": FindingsByQuery(report),
        "metric": main_metric(report),
        "columns": query_rows.Columns.of(report),
        "elements": elements,
        "rows": query_rows,
        "line_of": line_of,
        "trends": charts_of(report),
    }


def render_error(report: ErrorReport) -> bytes:
    """Render the page for input that cannot be judged, as UTF-8."""
    return rendered(
        "error.html",
        title=_title(report, "could not be judged"),
        about=about(report),
        problems=[*report.problems, *filter(None, [more(report.more_problems, 0, "problem", "… and {}")])],
        report=report,
    )


def render_comparison(made: RunComparison) -> bytes:
    """Render a comparison of runs as UTF-8; its page has no script."""
    return rendered("comparison.html", **view_of_comparison(made))


def view_of_comparison(made: RunComparison) -> dict[str, Any]:
    """Return what the templates show of a comparison of runs."""
    return {
        "made": made,
        "compared": comparison,
        "title": comparison.title(made),
        "about": about(made),
        "bar_of": _bar_of_mean,
        "direction_of": _direction,
        "disagreements": comparison.disagreements_of(made, FORM),
        "ranked": any(ranks for query in made.disagreements for ranks in query.ranks),
        "inputs": list(_inputs(made)),
    }


def rendered(template: str, *, script: str = "", **view: object) -> bytes:
    """Render a template as UTF-8; it escapes all but the style, the script and the data of the script."""
    style = asset("page.css")
    page = environment().get_template(template)
    return page.render(policy=_policy(style, script), style=style, script=script, **view).encode()


def _bar_of_mean(numbers: RunMean, metric: ComparedMetric) -> tuple[str, str, str] | None:
    """Return the begin and the width of an interval, and the mean, on the scale that all cards of one scale share."""
    if numbers.mean is None or numbers.interval is None:
        return None
    start, width = metric.scale.low, metric.scale.high - metric.scale.low
    mean, low, high = ((value - start) / width * 100 for value in (numbers.mean, *numbers.interval))
    return f"{low:.2f}%", f"{high - low:.2f}%", f"{mean:.2f}%"


def _direction(numbers: RunMean, metric: ComparedMetric) -> str:
    """Return whether a run is better or worse than the first one; empty if it is neither."""
    change = numbers.against_first
    gained = 0.0 if change is None else change.delta * (1 if metric.better == "higher" else -1)
    return "better" if gained > 0 else "worse" if gained < 0 else ""


def _inputs(made: RunComparison) -> Iterator[str]:
    yield f"golden: {shown(made.golden[0].path)}" if made.golden else "golden"
    for name, run in zip(comparison.labels(made), made.runs, strict=True):
        missing = f", {len(run.missing):,} missing" if run.missing else ""
        others = more(len(run.files), 1, form=" and {}")
        yield f"{name}: {shown(run.files[0].path)}{others}, {run.queries:,} queries{missing}"


def file_of(outcome: Reported) -> list[bytes]:
    """Render the page of a check."""
    return [render(outcome.report, outcome.passages())]


file_of_error = render_error


def _title(report: Report | ErrorReport, end: str) -> str:
    return " ".join(filter(None, [subject(report), shown(report.contract, bounds.HTML_NAME), end]))


def about(report: Report | ErrorReport | RunComparison) -> str:
    """Return when a page was made, and with what."""
    return shown(f"{report.created_at} · {report.tool.name} {report.tool.version}")


def policy() -> str:
    """Return the Content-Security-Policy of a report's page, which the page also says itself."""
    return _policy(asset("page.css"), script())


def script() -> str:
    """Return the script of a report's page."""
    return "\n".join(map(asset, SCRIPTS))


def _policy(style: str, code: str) -> str:
    """Return a Content-Security-Policy that allows this style and this script by their hashes, and nothing else."""
    scripts = f"script-src '{_digest(code)}'; " if code else ""
    rest = "img-src data:; base-uri 'none'; form-action 'none'"
    return f"default-src 'none'; style-src '{_digest(style)}'; {scripts}{rest}"


def _digest(source: str) -> str:
    """Return the hash of a style or a script, as a Content-Security-Policy names it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}"


def asset(name: str) -> str:
    """Return the text of a stylesheet or a script."""
    return files(PACKAGE).joinpath("assets", name).read_text(encoding="utf-8")
