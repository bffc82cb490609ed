"""The routes of production: what was asked, and what monitors say of it day by day."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Annotated, Any

import msgspec
from litestar import get
from litestar.params import FromQuery, QueryParameter
from msgspec import Meta, Struct
from sqlalchemy import RowMapping

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.safe_text import visible
from ragcontract.service.database import Milliseconds, now_ms
from ragcontract.service.production.flags import names_of
from ragcontract.service.production.interaction_list import Search, Wanted, interactions_before
from ragcontract.service.production.monitor_days import MonitorSeries, monitors_of
from ragcontract.service.web.authentication import READ
from ragcontract.service.web.parameters import (
    DEFAULT_LIMIT,
    Asker,
    Cursor,
    Db,
    Limit,
    Page,
    Slug,
    Whole,
    cursor_of,
    position_of,
    require_project,
)


class StoredInteraction(Struct, frozen=True, kw_only=True):
    """A question that was asked, and its answer, without what was taken out of texts."""

    id: Annotated[str, Meta(description="As it was sent, or the digest of the content.")]
    number: Annotated[int, Meta(description="The service's own id of it.")]
    query: str
    asked_at: Milliseconds
    received_at: Milliseconds
    source: str
    response: str | None
    error: str | None
    results: Annotated[Sequence[dict[str, Any]] | None, Meta(description="Best first, with `doc_id`.")]
    latency_ms: float | None
    confidence: float | None
    feedback: Annotated[int | None, Meta(description="-1, 0 or 1.")]
    flags: Sequence[str]
    tags: Sequence[str]


class MonitoredDay(Struct, frozen=True, kw_only=True):
    """A monitor on a day."""

    day: Annotated[str, Meta(description="Such as 2026-11-28, UTC.")]
    n: Annotated[int, Meta(description="How many interactions have what it measures.")]
    value: float
    z: Annotated[float | None, Meta(description="Its distance from like days; null if that cannot be told.")]
    alarm: Annotated[int, Meta(description="1 or -1 on a day on which it alarms: above or below the usual; else 0.")]


class MonitorNow(Struct, frozen=True, kw_only=True):
    """A monitor of production over some days."""

    monitor: str
    label: str
    unit: Annotated[str, Meta(description="Of its values; a share is from 0 to 1.")]
    alarm_since: Annotated[str | None, Meta(description="The first day of the alarm that stands; null without one.")]
    why: Annotated[str | None, Meta(description="What the alarm says, or why nothing can be told.")]
    accepted_from: Annotated[str | None, Meta(description="The day from which on somebody accepted the level.")]
    days: Annotated[Sequence[MonitoredDay], Meta(description="Those with a value, the oldest first.")]


@get("/projects/{slug:str}/interactions", access=READ, sync_to_thread=True)
def list_interactions(
    *,
    principal: Asker,
    database: Db,
    slug: Slug,
    flag: Annotated[Wanted | None, QueryParameter(description="`flagged` for those with any flag.")] = None,
    source: FromQuery[str | None] = None,
    day: Annotated[str | None, QueryParameter(description="On which it was asked, such as 2026-11-28, UTC.")] = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Page[StoredInteraction]:
    """Return what was asked in production, the newest first.

    With flag and source, a page may have fewer items, or none, and a `next`: it was searched, and older ones were not.
    """
    wanted = {"flag": flag, "source": source, "day": None if day is None else start_of(day)}
    before = position_of(cursor, tuple[Whole, Whole])
    with database.read() as connection:
        project = require_project(connection, principal, slug)
        search = interactions_before(connection, project, **wanted, before=before, limit=limit)  # type: ignore[arg-type]
    return interactions_page(search, limit)


def interactions_page(search: Search, limit: int) -> Page[StoredInteraction]:
    """Return a page of interactions, with where older ones begin."""
    rows = search.rows[:limit]
    last = (rows[-1]["asked_at"], rows[-1]["id"]) if len(search.rows) > limit else search.searched
    return Page(items=[_interaction(row) for row in rows], next=None if last is None else cursor_of(last))


def _interaction(row: RowMapping) -> StoredInteraction:
    same = ("query", "asked_at", "received_at", "source", "response", "error", "latency_ms", "confidence", "feedback")
    return StoredInteraction(
        id=row["external_id"],
        number=row["id"],
        results=_json(row["results"], list[dict[str, Any]] | None),
        flags=names_of(row["flags"]),
        tags=_json(row["tags"], list[str] | None) or [],
        **{name: row[name] for name in same},
    )


def _json(text: str | None, kind: Any) -> Any:
    """Return what is stored as JSON; None if it is of another kind."""
    try:
        return None if text is None else msgspec.json.decode(text, type=kind)
    except msgspec.MsgspecError:
        return None


def start_of(day: str) -> int:
    """Return when a day begins; raises InputError if it is none."""
    try:
        parsed = date.fromisoformat(day.strip())
    except ValueError:
        raise InputError([f"day: {visible(day[: bounds.NAME])!r} is not a day such as 2026-11-28"]) from None
    return int(datetime(parsed.year, parsed.month, parsed.day, tzinfo=UTC).timestamp()) * 1000


def date_of(day: int) -> str:
    """Return a day as programs write it."""
    return datetime.fromtimestamp(day / 1000, UTC).date().isoformat()


@get("/projects/{slug:str}/monitors", access=READ, sync_to_thread=True)
def list_monitors(
    *,
    principal: Asker,
    database: Db,
    slug: Slug,
    days: Annotated[int | None, QueryParameter(ge=1, le=bounds.SERVICE_DAYS)] = None,
) -> list[MonitorNow]:
    """Return what monitors say of production, day by day, and which alarms stand."""
    with database.read() as connection:
        project = require_project(connection, principal, slug)
        known = monitors_of(connection, project, days or bounds.MONITOR_DAYS, now_ms())
    return [_monitor(series) for series in known]


def _monitor(series: MonitorSeries) -> MonitorNow:
    alarm, accepted = series.alarm, series.accepted
    return MonitorNow(
        monitor=series.monitor.name,
        label=series.monitor.label,
        unit=series.monitor.unit,
        alarm_since=None if alarm is None else date_of(alarm.since),
        why=alarm.sentence if alarm else series.why_untold,
        accepted_from=None if accepted is None else date_of(accepted.day),
        days=[
            MonitoredDay(day=date_of(day.day), n=day.n, value=day.value, z=day.z, alarm=day.alarm)
            for day in series.days
        ],
    )


ROUTES = (list_interactions, list_monitors)
