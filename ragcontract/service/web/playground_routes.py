"""Asking the system of a project, and what the service says of the answer.

Nothing in a request names what is run: a project's folder does, which only the operator writes.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from litestar import post
from litestar.di import NamedDependency
from litestar.params import JSONBody
from msgspec import Meta, Struct

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.safe_text import shorten
from ragcontract.service.accounts import Principal
from ragcontract.service.database import Database, now_ms, storable
from ragcontract.service.known_contract import KnownContract, contract_of, golden_of
from ragcontract.service.mounted import MountedProject
from ragcontract.service.playground.judged_query import JudgedQuery, judged
from ragcontract.service.playground.playground import (
    Playground,
    Reply,
    SlowAnswerError,
    TargetBusyError,
    free_question,
    golden_question,
)
from ragcontract.service.production.interactions import PLAYGROUND, Interaction, add_interaction
from ragcontract.service.redaction import redactor
from ragcontract.service.web.authentication import EDIT
from ragcontract.service.web.parameters import Asker, Db, Mounts, Slug, require_mounted, require_project
from ragcontract.service.web.problem_details import ProblemError

Targets = NamedDependency[Playground]
AGAIN = 5  # s; until a busy system is asked again
NEAREST = 3
Text = Annotated[str, Meta(min_length=1, max_length=bounds.PLAYGROUND_QUERY)]


class ChatMessage(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A message before the question."""

    role: Literal["user", "assistant", "system"]
    content: Annotated[str, Meta(max_length=bounds.PLAYGROUND_QUERY)]


