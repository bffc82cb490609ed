"""Starts the nightly runs of mounted projects, each at the time of day that its project.yml names, in UTC.

The table ``tasks`` has when each is due next. Who moves that on starts the run in the same transaction, so that several
services on one database start it once. A night that was missed because no service ran is made up for at the start.
"""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct
from sqlalchemy import Connection, RowMapping, select, update

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.safe_text import shorten
from ragcontract.service.audit import Author, record
from ragcontract.service.background import BackgroundJob
from ragcontract.service.database import DAY, Database, insert_if_new, now_ms
from ragcontract.service.mounted import FILE, RECORD, MountedProject, folders_in, project_in, write_mounted
from ragcontract.service.projects_and_runs import NEWEST, project_id
from ragcontract.service.tables import projects, runs, tasks
from ragcontract.service.workers.run_queue import QueueFullError, alert_of_lost_runs, enqueue, time_of

SCHEDULE = "schedule"  # what starts these runs, and who
EVERY = 20  # seconds between two looks
MINUTE = 60_000  # milliseconds
# What is due later than this was written while the clock was wrong. A clock that is set back by hours moves nothing, so
# that no night is repeated.
TOO_LATE = 2 * DAY
log = logging.getLogger(__name__)


class Schedule(BackgroundJob):
    """The thread that starts nightly runs. At each look it reads again what is mounted."""

    def __init__(
        self,
        database: Database,
        folder: Path | None,
        failed: Callable[[], None] = lambda: None,
        clock: Callable[[], int] = now_ms,
    ) -> None:
        """``folder`` has the mounted projects, if there are any; ``failed`` counts errors."""
        super().__init__(SCHEDULE, failed, again=EVERY)
        self._database, self._folder, self._clock = database, folder, clock
        self._logged: Mapping[str, str] = {}  # what is wrong with folders, as it was logged

    def start(self) -> None:
        """Start the thread, if anything is mounted."""
        if self._folder is not None:
            super().start()

    def _do(self) -> float:
        self.look()
        return EVERY

    def look(self) -> None:
        """Start the runs that are due, and raise alerts of those whose workers are gone.

        Raises InputError if the folder of the projects cannot be read.
        """
        if self._folder is None:
            return
        now = self._clock()
        mounted, problems = self._mounted(self._folder)
        self._write_mounted(mounted, now)
        with self._database.read() as connection:
            of_schedules = select(tasks.c.name, tasks.c.next_at, tasks.c.last_error)
            rows = connection.execute(of_schedules.where(tasks.c.name.startswith(task_of(""), autoescape=True)))
            due = {row["name"]: row for row in rows.mappings()}
        for slug, problem in problems.items():
            self._note(due.pop(task_of(slug), None), problem)
        ended = {
            name for name, row in due.items() if row["next_at"] < now - DAY
        }  # of a project that is mounted nowhere
        for project in mounted:
            if project.file.schedule is not None and project.can_run:
                ended.discard(task_of(project.slug))
                self._look_at(project, project.file.schedule, due.get(task_of(project.slug)), now)
            else:
                ended |= due.keys() & {task_of(project.slug)}
        self._database.write(lambda connection: alert_of_lost_runs(connection, time_of(connection)))
        if ended:
            self._database.write(lambda connection: connection.execute(tasks.delete().where(tasks.c.name.in_(ended))))

    def _mounted(self, folder: Path) -> tuple[list[MountedProject], dict[str, str]]:
        """Return the projects that are mounted now, and what is wrong with others by the names of their folders."""
        mounted, problems = [], {}
        for path in folders_in(folder)[: bounds.MOUNTED_PROJECTS]:
            try:
                project = project_in(folder, path.name)
            except InputError as error:
                problems[path.name] = str(error)
                self._failed()
            else:
                mounted += [] if project is None else [project]
        for slug, problem in problems.items():
            if self._logged.get(slug) != problem:
                log.warning("the project is not scheduled until it is corrected: %s", problem)
        self._logged = problems
        return mounted, problems

    def _write_mounted(self, mounted: list[MountedProject], now: int) -> None:
        """Store the projects that are new, or called differently."""
        with self._database.read() as connection:
            columns = projects.c.slug, projects.c.name, projects.c.keep_runs, projects.c.keep_days
            stored = {tuple(row) for row in connection.execute(select(*columns))}
        new = [
            each for each in mounted if (each.slug, each.name, each.file.keep_runs, each.file.keep_days) not in stored
        ]
        if new:
            self._database.write(lambda connection: write_mounted(connection, new, now))

    def _look_at(self, project: MountedProject, schedule: str, row: RowMapping | None, now: int) -> None:
        """Start the run of a project if it is due, and write when the next one is."""
        name, following = task_of(project.slug), next_time(schedule, now)
        if row is None:
            values = {"name": name, "next_at": following}
            self._database.write(lambda connection: insert_if_new(connection, tasks, values))
        elif row["next_at"] % DAY != following % DAY or row["next_at"] > now + TOO_LATE:
            self._database.write(lambda connection: _move(connection, row, following))
        elif row["next_at"] > now:
            self._note(row, None)
        else:
            try:
                self._database.write(lambda connection: _start(connection, project.slug, row, following, now))
            except Exception as error:
                self._failed()
                log.warning("the nightly run of %s was not started, which is tried again", project.slug, exc_info=error)
                self._note(row, f"{error}" if isinstance(error, QueueFullError) else type(error).__name__)

    def _note(self, row: RowMapping | None, problem: str | None) -> None:
        """Store why a project's run cannot be started, or that it can; one that is not scheduled yet has no row."""
        problem = None if problem is None else shorten(problem, bounds.MESSAGE)
        if row is not None and row["last_error"] != problem:
            changed = update(tasks).where(tasks.c.name == row["name"]).values(last_error=problem)
            self._database.write(lambda connection: connection.execute(changed))


