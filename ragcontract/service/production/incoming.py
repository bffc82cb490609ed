"""The body of a request with interactions: each is checked by itself, and becomes what the database stores of it.

The names of the RAG Eval Harness mean the same as ours: ``logs``, ``answer``, ``status``, ``confidence_score`` and
``user_feedback``.
"""

import re
import threading
from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from random import getrandbits
from typing import Annotated, Any, NamedTuple, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.safe_text import shorten
from ragcontract.files.json_lines import UNDECODABLE
from ragcontract.files.schema import mismatches
from ragcontract.service.database import BIGINT, DAY, index_key
from ragcontract.service.production.flags import flags_of, is_drawn
from ragcontract.service.production.interactions import PLAYGROUND, question_digest
from ragcontract.service.production.project_settings import ProjectSettings

SOURCE = "production"  # unless the sender names another
_FAILED = frozenset({"error", "errored", "failed", "failure", "exception", "timeout", "timed_out", "timed out"})
_FIRST_FAILED = 400  # as a status of HTTP
_FEEDBACK: Mapping[object, int] = {
    **dict.fromkeys((1, True, "1", "+1", "positive", "up", "thumbs_up", "thumbs up", "like", "good", "helpful"), 1),
    **dict.fromkeys((-1, "-1", "negative", "down", "thumbs_down", "thumbs down", "dislike", "bad", "unhelpful"), -1),
    **dict.fromkeys(("0", "neutral", "none", ""), 0),
}
TIME = "milliseconds since 1970, or ISO 8601 with a zone, such as 2026-11-29T17:40:00Z"
_BITS = 128  # of an id that nobody sent


def _text(most: int) -> Any:
    return Annotated[str, Meta(min_length=1, max_length=most, title=f"text of 1 to {most:,} characters")]


def _up_to(most: int) -> Any:
    return Annotated[str, Meta(max_length=most, title=f"text of at most {most:,} characters")]


Id: TypeAlias = _text(bounds.ID) | int  # type: ignore[valid-type]
Name: TypeAlias = _text(bounds.INTERACTION_NAME)  # type: ignore[valid-type]
Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)]


class ReturnedResult(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A document that was returned."""

    doc_id: Id
    score: float | None = None


class NewInteraction(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A question that somebody asked in production, with what was answered."""

    query: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=bounds.INTERACTION_QUERY,
            title=f"text of 1 to {bounds.INTERACTION_QUERY:,} characters",
        ),
    ]
    id: Annotated[Id | None, Meta(description="Whatever is sent with the id of one that is stored is a duplicate.")] = (
        None
    )
    asked_at: Annotated[float | str | None, Meta(description="Milliseconds since 1970, or ISO 8601 with a zone.")] = (
        None
    )
    source: Name | None = None
    response: _up_to(bounds.INTERACTION_RESPONSE) | None = None  # type: ignore[valid-type]
    error: _up_to(bounds.INTERACTION_RESPONSE) | None = None  # type: ignore[valid-type]
    results: Annotated[
        Annotated[
            list[ReturnedResult],
            Meta(
                max_length=bounds.INTERACTION_RESULTS, title=f"a list of at most {bounds.INTERACTION_RESULTS} results"
            ),
        ]
        | None,
        Meta(description="Best first; an empty list where nothing was found."),
    ] = None
    latency_ms: Annotated[float, Meta(ge=0)] | None = None
    confidence: Share | None = None
    feedback: int | bool | str | None = None
    user: Annotated[_text(bounds.INTERACTION_USER) | int | None, Meta(description="Stored as an HMAC.")] = None  # type: ignore[valid-type]
    tags: (
        Annotated[
            list[Name],
            Meta(max_length=bounds.INTERACTION_TAGS, title=f"a list of at most {bounds.INTERACTION_TAGS} tags"),
        ]
        | None
    ) = None
    answer: Annotated[_up_to(bounds.INTERACTION_RESPONSE) | None, Meta(description="The same as `response`.")] = None  # type: ignore[valid-type]
    status: Annotated[int | str | None, Meta(description="An `error` if it is `error`, `failed` or from 400 on.")] = (
        None
    )
    confidence_score: Annotated[Share | None, Meta(description="The same as `confidence`.")] = None
    user_feedback: Annotated[int | bool | str | None, Meta(description="The same as `feedback`.")] = None


