"""What was said and seen for a broken query, before and now, side by side."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from ragcontract.core.said import Said, called
from ragcontract.core.text import clipped_line
from ragcontract.reports.broken import broken_queries, not_failing_queries
from ragcontract.reports.report import QueryReport, Report

ANSWER, CONTEXTS, CONVERSATION = "Answer", "Contexts", "Messages"
_TEXTS = {
    "response": ANSWER,
    "error": "Error",
    "refusal": "Refusal",
    "mode": "Mode",
    "label": "Label",
    "finish_reason": "Stopped by",
}
EMPTY = "(empty)"


class SaidRow(Struct, frozen=True, kw_only=True):
    """One kind of text on both sides; ``more_before`` and ``more_now`` count the texts that are not listed."""

    title: str
    before: Sequence[str] = ()
    now: Sequence[str] = ()
    more_before: int = 0
    more_now: int = 0


def queries_with_texts(report: Report) -> list[QueryReport]:
    """Return the queries whose texts are listed: broken ones, worst first, then those that do not fail."""
    return [query for query in (*broken_queries(report), *not_failing_queries(report)) if said_rows(query)]


def said_rows(query: QueryReport) -> list[SaidRow]:
    """Return the texts of a query, without those that neither side has; empty for a query whose texts are not held."""
    return [] if query.said is None and query.baseline_said is None else list(_rows(query))


def _rows(query: QueryReport) -> Iterator[SaidRow]:
    now, before = query.said or Said(), query.baseline_said or Said()
    for field, title in _TEXTS.items():
        texts = _texts(before, field), _texts(now, field)
        if any(texts):
            yield SaidRow(title=title, before=texts[0], now=texts[1])
    if now.tool_calls is not None or before.tool_calls is not None:
        calls = [_calls(side) for side in (before, now)]
        more = {"more_before": before.more_tool_calls, "more_now": now.more_tool_calls}
        yield SaidRow(title="Tool calls", before=calls[0], now=calls[1], **more)
    if now.messages is not None or before.messages is not None:
        more = {"more_before": before.more_messages, "more_now": now.more_messages}
        yield SaidRow(title=CONVERSATION, before=_conversation(before), now=_conversation(now), **more)
    if now.contexts is not None or before.contexts is not None:
        seen = [["none"] if side.contexts == () else side.contexts or () for side in (before, now)]
        more = {"more_before": before.more_contexts, "more_now": now.more_contexts}
        yield SaidRow(title=CONTEXTS, before=seen[0], now=seen[1], **more)


def _texts(side: Said, field: str) -> list[str]:
    text: str | None = getattr(side, field)
    return [] if text is None else [text or EMPTY]


def _conversation(side: Said) -> Sequence[str]:
    return [f"{message.role}: {message.text or EMPTY}" for message in side.messages or ()]


def _calls(side: Said) -> Sequence[str]:
    return ["none"] if side.tool_calls == () else list(map(called, side.tool_calls or ()))


def shown_answer(query: QueryReport, length: int) -> str:
    """Return what was answered to a query with a broken rule about its answer, on one line; empty if not known."""
    if query.said is None or query.answer is None or not query.answer.violations:
        return ""
    answer = query.said.response or query.said.refusal or ""
    return clipped_line(answer, length)
