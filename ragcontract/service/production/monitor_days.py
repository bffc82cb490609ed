"""What the monitors of production said on each day, as it is stored, and which alarms stand."""

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct
from sqlalchemy import Connection, select

from ragcontract.core.numbers import count
from ragcontract.service.database import DAY
from ragcontract.service.production.daily_rows import KNOWN, days_of
from ragcontract.service.production.drift import (
    ENOUGH,
    LIKE_DAYS,
    WINDOW,
    Alarm,
    Measured,
    alarm_of,
    date_of,
    is_weekend,
    standing,
    usual_words,
)
from ragcontract.service.production.monitors import MONITORS, Monitor, shown_value
from ragcontract.service.tables import IS_ALARM, accepted_levels, daily


class Accepted(Struct, frozen=True, kw_only=True):
    """A level that somebody has accepted, and the day from which on the monitor learns it."""

    day: int
    accepted_by: str
    accepted_at: int


class MonitorSeries(Struct, frozen=True, kw_only=True):
    """A monitor over some days, the oldest first; alarms and what is usual are those of all days that are known."""

    monitor: Monitor
    days: Sequence[Measured]
    accepted: Accepted | None = None
    earlier: Sequence[Measured] = ()  # the days before, as far as an alarm that stands may go back

    @property
    def _known(self) -> Sequence[Measured]:
        return (*self.earlier, *self.days)

    @property
    def last(self) -> Measured:
        """The last day that has a value."""
        return self.days[-1]

    @property
    def last_value(self) -> str:
        """Its value with the unit."""
        return shown_value(self.monitor, self.last.value)

    @property
    def alarm(self) -> Alarm | None:
        """The alarm that stands; None if none does."""
        accepted = self.accepted.day if self.accepted else None
        raised = standing(self._known, accepted)
        return None if raised is None else alarm_of(self.monitor, self._known, raised, accepted)

    @property
    def usual(self) -> tuple[float, float] | None:
        """Between which values most days like the last one are, or like those before an alarm; None if too few are."""
        accepted = self.accepted.day if self.accepted else None
        of = self.alarm or alarm_of(self.monitor, self._known, self.last, accepted)
        return of.usual

    @property
    def usual_words(self) -> str:
        """The usual values in words; empty if they are not known."""
        return "" if self.usual is None else usual_words(self.monitor, self.usual)

    @property
    def why_untold(self) -> str | None:
        """Why nobody can tell whether the last day is unusual; None if it can be told."""
        last = self.last
        if last.z is not None:
            return None
        if last.n < ENOUGH and self.monitor.needs_many:
            return f"{last.n:,} {self.monitor.of} on {date_of(last.day)}; it takes {ENOUGH} a day"
        first = max(last.day - WINDOW * DAY, self.accepted.day if self.accepted else 0)
        before = [day for day in self._known if first <= day.day < last.day]
        enough = sum(day.n >= ENOUGH and is_weekend(day.day) == is_weekend(last.day) for day in before)
        kind = "weekend day" if is_weekend(last.day) else "weekday"
        return f"{count(enough, kind)} with {ENOUGH} or more to compare {date_of(last.day)} with; it takes {LIKE_DAYS}"


def monitors_of(connection: Connection, project: int, days: int, now: int) -> tuple[MonitorSeries, ...]:
    """Return the monitors of a project that have one of the last days."""
    since = now - now % DAY - days * DAY
    accepted = _accepted(connection, [project]).get(project, {})
    known = days_of(connection, daily.c.project_id == project, daily.c.day >= min(since, _alarms_since(now)))
    series = []
    for name, monitor in MONITORS.items():
        of_monitor = known.get(name, [])
        later = bisect_left(of_monitor, since, key=lambda each: each.day)
        if later < len(of_monitor):
            earlier, shown = tuple(of_monitor[:later]), tuple(of_monitor[later:])
            series.append(MonitorSeries(monitor=monitor, days=shown, accepted=accepted.get(name), earlier=earlier))
    return tuple(series)


def _alarms_since(now: int) -> int:
    """Return how far back an alarm that stands may be, with the days that its day was compared with."""
    return now - now % DAY - KNOWN


def standing_alarms(connection: Connection, projects: Collection[int], now: int) -> Mapping[int, Sequence[Alarm]]:
    """Return the alarms that stand, by the ids of projects."""
    since = _alarms_since(now)
    recent = IS_ALARM, daily.c.day >= since, daily.c.project_id.in_([*projects])
    wanted: dict[int, list[str]] = {}
    for project, name in connection.execute(select(daily.c.project_id, daily.c.monitor).where(*recent).distinct()):
        wanted.setdefault(project, []).append(name)
    accepted, alarms = _accepted(connection, wanted), dict[int, Sequence[Alarm]]()
    for project, names in wanted.items():
        of_names = daily.c.project_id == project, daily.c.day >= since, daily.c.monitor.in_(names)
        days, levels = days_of(connection, *of_names), accepted.get(project, {})
        known = [
            MonitorSeries(monitor=MONITORS[name], days=of, accepted=levels.get(name)).alarm
            for name, of in ((name, days[name]) for name in MONITORS if name in days)
        ]
        alarms[project] = [alarm for alarm in known if alarm is not None]
    return alarms


def _accepted(connection: Connection, projects: Collection[int]) -> Mapping[int, Mapping[str, Accepted]]:
    query = select(accepted_levels).where(accepted_levels.c.project_id.in_([*projects]))
    levels: dict[int, dict[str, Accepted]] = {}
    for row in connection.execute(query):
        level = Accepted(day=row.day, accepted_by=row.accepted_by, accepted_at=row.accepted_at)
        levels.setdefault(row.project_id, {})[row.monitor] = level
    return levels
