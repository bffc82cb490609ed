"""Questions that people asked, with what was answered, and the questions that may become golden queries.

What is stored was redacted before: see :mod:`~ragcontract.service.redaction`.
"""

import hashlib
import secrets
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, RowMapping, select

from ragcontract.core import bounds
from ragcontract.core.golden import GoldenQuery
from ragcontract.service.audit import Author, record
from ragcontract.service.database import insert_if_new
from ragcontract.service.production.candidates import number_in_state
from ragcontract.service.production.question_similarity import normalised
from ragcontract.service.redaction import Redactor
from ragcontract.service.tables import candidates, interactions

PLAYGROUND = "playground"  # the source of what was asked in the playground, which monitors leave out
Made = Literal["made", "known", "golden", "full"]


class Interaction(Struct, frozen=True, kw_only=True):
    """A question and its answer, as they were."""

    query: str
    response: str | None = None
    error: str | None = None
    results: Sequence[Mapping[str, Any]] | None = None  # each with a `doc_id`, best first
    latency_ms: float | None = None


def question_digest(query: str) -> str:
    """Return the digest of a question, which is the same for other cases, spaces and punctuation."""
    return hashlib.sha256((normalised(query) or query).encode()).hexdigest()


def asked_texts(query: GoldenQuery) -> Sequence[str]:
    """Return the texts by which a golden query is asked: its question, and the first one of a conversation."""
    turns = (query.answer.turns or ()) if query.answer else ()
    return query.query, *turns[:1]


def add_interaction(
    connection: Connection, project: int, asked: Interaction, *, source: str, redactor: Redactor, now: int
) -> int:
    """Store a question with its answer, redacted, and return its id."""
    query = redactor.text(asked.query)
    results = asked.results
    if results is not None:
        fields = [{name: each[name] for name in ("doc_id", "score") if name in each} for each in results]
        results = redactor.json(fields)
    row = {
        "project_id": project,
        "external_id": f"{source}-{secrets.token_hex(16)}",
        "source": source,
        "asked_at": now,
        "received_at": now,
        "query": query,
        "query_sha": question_digest(query),
        "response": None if asked.response is None else redactor.beginning(asked.response, bounds.PLAYGROUND_TEXT),
        "error": None if asked.error is None else redactor.beginning(asked.error, bounds.FAILURE),
        "results": None if results is None else msgspec.json.encode(results).decode(),
        "latency_ms": asked.latency_ms,
    }
    number: int = connection.execute(interactions.insert().values(row).returning(interactions.c.id)).scalar_one()
    return number


def interaction_numbered(connection: Connection, project: int, number: int) -> RowMapping | None:
    """Return what was asked of a project; None if there is no such question."""
    wanted = interactions.c.project_id == project, interactions.c.id == number
    return connection.execute(select(interactions).where(*wanted)).mappings().one_or_none()


def add_candidate(
    connection: Connection, project: int, asked: RowMapping, golden: Collection[str], author: Author
) -> Made:
    """Make a question a candidate; ``golden`` are the digests of golden queries, which are none.

    A question is a candidate once, also after somebody has decided on it.
    """
    if asked["query_sha"] in golden:
        return "golden"
    if connection.execute(select(number_in_state(project, "new"))).scalar_one() >= bounds.CANDIDATES_WAITING:
        return "full"
    row = {
        "project_id": project,
        "query_sha": asked["query_sha"],
        "query": asked["query"],
        "interaction_id": asked["id"],
        "reason": asked["source"],
        "state": "new",
        "created_at": author.at,
    }
    if not insert_if_new(connection, candidates, row):
        return "known"
    record(connection, author, "candidate.add", f"project:{project}", f"question {asked['id']}")
    return "made"
