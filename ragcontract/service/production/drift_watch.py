"""Measures the days of production that are over, and again those for which interactions came late.

The table ``tasks`` has a row for each project with the first day that is not measured. Who claims it takes what came
late into account, and moves the day on in the transaction that stores the day: whoever dies leaves the rest to another,
and two services on one database measure nothing twice. What comes late meanwhile is measured by the next claim.
"""

import logging
import secrets
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, delete, or_, select, update
from sqlalchemy.exc import SQLAlchemyError

from ragcontract.core import bounds
from ragcontract.service.background import BackgroundJob
from ragcontract.service.database import DAY, BusyError, Database, insert_if_new, now_ms, seconds
from ragcontract.service.known_contract import contract_digest, contract_of, golden_of
from ragcontract.service.mounted import ProjectFile
from ragcontract.service.production.daily_rows import store_day
from ragcontract.service.production.golden_coverage import GoldenSet
from ragcontract.service.production.measured_day import NEW, measure, of_production
from ragcontract.service.tables import daily, interactions, projects, sketches, tasks

NAME = "drift"
EVERY, AGAIN = 20, 300  # seconds between two looks, and until a project that could not be measured is tried again
SETTLE = 60_000  # milliseconds after its end, a day is over: whoever stores its last interactions has done so
LEASE = 300_000  # milliseconds without news, after which another service measures the project
REST = 4  # times as long as a project was measured, it rests, if that took long
LONG = 1.0  # seconds
log = logging.getLogger(__name__)


class _Project(NamedTuple):
    id: int
    keep_days: int | None
    unmeasured_from: int | None  # as somebody who came late has left it
    next_at: int | None  # the first day that is not measured otherwise; None if none is


class Claim(NamedTuple):
    """A project that this service measures: from which day on, and the last one."""

    project: int
    owner: str
    first: int
    last: int


class _EndedError(Exception):
    """The service ends, or another one measures the project."""


class DriftWatch(BackgroundJob):
    """The thread that measures days. At each look it measures what is over."""

    def __init__(
        self,
        database: Database,
        folder: Path | None,
        failed: Callable[[], None] = lambda: None,
        clock: Callable[[], int] = now_ms,
        *,
        is_alone: bool = False,
    ) -> None:
        """``folder`` has mounted projects, if any; ``failed`` counts errors. Whoever is alone makes no pauses."""
        super().__init__(NAME, failed, again=EVERY)
        self._pauses = not is_alone
        self._database, self._folder, self._clock = database, folder, clock
        self._rests: dict[int, float] = {}  # until when projects rest, by their ids
        self._golden: dict[int, tuple[str | None, GoldenSet]] = {}  # of the last contracts, by the ids of projects

    def _do(self) -> float:
        self.look()
        return EVERY

    def look(self) -> None:
        """Measure all days that are over and not measured, of all projects."""
        now = self._clock()
        with self._database.read() as connection:
            known = {project.id: project for project in _projects(connection)}
            due = [project for project in known.values() if _is_due(connection, project, now)]
        self._golden = {number: golden for number, golden in self._golden.items() if number in known}
        for project in due:
            if self._ended.is_set():
                return
            if self._rests.get(project.id, 0.0) > seconds():
                continue
            try:
                self._measure_days(project, now)
            except Exception as error:
                self._rests[project.id] = seconds() + AGAIN
                self._failed()
                reason = None if isinstance(error, (BusyError, SQLAlchemyError)) else error
                message = "the days of project %s were not measured, which is tried again: %s"
                log.warning(message, project.id, type(error).__name__, exc_info=reason)

    def _measure_days(self, project: _Project, now: int) -> None:
        """Measure the days of a project, unless another service does so."""
        begun = seconds()
        claim = self._database.write(lambda connection: claimed(connection, project, now))
        if claim is None:
            return
        try:
            self._measure(claim)
        except _EndedError:
            pass
        finally:
            self._database.write(lambda connection: _release(connection, claim))
        took = seconds() - begun
        if took > LONG and self._pauses:
            self._rests[project.id] = seconds() + rest_after(took)

    def _measure(self, claim: Claim) -> None:
        turn = Turns(self._ended, lambda: self._renew(claim), pauses=self._pauses)
        golden = self._golden_of(claim.project, turn)
        for day in range(claim.first, claim.last + DAY, DAY):
            measured = measure(self._database, claim.project, day, golden, turn)

            def store(connection: Connection, day: int = day) -> None:
                _move(connection, claim, self._clock(), day, day + DAY)
                store_day(connection, claim.project, day, measured, self._clock())  # noqa: B023 (done in this turn)

            self._database.write(store)
            turn()

    def _golden_of(self, project: int, turn: Callable[[], None]) -> GoldenSet:
        """Return the golden set of a project, which is made anew when its contract changes."""
        with self._database.read() as connection:
            digest = contract_digest(connection, project, self._folder)
            kept = self._golden.get(project)
            if kept is not None and kept[0] == digest:
                return kept[1]
            queries = golden_of(contract_of(connection, project, self._folder))
        golden = GoldenSet([*queries.values()], turn)
        self._golden[project] = digest, golden
        return golden

    def _renew(self, claim: Claim) -> None:
        until = self._clock() + LEASE
        renewed = update(tasks).where(*_mine(claim)).values(lease_until=until)
        if self._database.write(lambda connection: connection.execute(renewed)).rowcount != 1:
            raise _EndedError


