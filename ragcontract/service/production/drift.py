"""Whether a day is unlike others of its kind: how far its value is from the usual one, and when that is an alarm.

The distance of a value x is z = (x − median) / max(1.4826·MAD, floor) over the like days (weekdays, or weekends) of the
35 days before, as F. R. Hampel proposed it: up to half of these days may be out of the ordinary. A day that alarms is
among the like days of later ones. So a level that stays becomes the usual one, after two to five weeks.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import takewhile
from math import ceil, floor
from statistics import median
from typing import NamedTuple

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.service.database import DAY
from ragcontract.service.production.monitors import MONITORS, TO_COMPARE, Monitor, floor_of, shown_value

SATURDAY = 5
WINDOW = 35  # days before that a day is compared with
LIKE_DAYS = 8  # of them that there must be
ENOUGH = 100  # interactions of a day
AT_ONCE, TWICE = 6.0, 3.5  # |z| above which a day alarms, and two days running
CALM, CALM_DAYS = 2.0, 3  # |z| below which a day is as usual, and how many of them end an alarm
APART = 3  # days between two that are running, if those between them cannot tell anything, as a weekend
NORMAL = 1.4826  # the standard deviation of a normal distribution is so many times its MAD
FARTHEST = 999.0  # |z| that is stored, where all like days have the same score
USUAL = 0.1  # the share of like days below what is called usual, and above it
_EPOCH_DAY = 3  # 1 January 1970 was a Thursday


class Measured(NamedTuple):
    """The value of a monitor on a day, and what came out of it."""

    day: int  # the time at which it begins
    n: int
    value: float
    z: float | None = None
    alarm: int = 0  # 1 or -1 on the day on which an alarm begins


class Alarm(Struct, frozen=True, kw_only=True):
    """An alarm of a monitor that stands."""

    monitor: str
    day: int  # on which it was raised
    since: int  # the first of the days running that raised it
    direction: int  # 1 for up
    value: float  # of that day
    z: float
    usual: tuple[float, float] | None  # what most like days had; None if they are no longer known

    @property
    def sentence(self) -> str:
        """What happened, as "Questions are longer since 14 Nov: median 61 characters, usually 43 to 47"."""
        monitor = MONITORS[self.monitor]
        what = monitor.up if self.direction > 0 else monitor.down
        text = f"{what} since {date_of(self.since)}: {monitor.value}{shown_value(monitor, self.value)}"
        return text if self.usual is None else f"{text}, {usual_words(monitor, self.usual)}"


def usual_words(monitor: Monitor, usual: tuple[float, float]) -> str:
    """Return between which values most days are, as "usually 43 to 47"."""
    low, high = (shown_value(monitor, each, unit=False) for each in usual)
    return f"usually {low}" + (f" to {high}" if high != low else "")


MONTH_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def date_of(day: int) -> str:
    """Return a day as people write it, such as ``14 Nov``."""
    date = datetime.fromtimestamp(day / 1_000, UTC)
    return f"{date.day} {MONTH_NAMES[date.month - 1]}"


def is_weekend(day: int) -> bool:
    """Return whether a day is a Saturday or a Sunday."""
    return (day // DAY + _EPOCH_DAY) % 7 >= SATURDAY


def like_days(monitor: Monitor, before: Sequence[Measured], day: int, accepted: int | None) -> list[Measured]:
    """Return the days that a day is compared with; none if they are too few.

    ``before`` are earlier days, the oldest first. Since a level was ``accepted``, only days from then on count. A day
    with few interactions does not count, but for their number: that must be known of quiet days, too.
    """
    first = day - WINDOW * DAY
    if accepted is not None and accepted <= day:
        first = max(first, accepted)
    is_like, recent = is_weekend(day), takewhile(lambda each: each.day >= first, reversed(before))
    alike = [each for each in recent if each.day < day and is_weekend(each.day) == is_like]
    enough = [each for each in alike if each.n >= ENOUGH]
    if len(enough) < LIKE_DAYS:
        return []
    return enough if monitor.needs_many else alike


def compared(monitor: Monitor, before: Sequence[Measured], today: Measured, accepted: int | None = None) -> Measured:
    """Return a day with how far its value is from the usual one, and whether an alarm begins on it.

    ``before`` are the earlier days with what came out of them, the oldest first.
    """
    z = distance(monitor, before, today, accepted)
    today = today._replace(z=z, alarm=0)
    if z is None or standing(before, accepted) is not None:
        return today
    direction = 1 if z > 0 else -1
    previous = _previous(before, today.day)
    runs_on = previous is not None and previous * direction > TWICE and abs(z) > TWICE
    return today._replace(alarm=direction) if abs(z) > AT_ONCE or runs_on else today


def distance(monitor: Monitor, before: Sequence[Measured], today: Measured, accepted: int | None) -> float | None:
    """Return how far a day's value is from the usual one, as z; None if there is not enough to tell."""
    if today.n < ENOUGH and monitor.needs_many:
        return None
    alike = like_days(monitor, before, today.day, accepted)
    if not alike:
        return None
    comparable = TO_COMPARE[monitor.scale]
    values = [comparable(each.value) for each in alike]
    usual = median(values)
    spread = NORMAL * median(abs(value - usual) for value in values)
    z = (comparable(today.value) - usual) / max(spread, floor_of(monitor, today.n, usual))
    return max(-FARTHEST, min(FARTHEST, z))


def _previous(before: Sequence[Measured], day: int) -> float | None:
    """Return the z of the last day that could be told, if it was a few days ago at most."""
    return next((each.z for each in reversed(before) if each.z is not None and each.day >= day - APART * DAY), None)


def standing(days: Sequence[Measured], accepted: int | None = None) -> Measured | None:
    """Return the day whose alarm stands after these days, the oldest first; None if there is none.

    An alarm ends with three days running that are as usual, or when somebody accepts the level of its day. It also ends
    when it is old: then nothing is left of what its day was compared with.
    """
    first = max(days[-1].day - bounds.MONITOR_ALARM_DAYS * DAY, accepted or 0) if days else 0
    raised = next((place for place in range(len(days) - 1, -1, -1) if days[place].alarm), None)
    if raised is None or days[raised].day < first:
        return None
    calm = 0
    for each in days[raised + 1 :]:
        if each.z is not None:
            calm = calm + 1 if abs(each.z) < CALM else 0
        if calm == CALM_DAYS:
            return None
    return days[raised]


def all_compared(monitor: Monitor, days: Iterable[Measured], accepted: int | None = None) -> list[Measured]:
    """Return the days of a monitor, the oldest first, each with what comes out of it."""
    done: list[Measured] = []
    for each in days:
        done.append(compared(monitor, done[-bounds.MONITOR_ALARM_DAYS :], each, accepted))
    return done


def alarm_of(monitor: Monitor, days: Sequence[Measured], raised: Measured, accepted: int | None = None) -> Alarm:
    """Return what there is to say of an alarm; ``days`` are those before it, as far as they are known, oldest first."""
    since = raised.day
    for each in reversed([day for day in days if day.day < raised.day]):
        if each.z is not None:
            if since - each.day > APART * DAY or each.z * raised.alarm <= TWICE:
                break
            since = each.day
    values = sorted(each.value for each in like_days(monitor, days, since, accepted))
    usual = None
    if values:
        last = len(values) - 1
        usual = values[floor(USUAL * last)], values[ceil((1 - USUAL) * last)]
    return Alarm(
        monitor=monitor.name,
        day=raised.day,
        since=since,
        direction=raised.alarm,
        value=raised.value,
        z=raised.z or 0.0,
        usual=usual,
    )
