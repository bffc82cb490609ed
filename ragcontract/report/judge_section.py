"""The section on what a judge said.

A judge's words are as hostile as the texts that it read, so all of them are escaped.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec import UNSET

from ragcontract.core import bounds
from ragcontract.core.config_sections import Confirmed, Task
from ragcontract.core.numbers import count, fixed, more
from ragcontract.core.phrase import Name
from ragcontract.core.safe_text import clipped_line
from ragcontract.report.blocks import Block, Fold, Form, Heading, Items, Note, Parts, Styled, Table, Text
from ragcontract.report.parts import JudgedItem, JudgedQuery, JudgeReport, TaskReport
from ragcontract.report.record import Report

DIGITS = 2
TITLE = "What the judge said"
INDENT = "\u2003"


class Words(NamedTuple):
    """The words for a task and its items."""

    by: str
    item: str
    items: str
    passed: str
    failed: str
    nothing: str = ""  # why a query has no items


WORDS: dict[Task, Words] = {
    "attribution": Words("claim by claim", "claim", "claims", "supported", "not supported", "nothing was retrieved"),
    "criteria": Words("criterion by criterion", "criterion", "criteria", "met", "not met", "there is no answer"),
    "confirmation": Words("text by text", "flagged text", "flagged texts", "cleared", "stands"),
}
SAID: dict[Confirmed, str] = {
    "asserts_unsupported": "asserted without support",
    "denies_or_reports_absence": "not asserted",
    "supported_by_context": "supported",
}
NO_VERDICT = "no verdict"


def heading(query: JudgedQuery, words: Words) -> str:
    """Return how many items of a query passed, as text that follows its id."""
    of = f"{query.of:,} {words.item if query.of == 1 else words.items}"
    return f"{query.passed:,} of {of} {words.passed}" + ("" if query.items else f": {words.nothing}")


def has_passed(item: JudgedItem) -> bool:
    """Return whether the verdict is for the application and counts."""
    return item.verdict is True if item.stands is None else not item.stands


def name_of(item: JudgedItem, length: int) -> str:
    """Return the text of an item, or its name if the text must not be shown, and its row; nothing in it is escaped."""
    return clipped_line(item.text or item.item, length) + (f" (row {item.row})" if item.row else "")


def evidence(item: JudgedItem, length: int) -> str:
    """Return the words that prove a verdict, where they are, and the reason; nothing in it is escaped.

    The reason is left out for a claim or criterion that passed and has a quote.
    """
    where = f"text {item.context}: " if item.context is not None else ""
    quote = f"{where}“{clipped_line(item.quote, length)}”" if item.quote else where.removesuffix(": ")
    reason = "" if item.verdict is True and quote else clipped_line(item.reason, length)
    if item.stands is None:
        return quote or reason
    verdict = SAID[item.verdict] if isinstance(item.verdict, str) else NO_VERDICT
    if item.stands and item.verdict is not None and item.verdict != "asserts_unsupported":
        verdict = f"{verdict}, but not cleared"
    return ": ".join(filter(None, (verdict, "; ".join(filter(None, (quote, reason))))))


def _facts(judge: JudgeReport) -> Iterator[str]:
    by = f" by {clipped_line(', '.join(judge.models), bounds.NAME)}" if judge.models else ""
    when = f", {_when(judge.oldest, judge.newest)}" if judge.oldest and judge.newest else ""
    cached = f", {judge.cached:,} cached" if judge.judgments else ""
    yield f"{count(judge.judgments, 'judgment')}{by}{when}{cached}. Nothing was asked for this report."
    again = f"{judge.retried:,} retried, {judge.compromised:,} compromised"
    usd = "" if judge.usd is None else f", {judge.usd:,.4f} USD"
    tokens = f"{judge.tokens_in:,} tokens in, {judge.tokens_out:,} out"
    # Judgments that were not made by `judge` may not say how many calls there were.
    calls = f"{count(judge.calls, 'call')} ({again}), " if judge.calls or not judge.tokens_in else ""
    yield f"They cost {calls}{tokens}{usd}."
    of = [f"{number:,} {status}" for status, number in judge.without_verdict.items()]
    unjudged = sum(task.unjudged for task in judge.tasks)
    lacking = f"; without a verdict in the files: {', '.join(of)}" if of else ""
    yield f"Unjudged: {unjudged:,}{lacking}."
    if lacks := [name for name in ("temperature", "seed") if name in _not_taken(judge.fingerprints)]:
        yield f"The model takes no {' and no '.join(lacks)}: verdicts vary more from one call to the next."
    if judge.unused:
        why = "on other texts or queries, by other judges, or not needed"
        yield f"{count(judge.unused, 'further judgment')} in the files not used: {why}."


def _not_taken(fingerprints: Iterable[str]) -> set[str]:
    """Return the settings that judges do not take, which their fingerprints list at the end."""
    parts = [fingerprint.rpartition(", without ") for fingerprint in fingerprints]
    return {name for _, separator, names in parts if separator for name in names.split(", ")}


def _when(oldest: str, newest: str) -> str:
    """Return the times of the oldest and the newest judgment, to the minute."""
    first, last = (f"{moment[:10]} {moment[11:16]}" for moment in (oldest, newest))
    return f"of {first} UTC" if first == last else f"from {first} to {last} UTC"


def _trust(task: TaskReport) -> Iterator[str]:
    if task.kappa is not None and task.kappa_low is not None:
        low = f"at least {fixed(task.kappa_low, DIGITS)} at 95 %"
        yield f"The judge agrees with people beyond chance with kappa {fixed(task.kappa, DIGITS)} ({low})."
    if task.mean is not None and task.estimate is not None:
        means = f"Its mean is {fixed(task.mean, DIGITS)}; people would say {fixed(task.estimate, DIGITS)}"
        yield f"{means}, estimated from how often it is right (Rogan and Gladen). Limits are on its own mean."
    if task.why_not:
        what = "Nothing is cleared" if task.metric is None else "Limits on it do not count"
        yield f"{what}: {'; '.join(clipped_line(why, bounds.MARKDOWN_LINE) for why in task.why_not)}."


SIGNS = {True: "✅", False: "❌"}


def judge(report: Report, form: Form, max_queries: int) -> Iterator[Block]:
    """Yield the section with the items of the first queries, worst first, if there are judgments."""
    if report.judge is UNSET:
        return
    facts, blocks = list(_facts(report.judge)), list[Block]()
    if form == "html":
        yield Fold(TITLE, [Items([Text(fact, "line") for fact in facts])])
    for task in report.judge.tasks:
        words = WORDS[task.task]
        title, of_task = f"{task.label}, {words.by}", list(_trust(task))
        queries = sorted(task.queries, key=lambda query: query.passed / max(1, query.of))
        if form == "html":
            lines = [line for query in queries for line in _lines(query, words)]
            yield Fold(Text(title, "line"), [Items([*(Text(fact, "line") for fact in of_task), *lines])])
            continue
        # A blank after the stars would make them stars.
        blocks += [Heading(Text(title.strip(), "note")), Items([Text(fact, "fact") for fact in of_task])]
        blocks += [block for query in queries[:max_queries] for block in _table(query, words)]
        blocks.append(Note(more(len(queries), max_queries, "query", "… and {}, in `report.json`.")))
    if form != "html":
        yield Fold(TITLE, [Items([Text(fact, "fact") for fact in facts]), *blocks])


def _lines(query: JudgedQuery, words: Words) -> Iterator[Parts]:
    """Yield a query and its items as lines."""
    yield (Name(query.id), f": {heading(query, words)}")
    for item in query.items:
        proof = evidence(item, bounds.HTML_REASON)
        sign, verdict = ("✓", words.passed) if has_passed(item) else ("✕", words.failed)
        by = Styled(f" {verdict}{f': {proof}' if proof else ''}", "small")
        yield (f"{INDENT}{sign} {name_of(item, bounds.HTML_REASON)}", by)


def _table(query: JudgedQuery, words: Words) -> Iterator[Block]:
    """Yield the heading of a query and the table of its first items."""
    yield Note((Styled(Name(query.id)), f" {heading(query, words)}"))
    listed: list[list[Parts]] = []
    for item in query.items[: bounds.JUDGED_CLAIMS]:
        # A sign and the evidence are one cell: on a phone there is no room for a third column.
        proof = evidence(item, bounds.MARKDOWN_SAID)
        judged = (SIGNS[has_passed(item)], *((" ", Text(proof, "note")) if proof else ()))
        listed.append([Text(name_of(item, bounds.MARKDOWN_SAID), "note"), judged])
    yield Table([words.item.capitalize(), f"{words.passed.capitalize()} by, or why not"], "ll", listed)
    if rest := len(query.items) - len(listed):
        yield Note(f"… and {rest:,} more {words.item if rest == 1 else words.items}, in `report.json`.")
