"""Stores interactions of several requests in one transaction: with their candidates, and what is counted of a day.

Rows of projects are locked first and in the order of their ids, so that services that store at once wait for each other
and never in a circle.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct
from sqlalchemy import Connection, bindparam, func, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from ragcontract.core import bounds
from ragcontract.service.database import DAY, SQLITE
from ragcontract.service.production.flags import SAMPLED, names_of
from ragcontract.service.production.incoming import Stored
from ragcontract.service.production.project_settings import ProjectSettings
from ragcontract.service.tables import candidates, interactions, projects, tallies

RECEIVED, DRAWN, GOLDEN, NOT_QUEUED = "received", "sampled", "golden", "not_queued"  # what is counted of a day


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
    of_project: dict[int, list[Stored]] = defaultdict(list)
    known: dict[int, set[str]] = {}
    counts = []
    numbers = sorted({batch.settings.project for batch in batches})
    if connection.dialect.name != SQLITE:  # which has one writer
        lock = select(projects.c.id).where(projects.c.id.in_(numbers)).order_by(projects.c.id)
        connection.execute(lock.with_for_update(key_share=True)).all()
    for number in numbers:
        ids = [item.row["external_id"] for batch in batches if batch.settings.project == number for item in batch.items]
        known[number] = _stored_ids(connection, number, ids)
    for batch in batches:
        number = batch.settings.project
        before = len(of_project[number])
        for item in batch.items:
            if item.row["external_id"] not in known[number]:
                known[number].add(item.row["external_id"])
                of_project[number].append(item)
        accepted = len(of_project[number]) - before
        counts.append(Counts(accepted, len(batch.items) - accepted))
    if rows := [item.row for items in of_project.values() for item in items]:
        connection.execute(interactions.insert(), rows)
    settings = {batch.settings.project: batch.settings for batch in batches}
    for number, items in of_project.items():
        if items:
            tally = Counter((item.day, RECEIVED) for item in items)
            tally += _add_candidates(connection, settings[number], [item for item in items if item.is_drawn], now)
            _count(connection, number, tally)
            _measure_again(connection, number, min(item.day for item in items), now)
    return counts


def _stored_ids(connection: Connection, project: int, ids: Sequence[str]) -> set[str]:
    stored = select(interactions.c.external_id).where(
        interactions.c.project_id == project, interactions.c.external_id.in_(ids)
    )
    return {*connection.execute(stored).scalars()}


def _add_candidates(
    connection: Connection, settings: ProjectSettings, drawn: Sequence[Stored], now: int
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
    of_project = candidates.c.project_id == settings.project
    known = {
        *connection.execute(
            select(candidates.c.query_sha).where(of_project, candidates.c.query_sha.in_([*questions]))
        ).scalars()
    }
    if again := sorted(known):
        asked = update(candidates).where(of_project, candidates.c.query_sha == bindparam("sha"))
        statement = asked.values(asked=candidates.c.asked + bindparam("number"))
        connection.execute(statement, [{"sha": sha, "number": len(questions[sha])} for sha in again])
    new = [(sha, items) for sha, items in questions.items() if sha not in known]
    waiting = select(func.count()).where(of_project, candidates.c.state == "new")
    room = max(0, bounds.CANDIDATES_WAITING - connection.execute(waiting).scalar_one()) if new else 0
    tally += Counter((item.day, NOT_QUEUED) for _, items in new[room:] for item in items)
    if new[:room]:
        numbers = _numbers(connection, settings.project, [items[0] for _, items in new[:room]])
        rows = [_candidate(settings.project, items, numbers, now) for _, items in new[:room]]
        connection.execute(candidates.insert(), rows)
    return tally


def _numbers(connection: Connection, project: int, items: Sequence[Stored]) -> Mapping[str, int]:
    """Return the ids of stored interactions by what their senders call them."""
    names = [item.row["external_id"] for item in items]
    columns = interactions.c.external_id, interactions.c.id
    rows = select(*columns).where(interactions.c.project_id == project, interactions.c.external_id.in_(names))
    return dict(connection.execute(rows).all())


def _candidate(project: int, items: Sequence[Stored], numbers: Mapping[str, int], now: int) -> dict[str, Any]:
    row = items[0].row
    return {
        "project_id": project,
        "query_sha": row["query_sha"],
        "query": row["query"],
        "interaction_id": numbers[row["external_id"]],
        "reason": ", ".join(names_of(row["flags"])) or SAMPLED,
        "state": "new",
        "created_at": now,
        "asked": len(items),
    }


def _count(connection: Connection, project: int, tally: "Counter[tuple[int, str]]") -> None:
    insert = (sqlite.insert if connection.dialect.name == SQLITE else postgresql.insert)(tallies)
    added = tallies.c.number + insert.excluded.number
    statement = insert.on_conflict_do_update(index_elements=[*tallies.primary_key], set_={"number": added})
    rows = [
        {"project_id": project, "day": day, "name": name, "number": number}
        for (day, name), number in sorted(tally.items())
    ]
    connection.execute(statement, rows)


def _measure_again(connection: Connection, project: int, day: int, now: int) -> None:
    """Note the first day that is over and has changed."""
    if day >= now - now % DAY:
        return
    later = or_(projects.c.unmeasured_from.is_(None), projects.c.unmeasured_from > day)
    connection.execute(update(projects).where(projects.c.id == project, later).values(unmeasured_from=day))
