"""The queue of the runs that the service makes itself: rows of the table ``runs``, which workers claim with leases.

A worker holds a run for a minute, and longer if it says so in time. Who has lost a run changes nothing in it any more:
every write names the attempt and the worker, and counts only while the run is held. All functions are jobs of
:meth:`Database.write`, with the time of :func:`time_of`.
"""

import uuid
from collections.abc import Collection, Sequence
from typing import Any, Literal

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, Select, and_, func, or_, select

from ragcontract.core import bounds
from ragcontract.service.accounts import Principal
from ragcontract.service.alerts import alert_of_lost_worker, alert_of_run
from ragcontract.service.blobs import Sent, put_blob
from ragcontract.service.database import DAY, SQLITE, insert_if_new, now_ms, storable
from ragcontract.service.database_store import Recording, locked_project, record_means, row_of, storable_recording
from ragcontract.service.projects_and_runs import project_branch
from ragcontract.service.tables import projects, runs, tasks

LEASE = bounds.LEASE_SECONDS * 1_000
DIED = f"the worker died {bounds.RUN_ATTEMPTS} times"
WORKER = "worker:"  # and its name: the row of its heartbeat
_OF_WORKERS = tasks.c.name.startswith(WORKER, autoescape=True)
FREE = {"lease_owner": None, "lease_until": None}
Ended = Literal["completed", "blocked", "failed", "cancelled"]


class QueueFullError(Exception):
    """Too many runs of a project wait."""


class Claim(Struct, frozen=True, kw_only=True):
    """A run that a worker holds."""

    run_id: int
    project_id: int
    slug: str
    attempt: int
    owner: str
    event: str
    branch: str | None
    log: str | None = None  # what the attempts before have printed


def time_of(connection: Connection) -> int:
    """Return the time by which leases end, in milliseconds: Postgres' own, because its workers' clocks may differ."""
    if connection.dialect.name == SQLITE:
        return now_ms()
    now = func.floor(func.extract("epoch", func.clock_timestamp()) * 1_000)
    return int(connection.execute(select(now)).scalar_one())


def enqueue(connection: Connection, project_id: int, *, event: str, created_by: str, note: str | None, now: int) -> int:
    """Add a run of a project's branch and return its id; raises :class:`QueueFullError` if too many wait."""
    of_project = runs.c.project_id == project_id, runs.c.state == "queued"
    # The lock makes those who add at the same time wait for each other, so that each counts all.
    connection.execute(select(projects.c.id).where(projects.c.id == project_id).with_for_update(key_share=True))
    waiting = connection.execute(select(func.count()).select_from(runs).where(*of_project)).scalar_one()
    if waiting >= bounds.RUNS_QUEUED:
        raise QueueFullError(f"{waiting} runs of the project wait already")
    row = {
        "project_id": project_id,
        "key": f"queued-{uuid.uuid4().hex}",
        "origin": "service",
        "state": "queued",
        "created_by": created_by,
        "created_at": now,
        "branch": project_branch(connection, project_id),
        "event": event,
        "note": None if note is None else storable(note),
    }
    return int(connection.execute(runs.insert().values(row).returning(runs.c.id)).scalar_one())


def claim(connection: Connection, owner: str, now: int, slugs: Collection[str] | None = None) -> Claim | None:
    """Hold the oldest run that waits, or that a worker has lost, for a worker; None if there is none.

    ``slugs`` are the projects that the worker has; None for all.
    """
    # The clock was set back: a lease would last until it has caught up.
    ahead = runs.c.state == "running", runs.c.lease_until > now + LEASE
    connection.execute(runs.update().where(*ahead).values(lease_until=now + LEASE))
    while row := connection.execute(_oldest(now, slugs)).one_or_none():
        if row.state == "running" and row.cancel is None:
            alert_of_lost_worker(connection, row.id, row.attempt, now)
        if row.cancel is not None:
            _end_lost(connection, row.id, "cancelled", None, now)
        elif row.attempt >= bounds.RUN_ATTEMPTS:
            _end_lost(connection, row.id, "failed", _why_died(row.log), now)
            alert_of_run(connection, row.id, now)
        else:
            lease = {"lease_owner": owner, "lease_until": now + LEASE}
            started = {
                "state": "running",
                "attempt": row.attempt + 1,
                "started_at": func.coalesce(runs.c.started_at, now),
            }
            connection.execute(runs.update().where(runs.c.id == row.id).values(started | lease))
            return Claim(
                run_id=row.id,
                project_id=row.project_id,
                slug=row.slug,
                attempt=row.attempt + 1,
                owner=owner,
                event=row.event or "",
                branch=row.branch,
                log=row.log,
            )
    return None


def _oldest(now: int, slugs: Collection[str] | None) -> "Select[Any]":
    columns = runs.c.id, runs.c.project_id, projects.c.slug, runs.c.state, runs.c.attempt, runs.c.cancel, runs.c.log
    wanted = [runs.c.state.in_(["queued", "running"]), or_(runs.c.state == "queued", _lost(now))]
    if slugs is not None:
        wanted.append(projects.c.slug.in_(slugs))
    query = select(*columns, runs.c.event, runs.c.branch).join(projects).where(*wanted)
    oldest = query.order_by(runs.c.created_at, runs.c.id).limit(1)
    return oldest.with_for_update(of=runs, skip_locked=True)


def _lost(now: int) -> "ColumnElement[bool]":
    return and_(runs.c.state == "running", runs.c.lease_until <= now)


