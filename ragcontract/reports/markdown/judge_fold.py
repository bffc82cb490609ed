"""The folded section in Markdown on what a judge said. Its words are as hostile as what it read: all is escaped."""

from collections.abc import Iterator

from ragcontract.core import bounds
from ragcontract.core.numbers import count
from ragcontract.reports.judge_report import JudgedItem, JudgedQuery
from ragcontract.reports.judge_section import TaskSection, Words, evidence, has_passed, heading, judge_section, name_of
from ragcontract.reports.markdown.gfm import code, fold, inline, table, text
from ragcontract.reports.report import Report

SIGNS = {True: "✅", False: "❌"}


def judge_fold(report: Report, max_queries: int) -> list[str]:
    """Return the section with the items of the first queries, the worst first; empty without judgments."""
    section = judge_section(report)
    if section is None:
        return []
    parts = [part for task in section.tasks for part in _of_task(task, max_queries)]
    return [fold(section.title, _bullets(section.facts), *parts)]


def _of_task(section: TaskSection, max_queries: int) -> Iterator[str]:
    yield f"**{inline(section.title.strip())}**"  # a blank after the stars would make them stars
    if section.facts:
        yield _bullets(section.facts)
    for query in section.queries[:max_queries]:
        yield from items_of(query, section.words)
    if (rest := len(section.queries) - max_queries) > 0:
        yield f"… and {count(rest, 'more query')}, in `report.json`."


def _bullets(facts: list[str]) -> str:
    return "\n".join(f"- {text(fact)}" for fact in facts)


def items_of(query: JudgedQuery, words: Words) -> list[str]:
    """Return the heading of a query and the table of its first items."""
    title = f"**{code(query.id)}** {heading(query, words)}"
    if not query.items:
        return [title]
    listed = query.items[: bounds.JUDGED_CLAIMS]
    body = [[inline(name_of(item, bounds.MARKDOWN_SAID)), _verdict(item)] for item in listed]
    rest = len(query.items) - len(listed)
    more = [f"… and {rest:,} more {words.item if rest == 1 else words.items}, in `report.json`."] if rest else []
    head = [words.item.capitalize(), f"{words.passed.capitalize()} by, or why not"]
    return [title, table(head, "ll", body), *more]


def _verdict(item: JudgedItem) -> str:
    """Return a sign and the evidence, in one cell: on a phone there is no room for a third column."""
    return f"{SIGNS[has_passed(item)]} {inline(evidence(item, bounds.MARKDOWN_SAID))}".rstrip()