class Interactions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Questions of production; `logs` is another name of the list."""

    interactions: list[NewInteraction] | UnsetType = UNSET
    logs: list[NewInteraction] | UnsetType = UNSET


class _Object(Struct, frozen=True):
    pass


class _Objects(Struct, frozen=True, kw_only=True):
    interactions: list[_Object] | UnsetType = UNSET
    logs: list[_Object] | UnsetType = UNSET


class _Parts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    interactions: list[msgspec.Raw] | UnsetType = UNSET
    logs: list[msgspec.Raw] | UnsetType = UNSET


_whole = msgspec.json.Decoder(Interactions)
_item = msgspec.json.Decoder(NewInteraction)
# A pair of escapes that are a character, the escape of half a character, or any other one.
_ESCAPE = re.compile(rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F]..)|.)", re.DOTALL)
_EXPLAINED = 256 << 10  # bytes of interactions of a body, up to which all that is wrong with them is said
_one_by_one = threading.Lock()  # of bodies that are not valid, because many small parts take much memory
Lists: TypeAlias = Interactions | _Objects | _Parts


class NotJsonError(Exception):
    """A body that is not JSON."""


class Rejected(Struct, frozen=True, kw_only=True):
    """An interaction that was not stored, and why."""

    index: int
    problem: str


class Stored(NamedTuple):
    """What is stored of an interaction, and what is decided about it."""

    row: dict[str, Any]
    day: int  # on which it was asked
    is_drawn: bool


class Prepared(NamedTuple):
    """The interactions of a request that can be stored, and those that cannot."""

    stored: Sequence[Stored]
    rejected: Sequence[Rejected]  # the first ones
    more_rejected: int


class _WrongError(ValueError):
    """What is wrong with a field of an interaction."""


def prepared(data: bytes, settings: ProjectSettings, now: int) -> Prepared:
    """Return what is stored of a body. Raises NotJsonError, or InputError if nothing of it can be stored."""
    items = _items_of(data)
    stored, rejected, explained = list[Stored](), list[Rejected](), 0
    for index, item in enumerate(items):
        explained += 0 if isinstance(item, NewInteraction) else memoryview(item).nbytes
        explain = explained <= _EXPLAINED and len(rejected) < bounds.PROBLEMS
        try:
            stored.append(_stored(_decoded(item, explain=explain), settings, now))
        except _WrongError as error:
            rejected.append(Rejected(index=index, problem=shorten(str(error), bounds.MESSAGE)))
    more = len(rejected) - bounds.PROBLEMS
    if not stored:
        problems = [f"interactions[{each.index}].{each.problem}" for each in rejected[: bounds.PROBLEMS]]
        raise InputError(problems, more=max(0, more))
    return Prepared(stored, rejected[: bounds.PROBLEMS], max(0, more))


def _items_of(data: bytes) -> Sequence[NewInteraction | msgspec.Raw]:
    whole: Sequence[NewInteraction]
    with suppress(*UNDECODABLE):  # of which one interaction may be the cause
        whole = _listed(_whole.decode(data))
        return whole
    with _one_by_one:
        try:
            return _parts_of(data)
        except msgspec.ValidationError as error:
            expected = "expected an object with `interactions`, a list of objects"
            raise InputError([f"the body: {expected} ({error})"]) from error
        except UNDECODABLE:
            try:
                return _parts_of(_with_whole_characters(data))
            except UNDECODABLE as error:
                raise NotJsonError from error


def _parts_of(data: bytes) -> Sequence[msgspec.Raw]:
    _listed(msgspec.json.decode(data, type=_Objects))
    parts: Sequence[msgspec.Raw] = _listed(msgspec.json.decode(data, type=_Parts))
    return parts


def _with_whole_characters(data: bytes) -> bytes:
    """Return JSON in which halves of characters are text: some languages write them where they cut a text."""
    return _ESCAPE.sub(lambda match: rb"\\" + match[1] if match[1] else match[0], data.removeprefix(BOM_UTF8))


def _listed(body: Any) -> Any:
    """Return the list of a body; raises InputError if there is none, or if it is too long."""
    lists = [each for each in (body.interactions, body.logs) if each is not UNSET]
    if len(lists) != 1:
        raise InputError(["interactions: is missing" if not lists else "logs: is the same as interactions; send one"])
    if not 0 < len(lists[0]) <= bounds.INTERACTIONS:
        raise InputError([f"interactions: expected 1 to {bounds.INTERACTIONS:,} of them, found {len(lists[0]):,}"])
    return lists[0]


def _decoded(item: NewInteraction | msgspec.Raw, *, explain: bool) -> NewInteraction:
    """Return an interaction; to ``explain`` all that is wrong with one takes long."""
    if isinstance(item, NewInteraction):
        return item
    try:
        return _item.decode(item)
    except UNDECODABLE as error:
        if not isinstance(error, msgspec.ValidationError):
            raise _WrongError("is not valid JSON") from error
        problems = list[str]()
        with suppress(*UNDECODABLE):  # a number of another field may be out of range
            wrong = [] if not explain else mismatches(msgspec.json.decode(item), NewInteraction)
            problems = [f"{_path(mismatch.path)}: {mismatch.message}" for mismatch in wrong[: bounds.FAULTS]]
        raise _WrongError("; ".join(problems) or _said_by(error)) from error


def _said_by(error: msgspec.ValidationError) -> str:
    """Return what is wrong with an interaction in the words of the decoder, after the field if it names one."""
    words, _, place = str(error).partition(" - at `$.")
    words = words[:1].lower() + words[1:]
    return f"{place.removesuffix('`')}: {words}" if place else words


def _path(path: Sequence[str | int]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def _stored(item: NewInteraction, settings: ProjectSettings, now: int) -> Stored:
    """Return what is stored of an interaction; raises _WrongError."""
    redactor, file = settings.redactor, settings.file
    if not item.query.strip():
        raise _WrongError("query: is blank")
    query = redactor.text(item.query)
    asked_at = _asked_at(item, file.keep_days, now)
    response, error = _either(item, "response", "answer"), _error(item)
    source = SOURCE if item.source is None else index_key(redactor.text(item.source))
    if source == PLAYGROUND:
        raise _WrongError(f"source: {PLAYGROUND} is what the service itself has asked; choose another name")
    row = {
        "project_id": settings.project,
        "external_id": _external_id(item, settings),
        "source": source,
        "asked_at": asked_at,
        "received_at": now,
        "query": query,
        "query_sha": question_digest(query),
        "response": None if response is None else redactor.text(response),
        "error": None if error is None else redactor.beginning(error, bounds.INTERACTION_ERROR),
        "results": None if item.results is None else _results(item.results, settings),
        "latency_ms": item.latency_ms,
        "confidence": _either(item, "confidence", "confidence_score"),
        "feedback": _feedback(item),
        "user_sha": None if item.user is None else settings.user_digest(str(item.user)),
        "tags": _tags(item.tags, settings) if item.tags else None,
    }
    day = asked_at - asked_at % DAY
    row["flags"] = flags_of(row, has_no_results=item.results == [], wanted=file.flag, p95=settings.p95.get(day - DAY))
    return Stored(row, day, is_drawn(settings.secret, row["external_id"], row["flags"], file.sampling))


def time_of(text: str) -> int:
    """Return a time in milliseconds; raises ValueError for any other text."""
    if text.isascii() and text.isdecimal():
        return min(int(text[:20]), BIGINT)
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError(TIME)
    return round(time.timestamp() * 1_000)


def _asked_at(item: NewInteraction, keep_days: int, now: int) -> int:
    if item.asked_at is None:
        return now
    try:
        asked_at = time_of(item.asked_at) if isinstance(item.asked_at, str) else int(item.asked_at)
    except (ValueError, OverflowError):
        raise _WrongError(f"asked_at: expected {TIME}") from None
    if asked_at > now + bounds.INTERACTION_AHEAD * 1_000:
        raise _WrongError("asked_at: is more than 5 minutes ahead of the service's time")
    if asked_at < now - keep_days * DAY:
        raise _WrongError(f"asked_at: is older than the {keep_days} days for which interactions are kept")
    return asked_at


def _external_id(item: NewInteraction, settings: ProjectSettings) -> str:
    """Return the id: that of the sender; else a digest of the content, if it says when it was asked; else a new one."""
    if item.id is not None:
        return index_key(str(item.id))
    if item.asked_at is None:
        return f"{getrandbits(_BITS):032x}"
    return settings.digest(msgspec.json.encode(item))


def _either(item: NewInteraction, name: str, other: str) -> Any:
    """Return the value of a field that has two names."""
    value, second = getattr(item, name), getattr(item, other)
    if value is not None and second is not None:
        raise _WrongError(f"{other}: is the same as {name}; send one")
    return second if value is None else value


def _error(item: NewInteraction) -> str | None:
    status = item.status
    if item.error is not None or status is None:
        return item.error
    if isinstance(status, int) or (status.isascii() and status.isdecimal()):
        return f"status {status}" if len(str(status)) > 3 or int(status) >= _FIRST_FAILED else None  # noqa: PLR2004
    return f"status {status}" if status.strip().lower() in _FAILED else None


def _feedback(item: NewInteraction) -> int | None:
    feedback = _either(item, "feedback", "user_feedback")
    if feedback is None:
        return None
    if feedback is False:
        return -1
    known = _FEEDBACK.get(feedback.strip().lower() if isinstance(feedback, str) else feedback)
    if known is None and feedback != 0:
        raise _WrongError("feedback: expected -1, 0 or 1, or a word such as thumbs_up or negative")
    return known or 0


def _results(results: Sequence[ReturnedResult], settings: ProjectSettings) -> str:
    fields = [
        {"doc_id": settings.short_text(str(each.doc_id))} | ({} if each.score is None else {"score": each.score})
        for each in results
    ]
    return msgspec.json.encode(fields).decode()


def _tags(tags: Sequence[str], settings: ProjectSettings) -> str:
    return msgspec.json.encode([settings.short_text(tag) for tag in tags]).decode()
