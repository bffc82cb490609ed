"""Deletes interactions: those of a user, by their id, by their age; with what candidates have of them.

A candidate's text is a copy of a question. Until somebody has accepted it, it goes with the interaction that it was
made of; what was accepted stays as long as its golden row may be wanted. If a user's interactions are deleted, so are
all candidates that nobody else has asked.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, exists, func, select, update

from ragcontract.core import bounds
from ragcontract.core.numbers import count
from ragcontract.service.audit import Author, record
from ragcontract.service.database import DAY, Database
from ragcontract.service.mounted import ProjectFile
from ragcontract.service.tables import candidates, daily, interactions, projects, tallies

Never = Callable[[], bool]


def delete_interactions(database: Database, slug: str, project: int, which: str, author: Author, **by: Any) -> int:
    """Delete the interactions with these values of columns, or those asked ``before``; return how many there were.

    ``which`` says for the audit log what was deleted, and names nobody.
    """
    before = by.pop("before", None)
    wanted = [interactions.c[name] == value for name, value in by.items()]
    if before is not None:
        wanted.append(interactions.c.asked_at < before)
    of_user = by.get("user_sha")
    if of_user is not None:
        _forget_questions(database, project, of_user)
    deleted = _in_turns(database, project, wanted)
    database.write(
        lambda connection: record(
            connection, author, "interaction.delete", f"project:{slug}", f"{count(deleted, 'interaction')} {which}"
        )
    )
    database.forget_deleted()
    return deleted


def delete_expired(database: Database, author: Author, is_ended: Never) -> None:
    """Delete interactions that are older than their projects keep them, and what is counted of days that are over."""
    now = author.at
    with database.read() as connection:
        known = connection.execute(select(projects.c.id, projects.c.slug, projects.c.keep_days)).all()
    for row in known:
        days = ProjectFile().keep_days if row.keep_days is None else row.keep_days
        deleted = _in_turns(database, row.id, [interactions.c.asked_at < now - days * DAY], is_ended)
        if deleted:
            detail = f"{count(deleted, 'interaction')} of more than {count(days, 'day')} ago"
            subject = f"project:{row.slug}"
            job = partial(record, author=author, action="interaction.expire", subject=subject, detail=detail)
            database.write(job)
    # Sketches are deleted by who measures days: late interactions are compared with those of the days before.
    for table in (tallies, daily):
        old = table.c.day < now - bounds.MEASURED_DAYS * DAY
        with database.read() as connection:
            is_there = connection.execute(select(exists().where(old))).scalar_one()
        if is_there and not is_ended():
            database.write(lambda connection, table=table, old=old: connection.execute(delete(table).where(old)))  # type: ignore[misc]


def _in_turns(
    database: Database, project: int, wanted: "Sequence[ColumnElement[bool]]", is_ended: Never = lambda: False
) -> int:
    """Delete interactions, so many in a transaction; return how many there were."""
    deleted = 0
    while not is_ended():
        with database.read() as connection:
            some = select(interactions.c.id).where(interactions.c.project_id == project, *wanted)
            numbers = connection.execute(some.limit(bounds.DELETED_INTERACTIONS)).scalars().all()
        if not numbers:
            break
        deleted += database.write(partial(_delete, numbers=numbers))
    return deleted


def _delete(connection: Connection, numbers: Sequence[int]) -> int:
    # As one range of ids: a list of them may be longer than a statement may be.
    ids = interactions.c.id.in_(numbers)
    connection.execute(
        delete(candidates).where(candidates.c.interaction_id.in_(numbers), candidates.c.state != "accepted")
    )
    return connection.execute(delete(interactions).where(ids)).rowcount


def _forget_questions(database: Database, project: int, user: str) -> None:
    """Delete the candidates that only this user has asked; others get the text of somebody else."""
    of_user = interactions.c.project_id == project, interactions.c.user_sha == user
    with database.read() as connection:
        asked = {*connection.execute(select(interactions.c.query_sha).where(*of_user)).scalars()}
        of_project = select(candidates.c.query_sha).where(candidates.c.project_id == project)
        known = sorted(asked.intersection(connection.execute(of_project).scalars()))
        others = _asked_by_others(connection, project, user, known)
    for start in range(0, len(known), bounds.DELETED_INTERACTIONS):
        some = known[start : start + bounds.DELETED_INTERACTIONS]
        database.write(partial(_forget, project=project, user=user, digests=some, others=others))


def _asked_by_others(connection: Connection, project: int, user: str, digests: Sequence[str]) -> Mapping[str, int]:
    """Return the first interaction of somebody else, by the digests of questions. It reads all that are stored."""
    others = interactions.c.project_id == project, interactions.c.user_sha.is_distinct_from(user)
    first: dict[str, int] = {}
    for start in range(0, len(digests), bounds.DELETED_INTERACTIONS):
        some = interactions.c.query_sha.in_(digests[start : start + bounds.DELETED_INTERACTIONS])
        columns = interactions.c.query_sha, func.min(interactions.c.id)
        rows = connection.execute(select(*columns).where(*others, some).group_by(interactions.c.query_sha))
        first.update(rows.all())
    return first


def _forget(connection: Connection, project: int, user: str, digests: Sequence[str], others: Mapping[str, int]) -> None:
    of_project = candidates.c.project_id == project
    alone = [sha for sha in digests if sha not in others]
    connection.execute(delete(candidates).where(of_project, candidates.c.query_sha.in_(alone)))
    theirs = select(interactions.c.id).where(interactions.c.user_sha == user, interactions.c.project_id == project)
    for sha in digests:
        if sha in others:
            of_other = select(interactions.c.query).where(interactions.c.id == others[sha]).scalar_subquery()
            is_theirs = candidates.c.interaction_id.in_(theirs)
            changed = update(candidates).where(of_project, candidates.c.query_sha == sha, is_theirs)
            connection.execute(changed.values(query=of_other, interaction_id=others[sha]))