def alert_of_lost_runs(connection: Connection, now: int) -> None:
    """Raise an alert of each run whose worker is gone, once; it waits until another worker claims it."""
    lost = select(runs.c.id, runs.c.attempt).where(_lost(now), runs.c.cancel.is_(None))
    for row in connection.execute(lost).all():
        alert_of_lost_worker(connection, row.id, row.attempt, now)


def _why_died(log: str | None) -> str:
    """Return why a run is not tried again: its workers died, and what they had printed."""
    lines = (log or "").splitlines()[-bounds.RUN_LAST_LINES :]
    return f"{DIED}; its last lines: " + "\n".join(lines) if lines else DIED


def _end_lost(connection: Connection, run_id: int, state: Ended, problem: str | None, now: int) -> None:
    values = {"state": state, "problem": problem, "finished_at": now} | FREE
    connection.execute(runs.update().where(runs.c.id == run_id).values(values))


def held(claim: Claim) -> "ColumnElement[bool]":
    """Return the condition that a worker still holds a run."""
    of_attempt = runs.c.id == claim.run_id, runs.c.attempt == claim.attempt, runs.c.state == "running"
    return and_(*of_attempt, runs.c.lease_owner == claim.owner)


def renew(connection: Connection, claim: Claim, log: str | None, now: int) -> Literal["ours", "cancelled", "lost"]:
    """Hold a run for another minute, and store what it has printed so far; return whether to go on with it."""
    values = {"lease_until": now + LEASE} | ({} if log is None else {"log": storable(log)})
    renewed = runs.update().where(held(claim)).values(values).returning(runs.c.cancel)
    row = connection.execute(renewed).one_or_none()
    return "lost" if row is None else "ours" if row.cancel is None else "cancelled"


def ask_to_cancel(connection: Connection, run_id: int, now: int) -> bool:
    """Cancel a run, at once if it waits, else as soon as its worker hears of it; return False if it is over."""
    of_run = runs.c.id == run_id
    connection.execute(select(runs.c.id).where(of_run).with_for_update())  # its worker may just give it back
    at_once = {"state": "cancelled", "cancel": now, "finished_at": now}
    by_nobody = or_(runs.c.state == "queued", _lost(now))
    if connection.execute(runs.update().where(of_run, by_nobody).values(at_once | FREE)).rowcount:
        return True
    asked = {"cancel": func.coalesce(runs.c.cancel, now)}
    return bool(connection.execute(runs.update().where(of_run, runs.c.state == "running").values(asked)).rowcount)


def give_back(connection: Connection, owner: str, now: int, *, died: bool = False) -> int:
    """Give back what a worker holds; return how many runs that were. If it did not die, the attempt does not count."""
    values = {"lease_until": now} if died else {"state": "queued", "attempt": runs.c.attempt - 1} | FREE
    of_worker = runs.c.state == "running", runs.c.lease_owner == owner
    return connection.execute(runs.update().where(*of_worker).values(values)).rowcount


def end(connection: Connection, claim: Claim, state: Ended, *, problem: str | None, log: str, now: int) -> bool:
    """End a run that has no verdict; return False if its worker has lost it."""
    kept = {"problem": None if problem is None else storable(problem), "log": storable(log)}
    values = {"state": state, "finished_at": now} | kept | FREE
    if not connection.execute(runs.update().where(held(claim)).values(values)).rowcount:
        return False
    alert_of_run(connection, claim.run_id, now)
    return True


def finish(
    connection: Connection, claim: Claim, recording: Recording, blobs_sent: Sequence[Sent], *, log: str, now: int
) -> Literal["recorded", "exists", "lost"]:
    """End a run with its verdict: its entry, points, broken queries and blobs are stored, unless its worker lost it.

    It stores nothing if there is an entry of the same second with the same results. Raises as ``record`` does.
    """
    if connection.execute(select(runs.c.id).where(held(claim)).with_for_update()).one_or_none() is None:
        return "lost"
    project_id = locked_project(connection, recording.entry, now)
    same = runs.c.project_id == claim.project_id, runs.c.key == recording.entry.id
    if connection.execute(select(runs.c.id).where(*same)).one_or_none() is not None:
        return "exists"
    if project_id != claim.project_id:
        raise AssertionError("the entry is of another project than the run")
    sender = Principal(actor=f"run:{claim.run_id}", project_id=project_id)
    for sent in blobs_sent:
        put_blob(connection, sent, sender=sender.actor, now=now)
    recording = storable_recording(connection, recording, sender, project_id, now)
    values = (
        row_of(recording) | {"event": claim.event, "finished_at": now, "log": storable(log), "problem": None} | FREE
    )
    connection.execute(runs.update().where(runs.c.id == claim.run_id).values(values))
    record_means(connection, recording, project_id, claim.run_id)
    alert_of_run(connection, claim.run_id, now)
    return "recorded"


def beat(connection: Connection, owner: str, now: int) -> None:
    """Note that a worker lives. What died without signing off is known for a day."""
    row = {"name": WORKER + owner, "next_at": now, "lease_owner": owner, "lease_until": now + LEASE}
    if insert_if_new(connection, tasks, row):
        connection.execute(tasks.delete().where(_OF_WORKERS, tasks.c.next_at < now - DAY))
    else:
        connection.execute(tasks.update().where(tasks.c.name == row["name"]).values(row))


def sign_off(connection: Connection, owner: str) -> None:
    """Note that a worker ended as it was asked to."""
    connection.execute(tasks.delete().where(tasks.c.name == WORKER + owner))


def last_beat(connection: Connection) -> int | None:
    """Return when a worker was heard last; None if there is none."""
    return connection.execute(select(func.max(tasks.c.next_at)).where(_OF_WORKERS)).scalar()
