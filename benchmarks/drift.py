"""How often monitors of production raise a false alarm, and how often they find a change: `python -m benchmarks.drift`.

Draws years of days in which nothing changes, and days of a change, and compares them by
`ragcontract/service/production/drift.py`. Weekdays have 1.2 times the interactions of an average day, and days of
weekends half of them. Lengths of questions are lognormal, and shorter on weekends; the median of a day is drawn as the
order statistic that it is, and the number of errors from a binomial distribution. Besides, each day has a level of its
own. A change begins on a Monday to Thursday. A second table comes from questions in words that are stored in a database
and measured there as the service does it. Writes docs/background/drift.md. All is seeded.
"""

import math
from collections import Counter
from datetime import UTC, datetime
from functools import partial
from itertools import product
from multiprocessing import Pool
from pathlib import Path
from random import Random
from statistics import NormalDist
from tempfile import TemporaryDirectory

from msgspec import Struct
from sqlalchemy import select

from benchmarks import tables
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.phrase import Location
from ragcontract.service.database import DAY, Database, database_url
from ragcontract.service.demo.demo_questions import TOPICS
from ragcontract.service.demo.demo_traffic import EMPTIES, ERRORS, NEW_EMPTIES, golden_questions, interaction
from ragcontract.service.migrate import migrate
from ragcontract.service.production.daily_rows import store_day
from ragcontract.service.production.drift import WINDOW, Measured, all_compared, compared, is_weekend
from ragcontract.service.production.golden_coverage import GoldenSet
from ragcontract.service.production.measured_day import measure
from ragcontract.service.production.monitors import MONITORS
from ragcontract.service.projects_and_runs import add_project
from ragcontract.service.tables import daily, interactions

PAGE = Path(__file__).parent.parent / "docs" / "background" / "drift.md"
SIMULATED, MEASURED = "drift", "drift-measured"  # tables of the page
VOLUMES = (100, 500, 5_000)  # interactions on an average day
WEEKDAYS, WEEKENDS = 1.2, 0.5  # times that
YEARS, TRIALS = 1_000, 2_000
YEAR = 365
MONDAY = round(datetime(2024, 1, 1, tzinfo=UTC).timestamp() * 1_000)
MONDAY_TO_THURSDAY = range(4)
CHARACTERS, SPREAD, ON_WEEKENDS = 45, 0.63, 0.95  # the median length, that of logarithms, and the median's share
LEVEL_OF_LENGTH, LEVEL_OF_RATE = 0.03, 0.05  # the spread of the days' own levels, of logarithms
RATE = 0.04
PLAIN = 3.0  # |z| of the rule that is shown beside
FOUND_AFTER = 2  # days
NORMAL = NormalDist()
FEW = 20


class Changed(Struct, frozen=True, kw_only=True):
    """A change that is simulated."""

    label: str
    monitor: str
    level: float  # of days since the change


LENGTH, ERROR_RATE = "question_length", "error_rate"
LEVELS = {LENGTH: float(CHARACTERS), ERROR_RATE: RATE}
LABELS = {LENGTH: "question length", ERROR_RATE: "rate of 4 %"}
CHANGES = (
    Changed(label="question length +35 %", monitor=LENGTH, level=1.35 * CHARACTERS),
    Changed(label="errors 4 → 10 %", monitor=ERROR_RATE, level=0.10),
    Changed(label="errors 4 → 16 %", monitor=ERROR_RATE, level=0.16),
)


def binomial(n: int, p: float, random: Random) -> int:
    """Draw how many of n happen, by halves: how many are below the middle one of n numbers from 0 to 1, and so on."""
    total = 0
    while n > FEW:
        middle = n // 2 + 1
        at = random.betavariate(middle, n + 1 - middle)
        if at <= p:
            total, n, p = total + middle, n - middle, (p - at) / (1 - at)
        else:
            n, p = middle - 1, p / at
    return total + sum(random.random() < p for _ in range(n))


def day_of(monitor: str, day: int, volume: int, level: float, random: Random) -> Measured:
    """Draw the value of a day."""
    weekend = is_weekend(day)
    n = round(volume * (WEEKENDS if weekend else WEEKDAYS))
    if monitor == ERROR_RATE:
        p = level * math.exp(random.gauss(0, LEVEL_OF_RATE))
        return Measured(day, n, binomial(n, p, random) / n)
    middle = (n + 1) / 2
    at = NORMAL.inv_cdf(random.betavariate(middle, n + 1 - middle))
    own = random.gauss(0, LEVEL_OF_LENGTH)
    return Measured(day, n, round(level * (ON_WEEKENDS if weekend else 1) * math.exp(SPREAD * at + own)))


def alarms(monitor: str, volume: int, years: int) -> tuple[float, float]:
    """Return how many alarms a year has in which nothing changes, and how many days above ``PLAIN``."""
    random, raised, plain = Random(f"{monitor} {volume}"), 0, 0
    before = 2 * WINDOW
    for _ in range(years):
        first = MONDAY - before * DAY
        days = [day_of(monitor, first + place * DAY, volume, LEVELS[monitor], random) for place in range(before + YEAR)]
        year = [day for day in all_compared(MONITORS[monitor], days) if day.day >= MONDAY]
        raised += sum(day.alarm != 0 for day in year)
        plain += sum(day.z is not None and abs(day.z) > PLAIN for day in year)
    return raised / years, plain / years


