"""The routes by which applications send what they were asked in production, and by which it is deleted.

What is answered with 200 is in the database, committed.
"""

import asyncio
import zlib
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, NamedTuple

from litestar import Request, delete, post
from litestar.concurrency import sync_to_thread
from litestar.di import NamedDependency
from litestar.params import QueryParameter
from msgspec import Meta, Struct

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.service.database import index_key, now_ms
from ragcontract.service.production import deletion
from ragcontract.service.production.incoming import TIME, NotJsonError, Prepared, Rejected, prepared, time_of
from ragcontract.service.production.interaction_writer import InteractionWriter
from ragcontract.service.production.project_settings import ProjectSettings, SettingsOfProjects
from ragcontract.service.production.storing import Batch
from ragcontract.service.web.authentication import ADMIN, INGEST, header
from ragcontract.service.web.monitoring import Monitoring
from ragcontract.service.web.parameters import NO_PROJECT, Asker, By, Db, Slug, require_project
from ragcontract.service.web.problem_details import ProblemError
from ragcontract.service.web.request_limits import BODY, Body, too_large

JSON, GZIP = "application/json", "gzip"
_GZIP_WINDOW = 31  # zlib's number for gzip
_EPOCH, _LAST = datetime.fromtimestamp(0, UTC), 253_402_300_799_999  # the end of the year 9999
_AT_ONCE = 16 << 10  # bytes; a body of this size takes no longer than handing it to a thread


class Ingestion(NamedTuple):
    """What stores interactions, and what is known of their projects."""

    settings: SettingsOfProjects
    writer: InteractionWriter
    monitoring: Monitoring
    large: asyncio.Semaphore  # of large bodies that are read at once; while others wait, they take no thread


class Deleted(Struct, frozen=True, kw_only=True):
    """How many interactions were deleted."""

    deleted: int


class Ingested(Struct, frozen=True, kw_only=True):
    """What became of the interactions of a request."""

    accepted: Annotated[int, Meta(description="Stored.")]
    duplicates: Annotated[int, Meta(description="Not stored, because one with the same id is.")]
    rejected: Annotated[list[Rejected], Meta(description="Not stored, and not to be sent again: the first 50.")]
    more_rejected: Annotated[int, Meta(description="How many further ones there are.")] = 0


@post(
    "/projects/{slug:str}/interactions",
    access=INGEST,
    status_code=200,
    operation_id="add_interactions",
)
async def add_interactions(
    request: Request[Any, Any, Any],
    ingestion: NamedDependency[Ingestion],  # the only one: several are looked up in tasks, which takes longer
    slug: Slug,
) -> Ingested:
    """Store interactions: questions of production with their answers. The answer is 200 when they are committed.

    The body is `{"interactions": […]}`, also as gzip. Each is checked by itself; 422 if nothing can be stored.
    """
    ingestion.writer.check_room()
    if request.content_type[0] != JSON:
        raise ProblemError(415, f"expected the header Content-Type: {JSON}")
    settings = ingestion.settings.fresh(slug) or await sync_to_thread(ingestion.settings.of, slug)
    if settings is None or request.user.project_id not in {None, settings.project}:
        raise ProblemError(404, NO_PROJECT)
    data = await _unpacked(request)
    if len(data) < _AT_ONCE:
        ready = _prepared(data, settings)
    else:
        async with ingestion.large:
            ready = await sync_to_thread(_prepared, data, settings)
    del data
    rejected = len(ready.rejected) + ready.more_rejected
    counts = await asyncio.wrap_future(ingestion.writer.submit(Batch(settings=settings, items=ready.stored)))
    ingestion.monitoring.ingested(accepted=counts.accepted, duplicate=counts.duplicates, rejected=rejected)
    return Ingested(
        accepted=counts.accepted,
        duplicates=counts.duplicates,
        rejected=[*ready.rejected],
        more_rejected=ready.more_rejected,
    )


def _prepared(data: bytes, settings: ProjectSettings) -> Prepared:
    try:
        return prepared(data, settings, now_ms())
    except NotJsonError:
        raise ProblemError(400, "the body is not JSON") from None


async def _unpacked(request: "Request[Any, Any, Any]") -> bytes:
    """Return the body; answers 400, 413 or 415."""
    encoding = (header(request.scope, b"content-encoding") or "identity").strip().lower()
    if encoding == "identity":
        return await request.body()
    if encoding != GZIP:
        raise ProblemError(415, f"expected the header Content-Encoding: {GZIP}, or none")
    body: Body = request.scope[BODY]  # type: ignore[literal-required]
    inflate, parts, size, packed = zlib.decompressobj(_GZIP_WINDOW), list[bytes](), 0, 0
    async for chunk in request.stream():
        packed += len(chunk)
        try:
            part = inflate.decompress(chunk, bounds.INTERACTIONS_UNPACKED + 1 - size)
        except zlib.error:
            raise ProblemError(400, f"the body is not {GZIP}") from None
        size += len(part)
        body.unpacked(len(part))
        if size > bounds.INTERACTIONS_UNPACKED:
            raise too_large(bounds.INTERACTIONS_UNPACKED)
        parts.append(part)
    if not inflate.eof or inflate.unused_data:
        raise ProblemError(400, f"the body is not {GZIP}, or not all of it")
    if size > packed * bounds.UNPACKED_TIMES:
        raise ProblemError(413, f"the body is more than {bounds.UNPACKED_TIMES} times larger when it is unpacked")
    return b"".join(parts)


@delete("/projects/{slug:str}/interactions", access=ADMIN, status_code=200, sync_to_thread=True)
def delete_interactions(
    *,
    principal: Asker,
    author: By,
    database: Db,
    ingestion: NamedDependency[Ingestion],
    slug: Slug,
    number: Annotated[str | None, QueryParameter(name="id", description="What its sender calls it.")] = None,
    user: Annotated[str | None, QueryParameter(description="All of a user, with the questions of candidates.")] = None,
    before: Annotated[
        str | None, QueryParameter(description="What was asked earlier: milliseconds since 1970, or ISO 8601.")
    ] = None,
) -> Deleted:
    """Delete interactions for good: one by its `id`, all of a `user`, or all asked `before` a time.

    The audit log says how many, and not of whom.
    """
    with database.read() as connection:
        project = require_project(connection, principal, slug)
    settings = ingestion.settings.of(slug)
    if settings is None:
        raise ProblemError(404, NO_PROJECT)
    if sum(each is not None for each in (number, user, before)) != 1:
        raise InputError(["expected exactly one of id, user and before"])
    by: dict[str, Any]
    if number is not None:
        which, by = "by its id", {"external_id": index_key(number)}
    elif user is not None:
        which, by = "of a user", {"user_sha": settings.user_digest(user)}
    else:
        time = _time(before or "")
        which, by = f"asked before {_EPOCH + timedelta(milliseconds=time):%Y-%m-%d %H:%M}", {"before": time}
    return Deleted(deleted=deletion.delete_interactions(database, slug, project, which, author, **by))


def _time(text: str) -> int:
    try:
        time = time_of(text)
    except ValueError:
        raise InputError([f"before: expected {TIME}"]) from None
    return min(max(time, 0), _LAST)


ROUTES = (add_interactions, delete_interactions)
