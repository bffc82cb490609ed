"""The routes of a store of entries and blobs, which the history commands use as `https://…`."""

from itertools import accumulate
from typing import Annotated, Any

import msgspec
from litestar import Request, Response, get, post, put
from litestar.openapi import ResponseSpec
from litestar.params import FromPath, FromQuery, QueryParameter, RawBody
from msgspec import Meta, Struct
from msgspec.structs import replace
from sqlalchemy import Connection

from ragcontract.core import bounds
from ragcontract.history.entry import EntryId, is_folder_name
from ragcontract.service import audit
from ragcontract.service.accounts import Principal
from ragcontract.service.blobs import Kind, Sent, put_blob, result_sets_after, visible_blob
from ragcontract.service.database import Database, now_ms
from ragcontract.service.database_store import DatabaseStore, Recorded, record, recording_of, report_of, with_rules
from ragcontract.service.web.authentication import READ, RECORD
from ragcontract.service.web.parameters import (
    NO_PROJECT,
    Asker,
    Background,
    By,
    Cursor,
    Db,
    Page,
    Slug,
    page_of,
    position_of,
    require_project,
)
from ragcontract.service.web.problem_details import ProblemError

BYTES, JSON = "application/octet-stream", "application/json"
Digest = Annotated[str | None, QueryParameter(pattern="^[0-9a-f]{64}$", description="The SHA-256 of a blob.")]


class Months(Struct, frozen=True, kw_only=True):
    """The months in which a project has entries."""

    months: Annotated[list[str], Meta(description="Such as 2026-11, the newest first.")]


class Ids(Struct, frozen=True, kw_only=True):
    """The ids of entries, the newest first, and where the next part begins: null at the end."""

    ids: list[str]
    next: str | None = None


class Content(Struct, frozen=True, kw_only=True):
    """An entry."""

    id: str
    content: Annotated[str, Meta(description="The entry byte by byte, in UTF-8.")]


class Contents(Struct, frozen=True, kw_only=True):
    """The entries that were asked for; what is gone is in neither list."""

    items: list[Content]
    rest: Annotated[list[str], Meta(description="What was left out, because the answer would be too large.")]


class Added(Struct, frozen=True, kw_only=True):
    """A run that is stored."""

    id: Annotated[int, Meta(description="The id of the run.")]
    key: Annotated[str, Meta(description="The id of its entry.")]


class StoredBlob(Struct, frozen=True, kw_only=True):
    """A blob that is stored."""

    sha256: str


@get("/projects/{slug:str}/months", access=READ, sync_to_thread=True)
def list_months(principal: Asker, database: Db, slug: Slug) -> Months:
    """Return the months in which a project has entries."""
    return Months(months=_store(database, principal, slug).months(slug))


@get("/projects/{slug:str}/entries", access=READ, sync_to_thread=True)
def list_entries(
    principal: Asker,
    database: Db,
    slug: Slug,
    months: Annotated[list[str], QueryParameter(name="month")],
    cursor: Cursor = None,
) -> Ids:
    """Return the ids of the entries of some months."""
    before, store = position_of(cursor, str), _store(database, principal, slug)
    ids = store.ids_before(slug, months, before=before, limit=bounds.ENTRIES + 1)
    page = page_of([each.id for each in ids], bounds.ENTRIES, str, str)
    return Ids(ids=page.items, next=page.next)


@get("/projects/{slug:str}/entries/contents", access=READ, sync_to_thread=True)
def read_entries(
    principal: Asker,
    database: Db,
    slug: Slug,
    ids: Annotated[list[str], QueryParameter(name="id", max_items=bounds.ENTRIES_AT_ONCE)],
) -> Contents:
    """Return entries as they were sent."""
    stored = _store(database, principal, slug).read(slug, [*filter(None, map(EntryId.of, dict.fromkeys(ids)))])
    sizes = accumulate(map(len, stored.values()))
    fits = [key for key, size in zip(stored, sizes, strict=True) if size <= bounds.ENTRIES_ANSWER]
    items = [Content(id=key, content=stored[key].decode()) for key in fits]
    return Contents(items=items, rest=[*stored][len(fits) :])