def rest_after(took: float) -> float:
    """Return how many seconds a project rests that took so many: late interactions may keep coming."""
    return min(REST * took, bounds.MONITOR_PAUSE)


class Turns:
    """Lets others work: whoever calls it often pauses as long as it works. It ends the work with the service."""

    def __init__(self, ended: threading.Event, renew: Callable[[], None], *, pauses: bool) -> None:
        self._ended, self._renew, self._pauses = ended, renew, pauses
        self._since = self._renewed = seconds()

    def __call__(self) -> None:
        now = seconds()
        worked = now - self._since
        if worked * 1_000 > bounds.MONITOR_TURN_MS:
            if self._ended.wait(worked if self._pauses else 0):
                raise _EndedError
            self._since = seconds()
        if now - self._renewed > LEASE / 3_000:
            self._renew()
            self._renewed = now


def task_of(project: int) -> str:
    """Return the name of the row of a project."""
    return f"{NAME}:{project}"


def _last_over(now: int) -> int:
    """Return the last day that is over."""
    return (now - SETTLE) // DAY * DAY - DAY


def _first_kept(project: _Project, now: int) -> int:
    """Return the first day of which no interaction has been deleted because of its age."""
    keep = ProjectFile().keep_days if project.keep_days is None else project.keep_days
    return -((keep * DAY - now) // DAY) * DAY


def _projects(connection: Connection) -> list[_Project]:
    columns = projects.c.id, projects.c.keep_days, projects.c.unmeasured_from
    names = select(tasks.c.name, tasks.c.next_at).where(tasks.c.name.startswith(f"{NAME}:", autoescape=True))
    next_at = {row.name: row.next_at for row in connection.execute(names)}
    rows = connection.execute(select(*columns).order_by(projects.c.id)).all()
    return [_Project(*row, next_at.get(task_of(row.id))) for row in rows]


def _next_day(connection: Connection, project: _Project, now: int) -> int | None:
    """Return the first day that is not measured, or has to be again; None if there was no interaction yet.

    What is far in the future was written while the clock was wrong: then all days are measured again.
    """
    day, tomorrow = project.next_at, _last_over(now) + DAY
    if day is None or day > tomorrow:
        oldest = select(interactions.c.asked_at).where(of_production(project.id)).order_by(interactions.c.asked_at)
        day = connection.execute(oldest.limit(1)).scalar()
    if day is None:
        return None
    known = [day, tomorrow] + ([] if project.unmeasured_from is None else [project.unmeasured_from])
    return min(known) // DAY * DAY


def _is_due(connection: Connection, project: _Project, now: int) -> bool:
    day = _next_day(connection, project, now)
    return day is not None and day <= _last_over(now)


def claimed(connection: Connection, project: _Project, now: int) -> Claim | None:
    """Claim a project's days, and take what came late into account; None if another service measures it."""
    name, owner = task_of(project.id), secrets.token_hex(16)
    insert_if_new(connection, tasks, {"name": name, "next_at": _next_day(connection, project, now)})
    is_free = or_(tasks.c.lease_owner.is_(None), tasks.c.lease_until < now, tasks.c.lease_until > now + 2 * LEASE)
    leased = update(tasks).where(tasks.c.name == name, is_free).values(lease_owner=owner, lease_until=now + LEASE)
    next_at = connection.execute(leased.returning(tasks.c.next_at)).scalar()
    if next_at is None:
        return None
    is_project, late_from = projects.c.id == project.id, projects.c.unmeasured_from
    late = connection.execute(select(late_from).where(is_project).with_for_update()).scalar()
    day = _next_day(connection, project._replace(next_at=next_at, unmeasured_from=late), now)
    last, kept = _last_over(now), _first_kept(project, now)
    first = max(last if day is None else day, min(kept, last))  # yesterday is measured whatever is kept
    connection.execute(update(projects).where(is_project).values(unmeasured_from=None))
    connection.execute(update(tasks).where(tasks.c.name == name).values(next_at=first))
    old = sketches.c.project_id == project.id, sketches.c.day < kept - NEW * DAY
    connection.execute(delete(sketches).where(*old))
    connection.execute(delete(daily).where(daily.c.project_id == project.id, daily.c.day > last))  # of a wrong clock
    return Claim(project.id, owner, first, last)


def _mine(claim: Claim) -> "tuple[ColumnElement[bool], ...]":
    return tasks.c.name == task_of(claim.project), tasks.c.lease_owner == claim.owner


def _move(connection: Connection, claim: Claim, now: int, day: int, following: int) -> None:
    """Write that a day is measured; raises _EndedError if another service measures the project meanwhile."""
    moved = update(tasks).where(*_mine(claim), tasks.c.next_at == day)
    if connection.execute(moved.values(next_at=following, lease_until=now + LEASE)).rowcount != 1:
        raise _EndedError


def _release(connection: Connection, claim: Claim) -> None:
    connection.execute(update(tasks).where(*_mine(claim)).values(lease_owner=None, lease_until=None))
