"""The routes of candidates: which questions may become golden queries, decisions, and the rows to put into git."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from litestar import Response, get, post
from litestar.params import JSONBody, QueryParameter
from msgspec import Meta, Struct
from sqlalchemy import Connection, RowMapping

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.ids import as_id
from ragcontract.service.accounts import Principal
from ragcontract.service.audit import Author
from ragcontract.service.database import BIGINT, Database, Milliseconds
from ragcontract.service.known_contract import contract_of
from ragcontract.service.mounted import project_file
from ragcontract.service.production.candidate_rows import (
    GoldenQuestions,
    golden_questions,
    golden_row,
    suggested_id,
)
from ragcontract.service.production.candidates import (
    CandidateState,
    Decided,
    accepted_ids,
    accepted_rows,
    candidate_numbered,
    candidates_before,
    decide,
    decided_already,
    position_of_candidate,
)
from ragcontract.service.projects_and_runs import project_id
from ragcontract.service.web.authentication import EDIT, READ
from ragcontract.service.web.parameters import (
    DEFAULT_LIMIT,
    Asker,
    By,
    Cursor,
    Db,
    Limit,
    Mounts,
    Number,
    Page,
    Slug,
    Whole,
    cursor_of,
    position_of,
    require_project,
)
from ragcontract.service.web.problem_details import ProblemError

JSON_LINES = "application/jsonl"
Decision = Literal["accept", "reject", "reopen"]


class Candidate(Struct, frozen=True, kw_only=True):
    """A question that may become a golden query."""

    id: int
    query: str
    state: CandidateState
    reason: Annotated[str, Meta(description="Why it is here: what is wrong with the answer, or `sampled`.")]
    asked: Annotated[int, Meta(description="How often it was asked, of what was sampled.")]
    created_at: Milliseconds
    golden_id: Annotated[str | None, Meta(description="The golden query that has this question by now.")]
    row: Annotated[dict[str, Any] | None, Meta(description="The golden row of an accepted one.")]
    decided_by: Annotated[str | None, Meta(description="Such as user:ana.")]
    decided_at: Milliseconds | None


class CandidateDecision(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to do with a candidate."""

    decision: Annotated[Decision, Meta(description="`reopen` takes a decision back.")]
    row: Annotated[
        dict[str, Any] | None,
        Meta(
            description="The golden row of an accepted one, with `relevant_doc_ids` ([] if nothing answers it), or an "
            "`expected_mode`. By default, it has the question, and an id made of its words."
        ),
    ] = None


