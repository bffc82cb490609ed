"""Stores interactions of several requests in one transaction: with their candidates, and what is counted of a day.

Rows of projects are locked first and in the order of their ids, so that services that store at once wait for each other
and never in a circle.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct
from sqlalchemy import (
    ColumnElement,
    Connection,
    Exists,
    Table,
    Text,
    and_,
    bindparam,
    case,
    cast,
    column,
    exists,
    func,
    literal_column,
    not_,
    or_,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.dml import ReturningInsert

from ragcontract.core import bounds
from ragcontract.service.database import DAY, SQLITE
from ragcontract.service.production.candidates import number_in_state
from ragcontract.service.production.flags import SAMPLED, names_of
from ragcontract.service.production.incoming import Stored
from ragcontract.service.production.project_settings import ProjectSettings
from ragcontract.service.tables import candidates, interactions, projects, tallies

Insert: TypeAlias = "sqlite.Insert | postgresql.Insert"
Name: TypeAlias = tuple[int, str]  # the project of an interaction, and what its sender calls it
RECEIVED, DRAWN, GOLDEN, NOT_QUEUED = "received", "sampled", "golden", "not_queued"  # what is counted of a day

NO_RESULTS = "[]"  # as they are stored
_COLUMNS = [column.name for column in interactions.c if column.name != "id"]
_RETURNED = interactions.c.project_id, interactions.c.external_id, interactions.c.id


class Batch(Struct, frozen=True, kw_only=True):
    """The interactions of a request."""

    settings: ProjectSettings
    items: Sequence[Stored]


class Counts(NamedTuple):
    """What became of the interactions of a request."""

    accepted: int
    duplicates: int


def store(connection: Connection, batches: Sequence[Batch], now: int) -> list[Counts]:
    """Store what is not stored yet, and return what became of each batch."""
    settings = {batch.settings.project: batch.settings for batch in batches}
    if connection.dialect.name != SQLITE:  # which has one writer
        lock = select(projects.c.id).where(projects.c.id.in_(settings)).order_by(projects.c.id)
        connection.execute(lock.with_for_update(key_share=True)).all()
    first: dict[Name, tuple[int, Stored]] = {}
    for place, batch in enumerate(batches):
        for item in batch.items:
            first.setdefault((batch.settings.project, item.row["external_id"]), (place, item))
    ids = _insert(connection, [item.row for _, item in first.values()])
    accepted = Counter(place for name, (place, _) in first.items() if name in ids)
    of_project: dict[int, list[Stored]] = defaultdict(list)
    for name in sorted(ids, key=lambda name: ids[name]):
        of_project[name[0]].append(first[name][1])
    for number, items in of_project.items():
        tally = Counter((item.day, RECEIVED) for item in items)
        tally += _add_candidates(connection, settings[number], [item for item in items if item.is_drawn], ids, now)
        _count(connection, number, tally)
        _measure_again(connection, number, min(item.day for item in items), now)
    return [Counts(accepted[place], len(batch.items) - accepted[place]) for place, batch in enumerate(batches)]


def _insert(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> Mapping[Name, int]:
    """Store what is new, and return its ids. What is stored already is not looked for before.

    Postgres would look through all of a project until its statistics tell how many rows it has. It gets all rows as one
    JSON text: a statement with thousands of values takes longer to read than to run, and arrays of texts to write.
    """
    if not rows:
        return {}
    if connection.dialect.name == SQLITE:
        result = connection.execute(_insert_rows(), [{name: row.get(name) for name in _COLUMNS} for row in rows])
    else:
        result = connection.execute(_insert_json(), {"rows": msgspec.json.encode(rows).decode()})
    return {(row.project_id, row.external_id): row.id for row in result}


@cache
def _insert_rows() -> "ReturningInsert[Any]":
    return sqlite.insert(interactions).on_conflict_do_nothing().returning(*_RETURNED)


@cache
def _insert_json() -> "ReturningInsert[Any]":
    rows = func.json_to_recordset(cast(bindparam("rows", type_=Text), postgresql.JSON))
    columns = [column(name, interactions.c[name].type) for name in _COLUMNS]
    source = rows.table_valued(*columns).render_derived(with_types=True)
    insert = postgresql.insert(interactions).from_select(_COLUMNS, select(*source.c))
    return insert.on_conflict_do_nothing().returning(*_RETURNED)


def _add_candidates(
    connection: Connection, settings: ProjectSettings, drawn: Sequence[Stored], ids: Mapping[Name, int], now: int
) -> "Counter[tuple[int, str]]":
    """Make questions candidates, each once; return what is counted of them."""
    tally = Counter((item.day, DRAWN) for item in drawn)
    tally += Counter((item.day, GOLDEN) for item in drawn if item.row["query_sha"] in settings.golden)
    questions: dict[str, list[Stored]] = defaultdict(list)
    for item in drawn:
        if item.row["query_sha"] not in settings.golden:
            questions[item.row["query_sha"]].append(item)
    if not questions:
        return tally
    waiting, known = _known(connection, settings.project, [*questions])
    room = max(0, bounds.CANDIDATES_WAITING - waiting)
    left_out = {*[sha for sha in questions if sha not in known][room:]}
    tally += Counter((item.day, NOT_QUEUED) for sha in left_out for item in questions[sha])
    rows = [_candidate(settings.project, items, ids, now) for sha, items in questions.items() if sha not in left_out]
    if rows:
        connection.execute(_add_or_ask_again(connection.dialect.name), rows)
    return tally


def _known(connection: Connection, project: int, digests: Sequence[str]) -> tuple[int, frozenset[str]]:
    """Return how many candidates wait, and which questions are candidates already; in one statement."""
    waiting = select(number_in_state(project, "new").label("number")).subquery()
    of_project = candidates.c.project_id == project, candidates.c.query_sha.in_(digests)
    query = select(waiting.c.number, candidates.c.query_sha).outerjoin_from(waiting, candidates, and_(*of_project))
    rows = connection.execute(query).all()
    return rows[0].number, frozenset(row.query_sha for row in rows if row.query_sha is not None)


@cache
def _add_or_ask_again(dialect: str) -> Insert:
    """Return the statement that adds candidates, and counts those that are asked again.

    What is shown of a candidate that waits is its first interaction that has results, because people choose among them.
    """
    insert = _insert_into(dialect, candidates)
    is_replaced = and_(
        candidates.c.state == "new",
        not_(_has_results("candidates.interaction_id")),
        _has_results("excluded.interaction_id"),
    )
    changed: dict[str, ColumnElement[Any]] = {"asked": candidates.c.asked + insert.excluded.asked}
    for name in ("query", "interaction_id"):
        changed[name] = case((is_replaced, insert.excluded[name]), else_=candidates.c[name])
    return insert.on_conflict_do_update(index_elements=["project_id", "query_sha"], set_=changed)


def _has_results(number: str) -> Exists:
    return exists().where(interactions.c.id == literal_column(number), interactions.c.results != NO_RESULTS)


def _candidate(project: int, items: Sequence[Stored], ids: Mapping[Name, int], now: int) -> dict[str, Any]:
    row = next((item.row for item in items if item.row["results"] not in {None, NO_RESULTS}), items[0].row)
    return {
        "project_id": project,
        "query_sha": row["query_sha"],
        "query": row["query"],
        "interaction_id": ids[project, row["external_id"]],
        "reason": ", ".join(names_of(items[0].row["flags"])) or SAMPLED,
        "state": "new",
        "created_at": now,
        "asked": len(items),
    }


def _count(connection: Connection, project: int, tally: "Counter[tuple[int, str]]") -> None:
    rows = [
        {"project_id": project, "day": day, "name": name, "number": number}
        for (day, name), number in sorted(tally.items())
    ]
    connection.execute(_add_to_tallies(connection.dialect.name), rows)


@cache
def _add_to_tallies(dialect: str) -> Insert:
    insert = _insert_into(dialect, tallies)
    added = tallies.c.number + insert.excluded.number
    return insert.on_conflict_do_update(index_elements=[*tallies.primary_key], set_={"number": added})


def _insert_into(dialect: str, table: Table) -> Insert:
    return sqlite.insert(table) if dialect == SQLITE else postgresql.insert(table)


def _measure_again(connection: Connection, project: int, day: int, now: int) -> None:
    """Note the first day that is over and has changed."""
    if day >= now - now % DAY:
        return
    later = or_(projects.c.unmeasured_from.is_(None), projects.c.unmeasured_from > day)
    connection.execute(update(projects).where(projects.c.id == project, later).values(unmeasured_from=day))
