"""Rows of production as tests need them, put straight into the tables."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import select

from ragcontract.service.database import DAY, Database
from ragcontract.service.production.interactions import question_digest
from ragcontract.service.tables import candidates, daily, interactions, projects, tallies

NOW = 1_800_000_000_000  # in 2027


def add_project_row(database: Database, slug: str) -> None:
    """Add a project unless it is there."""

    def job(connection: Any) -> None:
        if connection.execute(select(projects.c.id).where(projects.c.slug == slug)).scalar() is None:
            connection.execute(projects.insert().values(slug=slug, name=slug, secret="s", created_at=0))

    database.write(job)


def number_of(connection: Any, slug: str) -> int:
    number = connection.execute(select(projects.c.id).where(projects.c.slug == slug)).scalar_one()
    assert isinstance(number, int)
    return number


def add_interaction_row(
    database: Database,
    query: str = "How?",
    *,
    slug: str = "docs",
    results: Sequence[Mapping[str, Any]] | None = None,
    tags: Sequence[str] | None = None,
    **fields: Any,
) -> int:
    """Add an interaction and return its id."""

    def job(connection: Any) -> int:
        at = fields.get("asked_at", NOW)
        row = {"source": "web", "asked_at": at, "received_at": at, "flags": 0, **fields}
        row |= {"project_id": number_of(connection, slug), "query": query, "query_sha": question_digest(query)}
        row |= {
            "external_id": f"{query}-{at}-{len(connection.execute(select(interactions.c.id)).all())}",
            "results": None if results is None else msgspec.json.encode(results).decode(),
            "tags": None if tags is None else msgspec.json.encode(tags).decode(),
        }
        number = connection.execute(interactions.insert().values(row).returning(interactions.c.id)).scalar_one()
        assert isinstance(number, int)
        return number

    return database.write(job)


def add_candidate_row(
    database: Database, query: str, *, slug: str = "docs", asked: int = 1, reason: str = "sampled", **fields: Any
) -> int:
    """Add a candidate that waits, with its interaction, and return its id."""
    interaction = add_interaction_row(database, query, slug=slug, **fields)

    def job(connection: Any) -> int:
        row = {
            "project_id": number_of(connection, slug),
            "query": query,
            "query_sha": question_digest(query),
            "interaction_id": interaction,
            "reason": reason,
            "state": "new",
            "created_at": fields.get("asked_at", NOW),
            "asked": asked,
        }
        number = connection.execute(candidates.insert().values(row).returning(candidates.c.id)).scalar_one()
        assert isinstance(number, int)
        return number

    return database.write(job)


def add_days(
    database: Database,
    monitor: str,
    values: Sequence[float | None],
    *,
    last: int,
    slug: str = "docs",
    n: int = 500,
    z: Mapping[int, float] = {},
    alarms: Mapping[int, int] = {},
) -> None:
    """Add the days of a monitor, of which ``last`` is the last one; ``z`` and ``alarms`` are by places from the end."""

    def job(connection: Any) -> None:
        project = number_of(connection, slug)
        for place, value in enumerate(reversed(values)):
            day = last - last % DAY - place * DAY
            if value is not None:
                row = {"project_id": project, "day": day, "monitor": monitor, "n": n, "value": value}
                connection.execute(daily.insert().values(row | {"z": z.get(place, 0.1), "alarm": alarms.get(place, 0)}))

    database.write(job)


def add_tallies(database: Database, day: int, slug: str = "docs", **numbers: int) -> None:
    """Add what was counted on a day."""

    def job(connection: Any) -> None:
        project = number_of(connection, slug)
        for name, number in numbers.items():
            row = {"project_id": project, "day": day - day % DAY, "name": name, "number": number}
            connection.execute(tallies.insert().values(row))

    database.write(job)
