"""What an operator does with the database: migrate it, copy it, and have it checked."""

from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Connection, RowMapping, func, select
from sqlalchemy.exc import DatabaseError

from ragcontract.core.errors import InputError
from ragcontract.history.entry import Entry, OtherVersionError, decode, entry_path
from ragcontract.service.blobs import DamagedBlobError, blob
from ragcontract.service.database import Database
from ragcontract.service.frozen import missing_triggers
from ragcontract.service.migrate import check_revision, migrate, newest, opened
from ragcontract.service.record_entry import broken_of, columns_of, points_of
from ragcontract.service.tables import blobs, broken, deletions, points, projects, runs

AT_ONCE = 100  # rows


def migrated(name: str) -> str:
    """Migrate a database, which is created if it is an SQLite file that is missing; return its revision."""
    with opened(name, create=True) as database:
        migrate(database)
        return newest()


def back_up(name: str, path: Path) -> None:
    """Copy an SQLite database into a new file, also while it is served."""
    with opened(name) as database:
        if database.file is None:
            advice = f"for Postgres, use `pg_dump --format=custom --file={path}`"
            raise InputError([f"service backup: copies an SQLite database; {advice}"])
        database.copy_to(path)


def problems_of(name: str) -> list[str]:
    """Return what is wrong with a database."""
    with opened(name) as database:
        try:
            check_revision(database)
        except InputError as error:
            return error.problems
        problems: list[str] = []
        try:
            problems += _problems(database)
        except DatabaseError as error:  # a page that cannot be read
            problems.append(str(error.orig))
        return problems


def _problems(database: Database) -> Iterator[str]:
    with database.read() as connection:
        if database.is_sqlite:
            for (text,) in connection.exec_driver_sql("PRAGMA integrity_check"):
                if text != "ok":
                    yield f"integrity: {text}"
            for table, row, parent, _ in connection.exec_driver_sql("PRAGMA foreign_key_check"):
                yield f"{table}: row {row} refers to a row of {parent} that is gone"
        for name in missing_triggers(connection):
            yield f"trigger {name}: is missing, so what was recorded is not protected; restore a backup"
        if connection.execute(select(func.count()).select_from(deletions)).scalar_one():
            yield "deletions: has rows, so what was recorded is not protected; delete them"
        yield from _wrong_blobs(connection)
        yield from _wrong_entries(connection)


def _wrong_blobs(connection: Connection) -> Iterator[str]:
    for sha256 in connection.execute(select(blobs.c.sha256).order_by(blobs.c.sha256)).scalars().all():
        try:
            blob(connection, sha256)
        except DamagedBlobError as error:
            yield str(error)


def _wrong_entries(connection: Connection) -> Iterator[str]:
    stored = (
        select(runs, projects.c.slug)
        .join(projects, projects.c.id == runs.c.project_id)
        .where(runs.c.entry.is_not(None))
        .order_by(runs.c.id)
    )
    for run in connection.execute(stored, execution_options={"yield_per": AT_ONCE}).mappings():
        try:
            entry = decode(run["entry"].encode(), entry_path(run["slug"], run["key"]))
        except (InputError, OtherVersionError, ValueError) as error:
            yield f"runs: {run['id']}: {error}"
        else:
            for what in _differing(connection, run, entry):
                yield f"runs: {run['id']}: {what} not what its entry says; restore a backup"


def _differing(connection: Connection, run: RowMapping, entry: Entry) -> Iterator[str]:
    """Yield what else is stored of a run and differs from its entry."""
    results = entry.results.sha256 if entry.results else None
    expected = columns_of(entry) | {"results": results if run["results"] else None}
    for name in sorted(name for name, value in expected.items() if run[name] != value):
        yield f"its column {name} is"
    of_points = points.c.metric, points.c.tag, points.c.at, points.c.value, points.c.status
    rows = connection.execute(select(*of_points).where(points.c.run_id == run["id"]))
    if {*map(tuple, rows)} != {tuple(row.values()) for row in points_of(entry, run["created_at"])}:
        yield "its points are"
    queries = connection.execute(select(broken.c.query_id).where(broken.c.run_id == run["id"])).scalars()
    if {*queries} != {row["query_id"] for row in broken_of(entry, {})}:
        yield "its broken queries are"
