"""The table ``daily``: stores measured days with what comes out of them, reads them, and lets people accept levels."""

from collections.abc import Mapping, Sequence

from sqlalchemy import ColumnElement, Connection, delete, insert, select, update

from ragcontract.core import bounds
from ragcontract.service.alerts import alert_of_drift
from ragcontract.service.audit import Author, record
from ragcontract.service.database import DAY
from ragcontract.service.production.drift import WINDOW, Measured, alarm_of, compared, date_of
from ragcontract.service.production.measured_day import MeasuredDay
from ragcontract.service.production.monitors import MONITORS
from ragcontract.service.tables import accepted_levels, daily, projects, sketches

KNOWN = (bounds.MONITOR_ALARM_DAYS + WINDOW) * DAY  # so long an alarm may stand, with the days it was compared with


def store_day(connection: Connection, project: int, day: int, measured: MeasuredDay, now: int) -> None:
    """Store a day in place of what was known of it, and raise alerts of the alarms that begin on it.

    The days before it must be up to date; those after it are not, until they are stored again, too.
    """
    _lock(connection, project)
    before, accepted = days_before(connection, project, day), _accepted(connection, project)
    of_day = [daily.c.project_id == project, daily.c.day == day]
    connection.execute(delete(daily).where(*of_day))
    rows = []
    for name, value in measured.values.items():
        monitor, level = MONITORS[name], accepted.get(name)
        today = compared(monitor, before.get(name, ()), Measured(day, value.n, value.value), level)
        rows.append(_key(project, day) | {"monitor": name} | today._asdict())
        if today.alarm and day >= (now // DAY - bounds.ALERT_DRIFT_DAYS) * DAY:
            alert_of_drift(connection, project, alarm_of(monitor, before[name], today, level), now)
    if rows:
        connection.execute(insert(daily), rows)
    connection.execute(delete(sketches).where(sketches.c.project_id == project, sketches.c.day == day))
    bodies = [_key(project, day) | {"kind": kind, "body": body} for kind, body in measured.sketches.items()]
    if bodies:
        connection.execute(insert(sketches), bodies)


def _key(project: int, day: int) -> dict[str, object]:
    return {"project_id": project, "day": day}


def _lock(connection: Connection, project: int) -> None:
    """Let nobody store the days of a project meanwhile; SQLite writes one after the other anyway."""
    connection.execute(select(projects.c.id).where(projects.c.id == project).with_for_update())


def days_before(connection: Connection, project: int, day: int) -> Mapping[str, Sequence[Measured]]:
    """Return the days that one is compared with, the oldest first, by the names of monitors."""
    return days_of(connection, daily.c.project_id == project, daily.c.day >= day - KNOWN, daily.c.day < day)


def days_of(connection: Connection, *wanted: "ColumnElement[bool]") -> dict[str, list[Measured]]:
    """Return the days that have a value, the oldest first, by the names of monitors."""
    columns = daily.c.monitor, daily.c.day, daily.c.n, daily.c.value, daily.c.z, daily.c.alarm
    known = select(*columns).where(daily.c.value.is_not(None), *wanted).order_by(daily.c.day)
    days: dict[str, list[Measured]] = {}
    for name, *fields in connection.execute(known):
        days.setdefault(name, []).append(Measured(*fields))
    return days


def _accepted(connection: Connection, project: int) -> dict[str, int]:
    columns = accepted_levels.c.monitor, accepted_levels.c.day
    rows = connection.execute(select(*columns).where(accepted_levels.c.project_id == project))
    return {row.monitor: row.day for row in rows}


def accept_level(connection: Connection, project: int, monitor: str, day: int, author: Author) -> bool:
    """Let a monitor learn anew from a day on, and compare the days since again; return False if it has none of them.

    The day is the first one of the new level: :attr:`~ragcontract.service.production.drift.Alarm.since`. What is known
    of it and later days is the usual from now on.
    """
    _lock(connection, project)
    of_monitor = daily.c.project_id == project, daily.c.monitor == monitor
    known = days_of(connection, *of_monitor, daily.c.day >= day - KNOWN).get(monitor, [])
    if monitor not in MONITORS or not known or known[-1].day < day:
        return False
    mine = accepted_levels.c.project_id == project, accepted_levels.c.monitor == monitor
    connection.execute(delete(accepted_levels).where(*mine))
    level = {"day": day, "accepted_by": author.actor, "accepted_at": author.at}
    connection.execute(insert(accepted_levels).values(project_id=project, monitor=monitor, **level))
    days = [each for each in known if each.day < day]
    for each in known[len(days) :]:
        days.append(compared(MONITORS[monitor], days, each, day))
        if days[-1] != each:
            changed = update(daily).where(*of_monitor, daily.c.day == each.day)
            connection.execute(changed.values(z=days[-1].z, alarm=days[-1].alarm))
    slug = connection.execute(select(projects.c.slug).where(projects.c.id == project)).scalar_one()
    record(connection, author, "level.accept", f"project:{slug}", f"{monitor} since {date_of(day)}")
    return True
