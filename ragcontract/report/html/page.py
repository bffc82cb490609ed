"""The report as a self-contained HTML page, which loads nothing from the network.

This module and the others in this folder build the view of each part. ``templates/`` renders the views as HTML and
escapes all text; ``assets/`` has the stylesheet and the script. The most important content is readable without
JavaScript; the script renders the table of all queries and the chart from the data in the page.
"""

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.numbers import count
from ragcontract.decision.decide import Verdict
from ragcontract.report.formats import Reported
from ragcontract.report.headline import drift_phrases, headline_phrase, shared_note, subject
from ragcontract.report.html import query_rows
from ragcontract.report.html.metric_cards import Cards, Tags, cards, tags
from ragcontract.report.html.page_text import Part, note, sentence, shown, with_code
from ragcontract.report.html.query_rows import Queries, queries
from ragcontract.report.html.sections import Fold, HeatCell, TierRow, folds, heat, tier_rows
from ragcontract.report.limit_text import could_hide, not_proven_notes
from ragcontract.report.notes import change_notes, repeats_note, scope_phrase
from ragcontract.report.outcome_tables import Matrix
from ragcontract.report.record import ErrorReport, Report

PACKAGE = "ragcontract.report.html"
ENDS: dict[Verdict, str] = {"pass": "holds", "fail": "broken"}
LEGEND = "All bars cover the whole scale, from 0 to 1 if nothing else is said. A dashed line is a limit."
COMPARED = " The line across a bar is the baseline, the line below it the interval in which the value is likely to be."
SCRIPTS = ("queries.js", "slopes.js", "start.js")


class Page(Struct, frozen=True, kw_only=True):
    """The view of the page for the templates, which escape all text but three fields."""

    policy: str
    style: str  # not escaped
    script: str  # not escaped
    data: str  # not escaped
    verdict: Verdict
    title: str
    headline: Sequence[Part]
    hidden: Sequence[Part]
    scope: Sequence[Part]
    about: str
    drift: Sequence[Sequence[Part]]
    cards: Cards
    notes: Sequence[str]
    tiers: Sequence[TierRow]
    heat: Matrix[HeatCell] | None
    tags: Tags | None
    queries: Queries
    folds: Sequence[Fold]


class ErrorPage(Struct, frozen=True, kw_only=True):
    """The view of the page for input that cannot be judged."""

    policy: str
    style: str  # not escaped
    title: str
    about: str
    problems: Sequence[str]
    warnings: Sequence[str]


def render(report: Report) -> bytes:
    """Render the page as UTF-8."""
    return environment().get_template("page.html").render(page=_page(report)).encode()


def render_error(report: ErrorReport) -> bytes:
    """Render the page for input that cannot be judged, as UTF-8."""
    style = asset("page.css")
    more = f"… and {count(report.more_problems, 'more problem')}" if report.more_problems else ""
    page = ErrorPage(
        policy=f"default-src 'none'; style-src '{digest(style)}'; img-src data:; base-uri 'none'; form-action 'none'",
        style=style,
        title=_title(report, "could not be judged"),
        about=_about(report),
        problems=[*map(shown, report.problems), *([more] if more else [])],
        warnings=list(map(shown, report.warnings)),
    )
    return environment().get_template("error.html").render(page=page).encode()


def file_of(outcome: Reported) -> list[bytes]:
    """Render the page of a check."""
    return [render(outcome.report)]


file_of_error = render_error


@cache
def environment() -> Environment:
    """Return the templates of all pages."""
    return Environment(
        loader=PackageLoader(PACKAGE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )


def _page(report: Report) -> Page:
    style, script = asset("page.css"), "\n".join(map(asset, SCRIPTS))
    legend = LEGEND + (COMPARED if report.inputs.baseline else "")
    return Page(
        policy=_policy(style, script),
        style=style,
        script=script,
        data=query_rows.encode(report),
        verdict=report.verdict,
        title=_title(report, ENDS[report.verdict]),
        headline=sentence(headline_phrase(report), bounds.HTML_NOTE),
        hidden=sentence(could_hide(report) or ()),
        scope=sentence(scope_phrase(report)),
        about=_about(report),
        drift=[
            *map(sentence, report.likely_mistakes),
            *map(sentence, not_proven_notes(report)),
            *map(sentence, report.label_notes),
            *map(sentence, change_notes(report)),
            *map(with_code, drift_phrases(report)),
        ],
        cards=cards(report),
        notes=[*note(legend), *note(shared_note(report)), *note(repeats_note(report)), *map(shown, report.run_notes)],
        tiers=tier_rows(report),
        heat=heat(report),
        tags=tags(report),
        queries=queries(report),
        folds=folds(report),
    )


def _title(report: Report | ErrorReport, end: str) -> str:
    return " ".join(filter(None, [subject(report), shown(report.contract, bounds.HTML_NAME), end]))


def _about(report: Report | ErrorReport) -> str:
    return shown(f"{report.created_at} · {report.tool.name} {report.tool.version}")


def _policy(style: str, script: str) -> str:
    """Return a Content-Security-Policy that allows this style and this script by their hashes, and nothing else."""
    return (
        f"default-src 'none'; style-src '{digest(style)}'; script-src '{digest(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def digest(source: str) -> str:
    """Return the hash of a style or a script, as a Content-Security-Policy names it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}"


def asset(name: str) -> str:
    """Return the text of a stylesheet or a script."""
    return files(PACKAGE).joinpath("assets", name).read_text(encoding="utf-8")