@post(
    "/projects/{slug:str}/entries",
    access=RECORD,
    sync_to_thread=True,
    request_max_body_size=bounds.ENTRY,
    responses={200: ResponseSpec(Added, description="It was stored before.", generate_examples=False)},
)
def add_entry(
    *,
    request: Request[Principal, Any, Any],
    principal: Asker,
    author: By,
    database: Db,
    trends: Background,
    slug: Slug,
    body: RawBody,
    report: Digest = None,
    golden: Digest = None,
    default_branch: Annotated[
        bool, QueryParameter(description="The entry is of the repository's default branch.")
    ] = False,
    without_results: Annotated[
        bool, QueryParameter(description="Its result set was deleted before it was copied.")
    ] = False,
) -> Response[Added]:
    """Store an entry; its blobs were sent before. The project is created unless it exists."""
    if not is_folder_name(slug):
        raise ProblemError(404, NO_PROJECT)
    if principal.project_id is not None:
        with database.read() as connection:
            require_project(connection, principal, slug)
    if request.content_type[0] != JSON:
        raise ProblemError(415, f"an entry is sent as {JSON}")
    if not _is_json(body):
        raise ProblemError(400, "the body is not JSON")
    recording = replace(
        recording_of(slug, body),
        report=report,
        golden=golden,
        default_branch=default_branch,
        without_results=without_results,
    )
    with database.read() as connection:
        content = report_of(connection, recording, principal)
    recording = with_rules(recording, content)

    def job(connection: Connection) -> Recorded:
        recorded = record(connection, recording, principal, author.at)
        if recorded.added == "added":
            audit.record(connection, author, "run.add", f"run:{recorded.run_id}", f"{slug}: {recording.entry.id}")
        return recorded

    recorded = database.write(job)
    trends.note(recorded.project_id)
    status = 201 if recorded.added == "added" else 200
    return Response(Added(id=recorded.run_id, key=recording.entry.id), status_code=status)


def _store(database: Database, principal: Principal, slug: str) -> DatabaseStore:
    """Return the store of a project that the principal sees; answers 404 without the project."""
    with database.read() as connection:
        require_project(connection, principal, slug)
    return DatabaseStore(database, principal)


def _is_json(body: bytes) -> bool:
    try:
        msgspec.json.decode(body, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


@get("/blobs", access=READ, sync_to_thread=True)
def list_blobs(principal: Asker, database: Db, cursor: Cursor = None) -> Page[str]:
    """Return the digests of all result sets of the projects that the key may see."""
    with database.read() as connection:
        after = position_of(cursor, str) or ""
        digests = result_sets_after(connection, principal, after, bounds.PAGE_DIGESTS + 1)
    return page_of(digests, bounds.PAGE_DIGESTS, str, str)


@get("/blobs/{sha256:str}", access=READ, sync_to_thread=True, media_type=BYTES)
def read_blob(principal: Asker, database: Db, sha256: FromPath[str]) -> Response[bytes]:
    """Return the bytes of a blob that a run of a visible project has."""
    with database.read() as connection:
        data = visible_blob(connection, sha256, principal)
    if data is None:
        raise ProblemError(404, "no run that the key may see has this blob")
    return Response(data, media_type=BYTES)


@put(
    "/blobs/{sha256:str}",
    access=RECORD,
    sync_to_thread=True,
    request_max_body_size=bounds.BLOB,
    responses={201: ResponseSpec(StoredBlob, description="It is new.", generate_examples=False)},
)
def send_blob(
    principal: Asker, database: Db, sha256: FromPath[str], kind: FromQuery[Kind], body: RawBody
) -> Response[StoredBlob]:
    """Store a blob; who has sent all of it may name it in an entry."""
    sent = Sent.of(kind, body, sha256)

    def job(connection: Connection) -> bool:
        return put_blob(connection, sent, sender=principal.actor, now=now_ms())

    return Response(StoredBlob(sha256=sent.sha256), status_code=201 if database.write(job) else 200)


ROUTES = (list_months, list_entries, read_entries, add_entry, list_blobs, read_blob, send_blob)