def task_of(slug: str) -> str:
    """Return the name of the row of a project."""
    return f"{SCHEDULE}:{slug}"


def next_time(schedule: str, now: int) -> int:
    """Return when it is this time of day for the first time after now."""
    hours, minutes = map(int, schedule.split(":"))
    today = now - now % DAY + (hours * 60 + minutes) * MINUTE
    return today if today > now else today + DAY


def _move(connection: Connection, row: RowMapping, following: int) -> bool:
    """Write when the next run is; return False if another service was first."""
    is_same = tasks.c.name == row["name"], tasks.c.next_at == row["next_at"]
    moved = update(tasks).where(*is_same).values(next_at=following, last_error=None)
    return connection.execute(moved).rowcount == 1


def _start(connection: Connection, slug: str, row: RowMapping, following: int, now: int) -> None:
    """Start a run, unless another service was first."""
    number = project_id(connection, slug)
    if number is not None and _move(connection, row, following):
        run = enqueue(connection, number, event=SCHEDULE, created_by=SCHEDULE, note=None, now=now)
        record(connection, Author(actor=SCHEDULE, at=now), "run.start", f"run:{run}", f"project:{slug}")


class Nightly(Struct, frozen=True, kw_only=True):
    """The nightly runs of a project: when the next one is, and the last one, if there is one."""

    next_at: int
    last_error: str | None
    last: RowMapping | None


def nightly_of(connection: Connection, project_id: int, slug: str) -> Nightly | None:
    """Return what is known of the nightly runs of a project; None if it has none."""
    columns = tasks.c.next_at, tasks.c.last_error
    row = connection.execute(select(*columns).where(tasks.c.name == task_of(slug))).one_or_none()
    if row is None:
        return None
    columns_of_run = runs.c.id, runs.c.state, runs.c.verdict, runs.c.created_at, runs.c.problem
    last = select(*columns_of_run).where(runs.c.project_id == project_id, runs.c.created_by == SCHEDULE)
    newest = connection.execute(last.order_by(*NEWEST).limit(1)).mappings().one_or_none()
    return Nightly(next_at=row.next_at, last_error=row.last_error, last=newest)


def problem_of(folder: Path | None, slug: str) -> str:
    """Return what is wrong with a mounted project now; empty if nothing is, or if it is not mounted."""
    try:
        project = None if folder is None else project_in(folder, slug)
    except InputError as error:
        return "; ".join(error.problems)
    if project is not None and project.file.schedule is not None and not project.can_run:
        return f"{slug}: {FILE} has a schedule, but {RECORD} is missing, which says how the system is asked"
    return ""
