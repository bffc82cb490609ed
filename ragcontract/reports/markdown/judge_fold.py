"""The folded section in Markdown on what a judge said. Its words are as hostile as what it read: all is escaped."""

from ragcontract.core import bounds
from ragcontract.core.numbers import count
from ragcontract.core.text import shorten, visible
from ragcontract.reports.judge_report import JudgedQuery
from ragcontract.reports.judge_section import evidence, judge_section
from ragcontract.reports.markdown.gfm import code, fold, inline, table, text
from ragcontract.reports.report import Report

SIGNS = {True: "✅", False: "❌"}


def judge_fold(report: Report, max_queries: int) -> list[str]:
    """Return the section with the claims of the first queries, the least recall first; empty without judgments."""
    section = judge_section(report)
    if section is None:
        return []
    rest = len(section.queries) - max_queries
    parts = [part for query in section.queries[:max_queries] for part in claims_of(query)]
    more = [f"… and {count(rest, 'more query')}, in `report.json`."] if rest > 0 else []
    return [fold(section.title, "\n".join(f"- {text(fact)}" for fact in section.facts), *parts, *more)]


def claims_of(query: JudgedQuery) -> list[str]:
    """Return the heading of a query and the table of its first claims."""
    heading = f"**{code(query.id)}** {query.supported:,} of {count(query.of, 'claim')} supported"
    if not query.claims:
        return [f"{heading}: nothing was retrieved"]
    listed = query.claims[: bounds.JUDGED_CLAIMS]
    body = [
        [
            inline(shorten(visible(" ".join(claim.text.split())), bounds.MARKDOWN_SAID)),
            SIGNS[claim.supported],
            inline(evidence(claim, bounds.MARKDOWN_SAID)),
        ]
        for claim in listed
    ]
    rest = len(query.claims) - len(listed)
    more = [f"… and {count(rest, 'more claim')}, in `report.json`."] if rest else []
    return [heading, table(["Claim", "Supported", "By, or why not"], "lll", body), *more]
