"""The report as one HTML page for looking: nothing is loaded from anywhere, and nothing in it is more than text.

The template and its style and script lie in ``assets/``. What a reader needs most is written into the page here, so
that it can be read without JavaScript; the script makes the table of all queries and the chart from the data beside it.
"""

import base64
import hashlib
import re
from collections.abc import Mapping
from html import escape
from importlib.resources import files

from ragcontract.core.text import visible
from ragcontract.reports import repeats
from ragcontract.reports.headline import headline, shared_note
from ragcontract.reports.html import cards as html_cards
from ragcontract.reports.html import data as html_data
from ragcontract.reports.html import extras as html_extras
from ragcontract.reports.html import parts as html_parts
from ragcontract.reports.html.text import paragraph
from ragcontract.reports.metric_table import at_largest_k
from ragcontract.reports.report import Report

TITLES = {"pass": "Retrieval contract holds", "fail": "Retrieval contract broken"}
LEGEND = "The dot is the change, no change is in the middle; the bar is its interval, a dashed line the drop allowed."
SCRIPTS = ("queries.js", "slopes.js", "start.js")


def render(report: Report) -> bytes:
    """Render the page, UTF-8."""
    style = _asset("page.css")
    script = "\n".join(map(_asset, SCRIPTS))
    parts = {
        "policy": _policy(style, script),
        "style": style,
        "script": script,
        "verdict": report.verdict,
        "title": TITLES[report.verdict],
        "headline": _text(headline(report)),
        "about": _text(f"{report.created_at} · {report.tool.name} {report.tool.version}"),
        "drift": html_extras.drift_notes(report),
        "cards": html_cards.cards(report),
        "legend": paragraph(LEGEND if report.inputs.baseline else None),
        "notes": paragraph(shared_note(report)) + paragraph(repeats.note(report)),
        "tags": html_parts.tags(report),
        "metric": _text(next(metric.label for metric in at_largest_k(report).values())),
        "left_out": paragraph(html_parts.left_out(report)),
        "queries": html_parts.first_queries(report),
        "rest": paragraph(html_parts.not_listed(report)),
        "extras": html_extras.extras(report),
        "data": harmless(html_data.encode(report)),
    }
    return fill(_asset("page.html"), parts).encode()


def fill(template: str, parts: Mapping[str, str]) -> str:
    """Put the parts where the template names them, ``{{name}}``; what looks like a name within a part stays."""
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], template)


def harmless(json: str) -> str:
    """Write as escapes what could end a script element, end a line, or reorder the text of the page's source."""
    return re.sub("[<>&\u200e\u200f\u2028-\u202e\u2066-\u2069]", lambda match: f"\\u{ord(match[0]):04x}", json)


def _policy(style: str, script: str) -> str:
    """Allow this style and this script by what they say; no other script runs, and nothing is loaded."""
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _digest(source: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}"


def _asset(name: str) -> str:
    return files("ragcontract.reports.html").joinpath("assets", name).read_text(encoding="utf-8")


def _text(value: str) -> str:
    return escape(visible(value))