def found(change: Changed, volume: int, trials: int) -> float:
    """Return how often a change is found within two days."""
    random, monitor, hits = Random(f"{change.label} {volume}"), MONITORS[change.monitor], 0
    for _ in range(trials):
        begins = MONDAY + random.choice(MONDAY_TO_THURSDAY) * DAY
        draw = partial(day_of, change.monitor, volume=volume, random=random)
        days = [draw(begins - place * DAY, level=LEVELS[change.monitor]) for place in range(WINDOW + 1, 0, -1)]
        later = [draw(begins + place * DAY, level=change.level) for place in range(FOUND_AFTER)]
        known = days[:-1]
        for each in (days[-1], *later):
            known.append(compared(monitor, known, each))
        hits += any(each.alarm > 0 for each in known[-FOUND_AFTER:])
    return hits / trials


def simulated(years: int = YEARS, trials: int = TRIALS) -> str:
    """Return the first table."""
    monitors = list(product(LEVELS, VOLUMES))
    with Pool(2) as pool:
        of_years = pool.starmap_async(alarms, [(*each, years) for each in monitors], chunksize=1)
        of_changes = pool.starmap(found, [(*each, trials) for each in product(CHANGES, VOLUMES)], chunksize=1)
        counted = dict(zip(monitors, of_years.get(), strict=True))
    shares = iter(of_changes)
    body = []
    for place, what in enumerate(("false alarms a monitor-year", f"days of \\|z\\| > {PLAIN:.0f} a monitor-year")):
        for monitor, label in LABELS.items():
            numbers = [counted[monitor, volume][place] for volume in VOLUMES]
            body.append(
                [f"{what}: {label}", *(f"{number:.2f}" if not place else f"{number:.1f}" for number in numbers)]
            )
    body += [[f"found within two days: {each.label}", *(f"{next(shares):.0%}" for _ in VOLUMES)] for each in CHANGES]
    head = ["simulated", *(f"{volume:,} a day" for volume in VOLUMES)]
    return (
        f"{tables.rows(head, body, 1)}\nOf {years:,} simulated years a number of false alarms, and of {trials:,} "
        f"changes a share, {tables.precision(trials)} at most.\n"
    )


MADE = (4, 200)  # years in words, and interactions on an average day
CHANGE_DAYS = 3  # of a change, after each year
QUIET = 50  # days before each year, to learn
TOUCHED = {"question_length", "unseen_grams", "empty_rate", "top_score", "golden_coverage"}  # by the change


def measured_year(number: int) -> Counter[tuple[str, str]]:
    """Store, measure and compare a year of questions in words, and a change after it; count the alarms of monitors."""
    random, counts = Random(f"year {number}"), Counter[tuple[str, str]]()
    golden = GoldenSet(
        [
            GoldenQuery(id=each, query=text, relevant_doc_ids=(), location=Location(""))
            for each, text in golden_questions().items()
        ]
    )
    with TemporaryDirectory() as folder:
        database = Database(database_url(str(Path(folder, "service.db"))))
        migrate(database)
        database.write(lambda connection: add_project(connection, "docs", "docs", 0))
        change = MONDAY + (QUIET + YEAR) // 7 * 7 * DAY  # a Monday
        for day in range(MONDAY, change + CHANGE_DAYS * DAY, DAY):
            rows = asked_on(day, is_changed=day >= change, random=random)
            database.write(lambda connection, rows=rows: connection.execute(interactions.insert(), rows))  # type: ignore[misc]
            of_day = measure(database, 1, day, golden)
            database.write(lambda connection, day=day, of_day=of_day: store_day(connection, 1, day, of_day, 0))  # type: ignore[misc]
        with database.read() as connection:
            raised = connection.execute(select(daily.c.monitor, daily.c.day).where(daily.c.alarm != 0)).all()
            counts.update((name, "false" if day < change else "found") for name, day in raised)
            told = select(daily.c.monitor).where(daily.c.z.is_not(None)).distinct()
            counts.update((name, "told") for name in connection.execute(told).scalars())
        database.close()
    return counts


def asked_on(day: int, *, is_changed: bool, random: Random) -> list[dict[str, object]]:
    """Make up what is asked on a day: each question by chance, and since the change a third about what is new."""
    rows = []
    for place in range(round(MADE[1] * (WEEKENDS if is_weekend(day) else WEEKDAYS) * math.exp(random.gauss(0, 0.05)))):
        topic = "" if is_changed and random.random() < 1 / 3 else random.choice([*TOPICS])
        chance, empties = random.random(), EMPTIES if topic else NEW_EMPTIES
        ends = "error" if chance < ERRORS else "empty" if chance < ERRORS + empties else ""
        made = interaction(f"{day}-{place}", topic, ends, random)
        rows.append(made | {"project_id": 1, "asked_at": day + place, "received_at": day})
    return rows


def measured() -> str:
    """Return the second table."""
    years, volume = MADE
    with Pool(2) as pool:
        counts = sum(pool.imap_unordered(measured_year, range(years)), Counter[tuple[str, str]]())
    body = [
        [
            monitor.label,
            f"{counts[name, 'false'] / years:.2f}",
            f"{counts[name, 'found']} of {years}" if name in TOUCHED else "does not change",
        ]
        if counts[name, "told"]
        else [monitor.label, "not enough to tell", ""]
        for name, monitor in MONITORS.items()
    ]
    head = ["monitor", "false alarms a year", f"found within {CHANGE_DAYS} days"]
    return f"{tables.rows(head, body, 1)}\nOf {years} years in words, with {volume:,} questions on an average day.\n"


if __name__ == "__main__":
    tables.write(SIMULATED, simulated(), PAGE)
    tables.write(MEASURED, measured(), PAGE)