@get("/projects/{slug:str}/candidates", access=READ, sync_to_thread=True)
def list_candidates(
    *,
    principal: Asker,
    database: Db,
    mounts: Mounts,
    slug: Slug,
    candidate_state: Annotated[
        CandidateState, QueryParameter(name="state", description="`new` waits for a decision.")
    ] = "new",
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Page[Candidate]:
    """Return questions that may become golden queries: the most asked first, or those that were decided last."""
    before = position_of(cursor, tuple[Whole, Whole])
    with database.read() as connection:
        project = require_project(connection, principal, slug)
        rows = candidates_before(connection, project, candidate_state, before, limit)
        golden = golden_of_project(connection, project, mounts, slug)
    items = [candidate_of(row, golden) for row in rows[:limit]]
    return Page(items=items, next=cursor_of(position_of_candidate(rows[limit - 1])) if len(rows) > limit else None)


def golden_of_project(connection: Connection, project: int, mounts: Path | None, slug: str) -> GoldenQuestions:
    """Return the questions that are golden now."""
    return golden_questions(contract_of(connection, project, mounts), project_file(mounts, slug).redact)


def candidate_of(row: RowMapping, golden: GoldenQuestions) -> Candidate:
    """Return what is told of a candidate."""
    same = ("id", "query", "state", "reason", "asked", "created_at", "decided_by", "decided_at")
    accepted = row["row"] if row["state"] == "accepted" else None
    return Candidate(
        golden_id=golden.golden_id(row),
        row=None if accepted is None else msgspec.json.decode(accepted),
        **{name: row[name] for name in same},
    )


@get("/projects/{slug:str}/candidates.jsonl", access=READ, sync_to_thread=True)
def download_candidates(principal: Asker, database: Db, mounts: Mounts, slug: Slug) -> Response[bytes]:
    """Return the golden rows of accepted candidates that are not golden yet, the first accepted one first."""
    with database.read() as connection:
        project = require_project(connection, principal, slug)
        golden = golden_of_project(connection, project, mounts, slug)
        lines = [*rows_to_download(connection, project, golden)]
    headers = {"Content-Disposition": 'attachment; filename="candidates.jsonl"'}
    return Response(b"".join(lines), media_type=JSON_LINES, headers=headers)


def rows_to_download(connection: Connection, project: int, golden: GoldenQuestions) -> Iterator[bytes]:
    """Yield the rows of accepted candidates that are not golden yet, each as a line, as far as a download goes."""
    size = 0
    for candidate in accepted_rows(connection, project):
        if not candidate["row"] or golden.golden_id(candidate) is not None:
            continue
        line = candidate["row"].encode() + b"\n"
        size += len(line)
        if size > bounds.CANDIDATES_FILE:
            return
        yield line


@post("/candidates/{number:int}", access=EDIT, status_code=200, sync_to_thread=True)
def post_decision(
    *,
    principal: Asker,
    database: Db,
    author: By,
    mounts: Mounts,
    number: Number,
    data: JSONBody[CandidateDecision],
) -> Candidate:
    """Accept a question as a golden row, or reject it; or take that back."""
    if data.decision != "accept" and data.row is not None:
        raise InputError([f"row: only an accepted candidate has one, and the decision is {data.decision}"])
    return decided_candidate(
        database, mounts, number, data.decision, data.row or {}, principal=principal, author=author
    )


def decided_candidate(
    database: Database,
    mounts: Path | None,
    number: int,
    decision: Decision,
    row: Mapping[str, Any],
    *,
    principal: Principal,
    author: Author,
    slug: str | None = None,
) -> Candidate:
    """Decide on a candidate, of a project if one is named, and return it; answers 404, 409 or 422."""
    with database.read() as connection:
        candidate = require_candidate(connection, principal, number, slug)
        contract = contract_of(connection, candidate["project_id"], mounts)
        golden = golden_questions(contract, project_file(mounts, candidate["slug"]).redact)
        if decision == "accept" and candidate["state"] != "new":  # which matters more than what is wrong with a row
            raise decided_already(connection, number)
        if decision == "accept" and row.get("id") is None:
            row = {**row, "id": free_id(connection, candidate, golden)}
    decided = Decided(state="rejected" if decision == "reject" else "new")
    if decision == "accept":
        whole = golden_row(row, candidate["query"], contract, golden)
        text = msgspec.json.encode(whole).decode()
        decided = Decided(state="accepted", row=text, golden_id=as_id(whole["id"]))

    def job(connection: Connection) -> RowMapping:
        decide(connection, candidate, decided, author)
        return require_candidate(connection, principal, number, slug)

    return candidate_of(database.write(job), golden)


def free_id(connection: Connection, candidate: RowMapping, golden: GoldenQuestions) -> str:
    """Return an id for a candidate that neither a golden query nor another accepted candidate has."""
    name = suggested_id(candidate["query"])
    if name in golden.ids or accepted_ids(connection, candidate["project_id"], [name]):
        return f"{name}_{candidate['id']}"
    return name


def require_candidate(connection: Connection, principal: Principal, number: int, slug: str | None = None) -> RowMapping:
    """Return a candidate, of a project if one is named; answers 404 if there is none that the principal sees."""
    row = candidate_numbered(connection, number) if abs(number) <= BIGINT else None
    if row is None or slug not in {None, row["slug"]} or project_id(connection, row["slug"], principal) is None:
        raise ProblemError(404, "there is no such candidate, or the key may not see it")
    return row


ROUTES = (list_candidates, download_candidates, post_decision)
