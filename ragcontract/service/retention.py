"""Deletes what is too old: the oldest runs of each project, blobs that no run has, and what has expired.

Many short transactions do it, so that whoever writes meanwhile waits for one of them at most. Several services may
delete from one Postgres: each counts what it was first with.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import ColumnElement, Connection, and_, delete, exists, not_, select, tuple_

from ragcontract.core import bounds
from ragcontract.core.numbers import count
from ragcontract.service.alerts import expired_alert
from ragcontract.service.audit import Author, deleting_frozen_rows, record, too_old
from ragcontract.service.background import BackgroundJob
from ragcontract.service.blobs import OF_RUNS
from ragcontract.service.database import Database, now_ms, seconds
from ragcontract.service.logging_in import ended_session, spent_link
from ragcontract.service.production.deletion import delete_expired
from ragcontract.service.projects_and_runs import NEWEST, newest_run, outdate_trend
from ragcontract.service.run_diff import last_pass
from ragcontract.service.tables import alerts, audit, blobs, projects, runs, sessions, tokens, uploads
from ragcontract.service.trends import Trends

T = TypeVar("T")
ACTOR = "retention"
EVERY, AGAIN = 86_400, 300  # seconds until the next time, and until the next try after an error
log = logging.getLogger(__name__)


class Retention(BackgroundJob):
    """The thread that deletes what is too old: at the start, and once a day."""

    def __init__(
        self, database: Database, keep_runs: int, trends: Trends, failed: Callable[[], None] = lambda: None
    ) -> None:
        """``keep_runs`` is for projects that do not say it themselves; ``failed`` counts errors."""
        super().__init__("retention", failed, again=AGAIN)
        self._database, self._keep_runs, self._trends = database, keep_runs, trends

    def _do(self) -> float:
        self.delete(now_ms())
        return EVERY

    def delete(self, now: int) -> None:
        """Delete all that is too old. Without any, it only reads."""
        author = Author(actor=ACTOR, at=now)
        with self._database.read() as connection:
            columns = projects.c.id, projects.c.slug, projects.c.keep_runs
            known = [_Project(*row) for row in connection.execute(select(*columns))]
        for project in known:
            with self._database.read() as connection:
                keep = self._keep_runs if project.keep_runs is None else project.keep_runs
                old = expendable(connection, project.id, keep)
            self._in_turns(old, partial(_delete_runs, project=project, author=author))
            if old:
                self._trends.note(project.id)
        with self._database.read() as connection:
            unnamed = connection.execute(select(blobs.c.sha256).where(_unnamed(now))).scalars().all()
        self._in_turns(unnamed, partial(_delete_blobs, author=author))
        of_ids = (
            (audit.c.id, too_old(now)),
            (sessions.c.sha256, ended_session(now)),
            (tokens.c.id, spent_link(now)),
            (alerts.c.id, expired_alert(now)),
        )
        delete_expired(self._database, author, self._ended.is_set)
        for ids, expired in of_ids:
            with self._database.read() as connection:
                old = connection.execute(select(ids).where(expired)).scalars().all()
            self._in_turns(old, partial(_delete_expired, ids=ids, expired=expired))

    def _in_turns(self, rows: Sequence[T], job: Callable[..., int]) -> None:
        """Run a job that returns how many of the ``rest`` it has dealt with, until there is none or the thread ends."""
        done = 0
        while done < len(rows) and not self._ended.is_set():
            done += self._database.write(partial(job, rest=rows[done:]))


class _Project(NamedTuple):
    id: int
    slug: str
    keep_runs: int | None


def expendable(connection: Connection, project_id: int, keep: int) -> Sequence[int]:
    """Return the ids of the runs of a project beyond the newest ``keep``, the oldest first; none if ``keep`` is 0.

    Never among them are the newest run of the project's branch, the newest one with its contract, and the last pass,
    which is the baseline.
    """
    if keep == 0:
        return []
    of_project = select(runs.c.created_at, runs.c.id).where(runs.c.project_id == project_id)
    last_kept = connection.execute(of_project.order_by(*NEWEST).offset(keep - 1).limit(1)).one_or_none()
    if last_kept is None:
        return []
    passed = last_pass(connection, project_id)
    of_branch = newest_run(connection, project_id), newest_run(connection, project_id, sent_golden=True)
    needed = [run.id for run in of_branch if run is not None] + ([passed["id"]] if passed else [])
    older = (
        runs.c.project_id == project_id,
        tuple_(runs.c.created_at, runs.c.id) < tuple(last_kept),
        runs.c.state.not_in(["queued", "running"]),
        runs.c.id.not_in(needed),
    )
    return connection.execute(select(runs.c.id).where(*older).order_by(runs.c.created_at, runs.c.id)).scalars().all()


def _in_time(rows: Sequence[T]) -> Iterator[T]:
    """Yield the first row, and further ones as long as a transaction may take."""
    end = seconds() + bounds.RETENTION_MS / 1_000
    for place, row in enumerate(rows):
        if place and seconds() >= end:
            return
        yield row


def _delete_runs(connection: Connection, rest: Sequence[int], project: _Project, author: Author) -> int:
    """Delete runs with their points and broken queries, as many as there is time for."""
    done = deleted = 0
    with deleting_frozen_rows(connection):
        for number in _in_time(rest):
            deleted += connection.execute(delete(runs).where(runs.c.id == number)).rowcount
            done += 1
    if deleted:
        outdate_trend(connection, project.id)
        detail = f"{count(deleted, 'run')}, the oldest beyond keep_runs: {rest[0]} to {rest[done - 1]}"
        record(connection, author, "run.expire", f"project:{project.slug}", detail)
    return done


def _unnamed(now: int) -> "ColumnElement[bool]":
    """Return the condition that no run has a blob, and that nobody has sent it lately, to name it in an entry."""
    before = now - bounds.UNNAMED_SECONDS * 1_000
    lately = exists().where(uploads.c.sha256 == blobs.c.sha256, uploads.c.at >= before)
    named = [exists().where(column == blobs.c.sha256) for column in OF_RUNS]
    return and_(blobs.c.created_at < before, not_(lately), *(not_(each) for each in named))


def _delete_blobs(connection: Connection, rest: Sequence[str], author: Author) -> int:
    """Delete blobs that still no run has, as many as there is time for.

    A blob that is locked is being named. After the lock nobody can name it, so what a run has now is final.
    """
    done = deleted = 0
    for sha256 in _in_time(rest):
        done += 1
        is_blob = blobs.c.sha256 == sha256
        if connection.execute(select(blobs.c.kind).where(is_blob).with_for_update(skip_locked=True)).first():
            deleted += connection.execute(delete(blobs).where(is_blob, _unnamed(author.at))).rowcount
    if deleted:
        record(connection, author, "blob.expire", "blobs", f"{count(deleted, 'blob')} that no run has")
    return done


def _delete_expired(
    connection: Connection, rest: Sequence[Any], ids: "ColumnElement[Any]", expired: "ColumnElement[bool]"
) -> int:
    """Delete rows that are still expired, as many as a transaction may."""
    some = rest[: bounds.RETENTION_ROWS]
    with deleting_frozen_rows(connection):
        connection.execute(delete(ids.table).where(ids.in_(some), expired))
    return len(some)
