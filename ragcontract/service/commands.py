"""What the commands of `rag-contract service` do: migrate, copy and check the database; add users and keys."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from sqlalchemy import Connection, RowMapping, func, select
from sqlalchemy.exc import DatabaseError

from ragcontract.core.errors import InputError
from ragcontract.history.entry import Entry, OtherVersionError, decode, entry_path, folder_of
from ragcontract.history.interface import ConflictError
from ragcontract.service.accounts import add_machine_key, add_user
from ragcontract.service.audit import COMMAND_LINE, Author, record
from ragcontract.service.blobs import DamagedBlobError, blob
from ragcontract.service.database import Database, Job, T, now_ms
from ragcontract.service.database_store import broken_of, columns_of, points_of
from ragcontract.service.logging_in import create_link
from ragcontract.service.migrate import check_revision, migrate, newest, opened, prepared
from ragcontract.service.projects_and_runs import add_project, project_id
from ragcontract.service.tables import blobs, broken, deletions, points, projects, runs

AT_ONCE = 100  # rows
FROZEN = ("points", "runs", "blobs", "audit")
TRIGGERS = frozenset(f"{table}_{event}" for table in FROZEN for event in ("update", "delete"))
WORKING = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'trigger'",
    "postgresql": "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgenabled IN ('O', 'A')",
}


def migrated(name: str) -> str:
    """Migrate a database, which is created if it is an SQLite file that is missing; return its revision."""
    with opened(name, create=True) as database:
        migrate(database)
        return newest()


def back_up(name: str, path: Path) -> None:
    """Copy an SQLite database into a new file, even while it is served."""
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
        for name in _missing_triggers(connection):
            yield f"trigger {name}: is missing, so what was recorded is not protected; restore a backup"
        if connection.execute(select(func.count()).select_from(deletions)).scalar_one():
            yield "deletions: has rows, so what was recorded is not protected; delete them"
        yield from _wrong_blobs(connection)
        yield from _wrong_entries(connection)


def _missing_triggers(connection: Connection) -> list[str]:
    """Return the names of the triggers that somebody has dropped or disabled."""
    working = connection.exec_driver_sql(WORKING[connection.dialect.name]).scalars()
    return sorted(TRIGGERS.difference(working))


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


class AddedKey(Struct, frozen=True, kw_only=True):
    """The key of a machine."""

    text: str
    slug: str | None  # of its project
    is_new_project: bool = False


def added_user(db: str, name: str, role: str) -> str:
    """Add a user and return the secret of a link."""

    def job(connection: Connection) -> str:
        author = _author()
        add_user(connection, name, role, author)
        return create_link(connection, name, author)

    return _written(db, job)


def new_link(db: str, name: str) -> str:
    """Return the secret of a new link of a user."""
    return _written(db, lambda connection: create_link(connection, name, _author()))


def added_key(db: str, name: str, scopes: Sequence[str], contract: str | None, days: int | None) -> AddedKey:
    """Make a key of a machine, and its project if that does not exist."""

    def job(connection: Connection) -> AddedKey:
        author = _author()
        if contract is None:
            return AddedKey(text=add_machine_key(connection, name, scopes, author, days=days).text, slug=None)
        slug = folder_of(contract)
        is_new = add_project(connection, slug, contract, author.at)
        if is_new:
            record(connection, author, "project.add", f"project:{slug}")
        number = project_id(connection, slug)
        key = add_machine_key(connection, name, scopes, author, project_id=number, days=days)
        return AddedKey(text=key.text, slug=slug, is_new_project=is_new)

    return _written(db, job)


def _author() -> Author:
    return Author(actor=COMMAND_LINE, at=now_ms())


def _written(db: str, job: Job[T]) -> T:
    with prepared(db) as database:
        try:
            return database.write(job)
        except ConflictError as error:
            raise InputError(error.problems) from error