class PlaygroundQuestion(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question to the system of a project."""

    query: Annotated[Text | None, Meta(description="By default, that of the golden query.")] = None
    messages: Annotated[
        list[ChatMessage],
        Meta(max_length=bounds.PLAYGROUND_MESSAGES, description="What was said before, the oldest first."),
    ] = []
    golden_id: Annotated[
        Annotated[str, Meta(max_length=bounds.ID)] | None,
        Meta(description="The golden query whose rules and metrics judge the answer."),
    ] = None


class NearQuestion(Struct, frozen=True, kw_only=True):
    """A golden query that is like a question."""

    id: str
    query: str
    likeness: Annotated[float, Meta(description="The cosine of their character n-grams, from 0 to 1.")]


class PlaygroundAnswer(Struct, frozen=True, kw_only=True):
    """What a system returned now. Long texts and lists are cut."""

    id: Annotated[int, Meta(description="Of the stored question.")]
    query: str
    error: Annotated[str | None, Meta(description="What the system did wrong; null if it answered.")] = None
    response: Annotated[str | None, Meta(description="The answer, or the last message of a conversation.")] = None
    results: Annotated[
        list[dict[str, Any]] | None, Meta(description="Best first, with `doc_id`; null if it is not known.")
    ] = None
    more_results: Annotated[int, Meta(description="How many further results there are.")] = 0
    tool_calls: list[Any] | None = None
    messages: Annotated[list[Any] | None, Meta(description="As the system returned them.")] = None
    further: Annotated[dict[str, Any], Meta(description="What else the row has, such as `mode` or `label`.")] = {}
    conversation: Annotated[list[ChatMessage], Meta(description="The `messages` to send with the next question.")] = []
    latency_ms: float | None = None
    versions: dict[str, str] = {}
    golden: Annotated[JudgedQuery | None, Meta(description="What the contract says; null without `golden_id`.")] = None
    unjudged: Annotated[str | None, Meta(description="Why the contract could not judge the answer.")] = None
    nearest: Annotated[list[NearQuestion], Meta(description="The golden queries that are most like the question.")] = []


SHOWN = ("query_id", "results", "response", "error", "tool_calls", "messages", "latency_ms")  # have fields of their own


class Asking(Struct, frozen=True, kw_only=True):
    """A question, with what is known of its project."""

    project: int
    slug: str
    contract: KnownContract
    body: PlaygroundQuestion

    @property
    def golden(self) -> GoldenQuery | None:
        """The golden query that is asked; answers 422 if there is none of this id."""
        if self.body.golden_id is None:
            return None
        query = golden_of(self.contract).get(self.body.golden_id)
        if query is None:
            raise InputError(["golden_id: the golden set has no query of this id"])
        return query

    def text(self) -> str:
        """Return what is asked; answers 422 if that is not clear."""
        golden, query = self.golden, self.body.query
        if golden is None:
            if query is None or not query.strip():
                raise InputError(["query: expected a question, or golden_id"])
            return storable(query)
        if self.body.messages:
            raise InputError(["messages: a golden query is asked as it is; leave golden_id or messages out"])
        if golden.turns and query not in {None, golden.query}:
            raise InputError(["query: this golden query is a conversation, which is asked as it is; leave query out"])
        return storable(query or golden.query)


@post(
    "/projects/{slug:str}/playground", access=EDIT, status_code=200, sync_to_thread=True, operation_id="ask_playground"
)
def ask_playground(
    *,
    data: JSONBody[PlaygroundQuestion],
    principal: Asker,
    database: Db,
    mounts: Mounts,
    targets: Targets,
    slug: Slug,
) -> PlaygroundAnswer:
    """Ask the system of a mounted project, and judge its answer if it is one to a golden query.

    What the system does wrong is `error` of the answer. It is asked one question at a time, for 60 seconds at most.
    """
    return answered(data, slug, principal=principal, database=database, mounts=mounts, targets=targets)


def answered(
    body: PlaygroundQuestion,
    slug: str,
    *,
    principal: Principal,
    database: Database,
    mounts: Path | None,
    targets: Playground,
) -> PlaygroundAnswer:
    """Ask a question, store it, and return the answer; answers 404, 409, 422, 503 or 504."""
    with database.read() as connection:
        project = require_project(connection, principal, slug)
        contract = contract_of(connection, project, mounts)
    asking = Asking(project=project, slug=slug, contract=contract, body=body)
    text = asking.text()
    mounted = require_mounted(mounts, slug)
    golden = asking.golden
    question = golden_question(mounted, golden, text) if golden else free_question(text)
    try:
        reply = targets.ask(mounted, question, [msgspec.to_builtins(message) for message in body.messages])
    except TargetBusyError as error:
        raise ProblemError(503, str(error), retry_after=AGAIN) from error
    except SlowAnswerError as error:
        _store(database, asking, mounted, text, Reply(error=str(error)))
        raise ProblemError(504, str(error)) from error
    number = _store(database, asking, mounted, text, reply)
    return _answer(asking, targets, text, number, reply)


def _store(database: Database, asking: Asking, mounted: MountedProject, text: str, reply: Reply) -> int:
    """Store a question with its answer, without what the project wants redacted; return its id."""
    row = reply.row or {}
    asked = Interaction(
        query=text,
        response=_answer_text(row),
        error=storable(reply.error) if reply.error else row.get("error"),
        results=row["results"][: bounds.PLAYGROUND_ITEMS] if isinstance(row.get("results"), list) else None,
        latency_ms=row.get("latency_ms"),
    )
    redact = redactor(mounted.file.redact)
    return database.write(
        lambda connection: add_interaction(
            connection, asking.project, asked, source=PLAYGROUND, redactor=redact, now=now_ms()
        )
    )


def _answer(asking: Asking, targets: Playground, text: str, number: int, reply: Reply) -> PlaygroundAnswer:
    row, golden = reply.row or {}, asking.golden
    verdict, unjudged = None, None
    if golden is not None and asking.contract.today and reply.row is not None:
        try:
            verdict = judged(asking.contract.today[0], golden, row, datetime.now(UTC))
        except InputError as error:
            unjudged = error.problems[0] if error.problems else "the row cannot be judged"
    results = row.get("results")
    return PlaygroundAnswer(
        id=number,
        query=text,
        error=storable(reply.error) if reply.error else row.get("error"),
        response=_cut(_answer_text(row)),
        results=_cut(results),
        more_results=max(0, len(results) - bounds.PLAYGROUND_ITEMS) if results else 0,
        tool_calls=_cut(row.get("tool_calls")),
        messages=_cut(row.get("messages")),
        further=_cut({name: value for name, value in row.items() if name not in SHOWN}),
        conversation=_continued(asking.body.messages, text, row) if golden is None and not reply.error else [],
        latency_ms=row.get("latency_ms"),
        versions=dict(reply.versions),
        golden=verdict,
        unjudged=unjudged,
        nearest=_nearest(asking, targets, text),
    )


def _cut(value: Any) -> Any:
    """Return decoded JSON whose texts and lists are not longer than a page has room for."""
    if isinstance(value, str):
        return shorten(value, bounds.PLAYGROUND_TEXT)
    if isinstance(value, list):
        return [_cut(inner) for inner in value[: bounds.PLAYGROUND_ITEMS]]
    if isinstance(value, dict):
        return {name: _cut(inner) for name, inner in [*value.items()][: bounds.PLAYGROUND_ITEMS]}
    return value


def _answer_text(row: Mapping[str, Any]) -> str | None:
    """Return what the system answered: its response, or the last message of its own."""
    if isinstance(row.get("response"), str):
        return str(row["response"])
    for message in reversed(row.get("messages") or ()):
        if message.get("role") == "assistant" and isinstance(message.get("content"), str):
            return str(message["content"])
    return None


def _continued(before: Sequence[ChatMessage], text: str, row: Mapping[str, Any]) -> list[ChatMessage]:
    """Return the messages before the next question; none if there would be too many, or nothing was said."""
    reply = _answer_text(row)
    if reply is None or len(before) + 2 > bounds.PLAYGROUND_MESSAGES:
        return []
    asked = ChatMessage(role="user", content=text)
    return [*before, asked, ChatMessage(role="assistant", content=reply[: bounds.PLAYGROUND_QUERY])]


def _nearest(asking: Asking, targets: Playground, text: str) -> list[NearQuestion]:
    """Return the golden queries that are most like a question, but for the one that is asked."""
    golden = [*golden_of(asking.contract).values()]
    near = targets.questions(asking.contract.digest or "", golden).nearest(text, NEAREST + 1)
    queries = [(golden[place], likeness) for place, likeness in near if golden[place].id != asking.body.golden_id]
    return [
        NearQuestion(id=query.id, query=query.query, likeness=round(likeness, 3))
        for query, likeness in queries[:NEAREST]
    ]


ROUTES = (ask_playground,)
