"""Finds stored interactions, the newest first, by flag, source and day, without reading more than it returns.

A flag or a source alone has an index. For both at once, one of them is searched for the other: that is bounded, and
says where to go on.
"""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, Select, TextClause, column, func, select, true, tuple_

from ragcontract.core import bounds
from ragcontract.service.database import DAY, Rows, storable
from ragcontract.service.tables import FLAGGED, NEWEST_ASKED, interactions

Wanted: TypeAlias = Literal["flagged", "error", "empty", "slow", "low_confidence", "negative_feedback"]
Position: TypeAlias = tuple[int, int]  # when it was asked, and its id
COLUMNS = [column for column in interactions.c if column.name not in {"query_sha", "user_sha"}]
AT = (interactions.c.asked_at, interactions.c.id)
Conditions: TypeAlias = Sequence["ColumnElement[bool] | TextClause"]


class Search(Struct, frozen=True, kw_only=True):
    """Interactions, one more than were wanted if there are more; and where a search that ended early goes on."""

    rows: Rows
    searched: Position | None = None  # the last one that was looked at, if the search ended before its end


def interactions_before(
    connection: Connection,
    project: int,
    *,
    flag: Wanted | None = None,
    source: str | None = None,
    day: int | None = None,
    before: Position | None = None,
    limit: int,
) -> Search:
    """Return one interaction more than ``limit``, the newest first; ``day`` is the time at which one begins."""
    within: list[ColumnElement[bool] | TextClause] = [interactions.c.project_id == project]
    if day is not None:
        within += [interactions.c.asked_at >= day, interactions.c.asked_at < day + DAY]
    if before is not None:
        within.append(tuple_(*AT) < before)
    is_flagged = [] if flag is None else [FLAGGED[flag]]
    is_of_source = [] if source is None else [column("source") == storable(source)]  # of whatever has it
    if is_flagged and is_of_source:
        if _few(connection, [*within, *is_of_source]):
            return _searched(connection, [*within, *is_of_source], is_flagged, limit)
        return _searched(connection, [*within, *is_flagged], is_of_source, limit)
    newest = _newest([*within, *is_flagged, *is_of_source]).limit(limit + 1)
    return Search(rows=connection.execute(newest).mappings().all())


def _newest(within: Conditions, columns: Sequence["ColumnElement[Any]"] = COLUMNS) -> "Select[Any]":
    return select(*columns).where(*within).order_by(*NEWEST_ASKED)


def _few(connection: Connection, within: Conditions) -> bool:
    """Return whether so few interactions fit that all of them can be searched."""
    some = _newest(within, AT).limit(bounds.SCANNED_INTERACTIONS + 1).subquery()
    number: int = connection.execute(select(func.count()).select_from(some)).scalar_one()
    return number <= bounds.SCANNED_INTERACTIONS


def _searched(connection: Connection, within: Conditions, wanted: Conditions, limit: int) -> Search:
    """Search the newest interactions of some for what is wanted."""
    some = _newest(within).limit(bounds.SCANNED_INTERACTIONS).subquery()
    # Both databases keep the order of what is searched; if they were asked to, SQLite would sort all of it.
    newest = select(some).where(*wanted).limit(limit + 1)
    rows = connection.execute(newest).mappings().all()
    if len(rows) > limit:
        return Search(rows=rows)
    last = connection.execute(_newest(within, AT).offset(bounds.SCANNED_INTERACTIONS - 1).limit(1)).one_or_none()
    return Search(rows=rows, searched=None if last is None else (last.asked_at, last.id))


def sources_of(connection: Connection, project: int) -> list[str]:
    """Return the sources of a project's interactions, a step of an index each; no more than a page lists."""
    sources = list[str]()
    while len(sources) < bounds.INTERACTION_SOURCES:
        later = interactions.c.source > sources[-1] if sources else true()
        query = select(interactions.c.source).where(interactions.c.project_id == project, later)
        source = connection.execute(query.order_by(interactions.c.source).limit(1)).scalar()
        if source is None:
            break
        sources.append(source)
    return sources
