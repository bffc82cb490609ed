"""Results and texts of broken queries, on both sides, cut to what reports show.

Reports list what was retrieved instead of what was wanted, and what the application said and saw if the contract is
about that. Nothing is held for other queries, so the memory of a check does not depend on the size of the run. Of a
baseline, the rows are read a second time, because the broken queries are known only after the comparison with it.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from math import isfinite
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct, UnsetType
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.finding import Message, Said, ToolCall, called
from ragcontract.core.ids import as_id, unpacked
from ragcontract.core.rule import LEAKS, names_of
from ragcontract.core.run import Json, ListedResult, Result, RunRow
from ragcontract.core.safe_text import shorten
from ragcontract.evaluation.plan import Plan

T = TypeVar("T")
NOTHING = Said()
_TEXTS: dict[str, Any] = {
    **dict.fromkeys(("response", "error", "mode", "label", "refusal", "finish_reason"), str),
    **dict.fromkeys(("tool_calls", "messages"), list[Json]),
    "retrieved_contexts": list[str],
}


class Listed(Struct, frozen=True, kw_only=True):
    """The results and the texts of the queries that a plan lists, by query id."""

    retrieved: dict[str, tuple[ListedResult, ...]] = {}
    said: dict[str, Said] = {}


class ListedResults:
    """The results of the first ``bounds.RETRIEVED_QUERIES`` broken queries.

    Of a run, the first row of a query that breaks a rule is held. Of a baseline, the first row of each query that the
    plan lists is held.
    """

    def __init__(self, plan: Plan) -> None:
        self.held: dict[str, tuple[ListedResult, ...]] = {}  # by query id
        self.said: dict[str, Said] = {}  # by query id; of as many queries as bounds.SAID_TEXTS has room for
        self._room = bounds.SAID_TEXTS if plan.shows_texts else 0
        self._plan = plan
        self._masks = any(LEAKS in names_of(rule) for rule in plan.row_rules)

    @property
    def has_room(self) -> bool:
        return len(self.held) < bounds.RETRIEVED_QUERIES

    def hold_row(self, query_id: str, row: RunRow) -> None:
        """Hold the top k of a row and its texts, unless another row of the query is held already."""
        if query_id not in self.held and self.has_room:
            self.hold(query_id, row.results)
            if self._room > 0:
                texts = said_in(without_personal_data(row) if self._masks else row, self._plan.k)
                self._room -= texts.size
                if self._room >= 0 and texts != NOTHING:
                    self.said[query_id] = texts

    def hold(self, query_id: str, results: Iterable[Result]) -> None:
        """Hold the top k of a row, unless another row of the query is held already."""
        if query_id not in self.held and self.has_room:
            self.held[query_id] = top(results, self._plan)

    def note_listed(self, rows: Iterable[RunRow]) -> None:
        for row in rows:
            if (query_id := as_id(row.query_id)) in self._plan.listed:
                self.hold_row(query_id, row)

    @property
    def has_all(self) -> bool:
        return len(self.held) >= min(len(self._plan.listed), bounds.RETRIEVED_QUERIES)


def listed_ids(
    first_ids: Mapping[str, bytes], query_ids: Iterable[str], plan: Plan
) -> dict[str, tuple[ListedResult, ...]]:
    """Return the top k of stored queries, of which only document ids are known. Of several rows, the first counts."""
    known = [query_id for query_id in query_ids if query_id in first_ids]
    rows = ((query_id, unpacked(first_ids[query_id])[0]) for query_id in known)
    return {query_id: top((Result(doc_id=doc_id) for doc_id in doc_ids), plan) for query_id, doc_ids in rows}


def top(results: Iterable[Result], plan: Plan) -> tuple[ListedResult, ...]:
    """Return the top k, at most ``bounds.RETRIEVED`` results, with each document once if ranks count documents."""
    if plan.ranking.by_document:
        first: dict[str, Result] = {}
        for result in results:
            first.setdefault(as_id(result.doc_id), result)
        results = first.values()
    return tuple([_retrieved(result) for result in islice(results, min(plan.k, bounds.RETRIEVED))])


def without_personal_data(row: RunRow) -> RunRow:
    """Return a row in whose texts the values that must not be said are masked, before they are cut."""
    from ragcontract.answers.leaked_values import masked, masked_json

    read = {field: _read(row, field, kind) for field, kind in _TEXTS.items()}
    changed = {field: masked_json(value) for field, value in read.items() if value is not None}
    texts = [_read(result, "text", str) for result in row.results]
    results = [
        result if text is None else replace(result, text=masked(text))
        for result, text in zip(row.results, texts, strict=True)
    ]
    return replace(row, results=results, **changed)


def said_in(row: RunRow, k: int) -> Said:
    """Return the texts of a row, and the contexts that its model saw: by default those of its first ``k`` results.

    A field that is missing or has an unexpected type is left out. Only rules and metrics that need a field refuse it.
    """
    calls = _read(row, "tool_calls", list[Json])
    contexts = _contexts(row, k)
    messages = _read(row, "messages", list[Json])
    return Said(
        response=_text(row, "response", bounds.SAID),
        error=_text(row, "error", bounds.SAID),
        mode=_text(row, "mode", bounds.SAID_NAME),
        label=_text(row, "label", bounds.SAID_NAME),
        refusal=_text(row, "refusal", bounds.SAID),
        finish_reason=_text(row, "finish_reason", bounds.SAID_NAME),
        tool_calls=None if calls is None else tuple(map(_call, calls[: bounds.SAID_CALLS])),
        more_tool_calls=max(0, len(calls or ()) - bounds.SAID_CALLS),
        messages=None if messages is None else tuple(map(_message, messages[: bounds.SAID_MESSAGES])),
        more_messages=max(0, len(messages or ()) - bounds.SAID_MESSAGES),
        contexts=None if contexts is None else tuple(map(_context, contexts[: bounds.SAID_CONTEXTS])),
        more_contexts=max(0, len(contexts or ()) - bounds.SAID_CONTEXTS),
    )


def _retrieved(result: Result) -> ListedResult:
    score, chunk = result.score, result.chunk_id
    return ListedResult(
        doc_id=as_id(result.doc_id),
        score=score if score is not None and isfinite(score) else None,
        chunk_id=None if chunk is None else as_id(chunk),
    )


def _text(row: RunRow, field: str, length: int) -> str | None:
    text = _read(row, field, str)
    return None if text is None else shorten(text, length)


def _context(text: str) -> str:
    return shorten(text, bounds.SAID_CONTEXT)


def _contexts(row: RunRow, k: int) -> Sequence[str] | None:
    own = _read(row, "retrieved_contexts", list[str])
    if own is not None:
        return own
    texts = [_read(result, "text", str) for result in islice(row.results, k)]
    known = [text for text in texts if text is not None]
    return known or None


def _call(call: Json) -> ToolCall:
    from ragcontract.answers.tool_calls import written

    name, arguments = written(call)
    if not isinstance(arguments, str):  # OpenAI writes them as JSON within a text
        arguments = "" if arguments is None else msgspec.json.encode(arguments).decode()
    return ToolCall(
        name=shorten(name if isinstance(name, str) else "", bounds.SAID_ARGUMENTS),
        arguments=shorten(arguments, bounds.SAID_ARGUMENTS),
    )


def _message(message: Json) -> Message:
    from ragcontract.answers.messages import calls_in, texts_in, with_role

    message = with_role(message)
    texts = [text for _, text in texts_in(message)]
    calls = [called(_call(call)) for call in calls_in(message)]
    text, role = "\n".join(filter(None, (*texts, *calls))), message.get("role")
    role = role if isinstance(role, str) else ""
    return Message(role=shorten(role, bounds.SAID_NAME), text=shorten(text, bounds.SAID_MESSAGE))


def _read(record: Any, field: str, kind: type[T]) -> T | None:
    """Return a field of a row or a result, parsed if it is raw; None if it is absent or not of this kind."""
    value: Raw | str | list[str] | list[Json] | UnsetType | None = getattr(record, field, None)
    if value is None or isinstance(value, UnsetType):
        return None
    try:
        return msgspec.json.decode(value, type=kind) if isinstance(value, Raw) else msgspec.convert(value, kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
