"""Stores the levels that people accept."""

from sqlalchemy import Connection, delete, insert, select, update

from ragcontract.service.audit import Author, record
from ragcontract.service.production.drift import date_of
from ragcontract.service.production.monitors import MONITORS
from ragcontract.service.tables import accepted_levels, daily, projects


def accept_level(connection: Connection, project: int, monitor: str, day: int, author: Author) -> bool:
    """Let a monitor learn anew from a day on; return False if it has none since then."""
    since = daily.c.project_id == project, daily.c.monitor == monitor, daily.c.day >= day
    if monitor not in MONITORS or connection.execute(select(daily.c.day).where(*since).limit(1)).scalar() is None:
        return False
    of_monitor = accepted_levels.c.project_id == project, accepted_levels.c.monitor == monitor
    connection.execute(delete(accepted_levels).where(*of_monitor))
    level = {"day": day, "accepted_by": author.actor, "accepted_at": author.at}
    connection.execute(insert(accepted_levels).values(project_id=project, monitor=monitor, **level))
    connection.execute(update(daily).where(*since).values(z=None, alarm=0))
    slug = connection.execute(select(projects.c.slug).where(projects.c.id == project)).scalar_one()
    record(connection, author, "level.accept", f"project:{slug}", f"{monitor} since {date_of(day)}")
    return True
