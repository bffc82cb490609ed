"""Brings the tables of a database to the revision that this program needs, one migration at a time.

SQLite is copied first. Postgres is migrated only by a command, because processes of several versions may use it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path

from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext, MigrationStep, StampStep
from alembic.script import ScriptDirectory
from sqlalchemy import URL, Connection, inspect
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError

from ragcontract.core.errors import InputError, OutputError
from ragcontract.files.locking import locked, turn
from ragcontract.files.writing import check_outputs
from ragcontract.service.database import Database, database_url

VERSIONS = (Path(__file__).parent / "migrations",)
LOCK = 0x72632D6D  # of Postgres, which knows its locks by numbers
INSTALL = 'install it: pip install "rag-contract[postgres]"'
# What to do, by a part of what a driver says
ADVICE = {
    "no password supplied": "; give it in PGPASSWORD or a password file",
    "password authentication failed": "; check PGPASSWORD, or the password file",
    "Connection refused": "; check the address, and that Postgres runs",
    "not a database": "; name an SQLite file, or a new one",
}


@contextmanager
def opened(name: str, *, create: bool = False) -> Iterator[Database]:
    """Open a database that a user named, and close it when the block ends.

    Raises :class:`InputError` if it cannot be used, also within the block. No message has its password.
    """
    url = database_url(name)
    shown = URL.create(url.get_backend_name(), url.username, None, url.host, url.port, url.database).render_as_string()
    try:
        database = Database(url)
    except ModuleNotFoundError as error:
        raise InputError([f"--db {shown}: needs psycopg; {INSTALL}"]) from error
    shown = str(database.file or shown)
    try:
        if database.file is None:
            _connect(database)
        else:
            _prepare(database.file, create=create)
            with turn(database.file.resolve()):  # the first connection makes a new file one that readers may share
                _connect(database)
        yield database
    except IntegrityError:
        raise
    except DBAPIError as error:
        reason = str(error.orig).partition("\n")[0]
        advice = next((text for part, text in ADVICE.items() if part in reason), "")
        raise InputError([f"--db {shown}: {reason}{advice}"]) from error
    finally:
        database.close()


@contextmanager
def prepared(name: str, *, create: bool = False) -> Iterator[Database]:
    """Open a database as :func:`opened` does, with the tables of this version: SQLite is migrated, Postgres must be."""
    with opened(name, create=create) as database:
        if database.is_sqlite:
            migrate(database)
        else:
            check_revision(database)
        yield database


def _connect(database: Database) -> None:
    try:
        with database.read() as connection:
            inspect(connection).has_table("alembic_version")
    except (ArgumentError, TypeError, ValueError) as error:  # an option in the address that the driver does not know
        raise InputError([f"--db: {error}"]) from error


def _prepare(file: Path, *, create: bool) -> None:
    if not create and not file.exists():
        advice = "name the one that is served, or create it with `rag-contract service migrate`"
        raise InputError([f"--db {file}: there is no such file; {advice}"])
    if problems := check_outputs([file], []):
        raise OutputError([f"--db {problem}" for problem in problems])
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)
    except OSError as error:
        raise OutputError([f"--db {file}: cannot be written ({error.strerror})"]) from error


@contextmanager
def held(database: Database) -> Iterator[None]:
    """Keep all others from serving or migrating an SQLite database until the block ends; raises InputError."""
    if database.file is None:
        yield
        return
    path = database.file.resolve()
    lock = path.with_name(f"{path.name}.lock")
    try:
        file = locked(lock)
    except OSError as error:
        raise OutputError([f"{lock}: cannot be written ({error.strerror})"]) from error
    if file is None:
        advice = "SQLite has one process that serves it: end that one, or use Postgres"
        raise InputError([f"--db {database.file}: another `rag-contract` serves or migrates it; {advice}"])
    with file:
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


def migrate(database: Database, versions: Sequence[Path] = VERSIONS, to: str = "head") -> None:
    """Bring a database to a revision, all or nothing; return at once if another process has done so.

    Raises :class:`InputError` if it is at a revision that this program does not know, or another process serves it.
    """
    scripts = _scripts(tuple(versions))
    target = scripts.as_revision_number(to)
    if database.file is None:
        with database.engine.begin() as connection:
            connection.exec_driver_sql("SET LOCAL lock_timeout = 0")  # another one may migrate for long
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK})")
            _upgrade(connection, scripts, to)
        return
    with turn(database.file.resolve()):
        with database.read() as connection:
            current = revision(connection)
            if current == target:
                return
            _refuse_unknown(current, scripts)
            if current is None and inspect(connection).get_table_names():
                raise InputError([f"--db {database.file}: has the tables of another program"])
        with held(database):
            if current is not None:
                database.copy_to(_unused(Path(f"{database.file}.{current}")))
            with _rebuilding(database) as connection:
                _upgrade(connection, scripts, to)


@contextmanager
def _rebuilding(database: Database) -> Iterator[Connection]:
    """Open a transaction in which SQLite's tables can be rebuilt, which is how Alembic changes them.

    Dropping the old table must not delete the rows that refer to it, and renaming the new table must not check the
    triggers of other tables.
    """
    with database.writing.connect() as connection:
        cursor = connection.connection.cursor()
        cursor.execute("PRAGMA foreign_keys=OFF")
        cursor.execute("PRAGMA legacy_alter_table=ON")
        try:
            with connection.begin():
                yield connection
                if connection.exec_driver_sql("PRAGMA foreign_key_check").first():
                    raise RuntimeError("a migration leaves rows whose parents are gone")
        finally:
            connection.invalidate()  # its settings are for this only


def _upgrade(connection: Connection, scripts: ScriptDirectory, to: str) -> None:
    _refuse_unknown(revision(connection), scripts)

    def steps(heads: tuple[str, ...], _context: MigrationContext) -> list[MigrationStep | StampStep]:
        missing = list(scripts.iterate_revisions(to, heads))
        return [MigrationStep.upgrade_from_script(scripts.revision_map, each) for each in reversed(missing)]

    context = MigrationContext.configure(connection, opts={"fn": steps})
    with Operations.context(context):
        context.run_migrations()


def revision(connection: Connection) -> str | None:
    """Return the revision of a database; None if it has no tables of the service."""
    return MigrationContext.configure(connection).get_current_revision()


@cache
def newest() -> str:
    """Return the revision that this program works with."""
    return str(_scripts(VERSIONS).get_current_head())


def check_revision(database: Database) -> None:
    """Raise :class:`InputError` unless a database is at the revision that this program works with."""
    with database.read() as connection:
        current = revision(connection)
    _refuse_unknown(current, _scripts(VERSIONS))
    if current != newest():
        state = f"is at {current}" if current else "has no tables yet"
        advice = "run `rag-contract service migrate`"
        raise InputError([f"the database {state}, this rag-contract needs {newest()}; {advice}"])


def _refuse_unknown(current: str | None, scripts: ScriptDirectory) -> None:
    if current is not None and current not in {each.revision for each in scripts.walk_revisions()}:
        known = f"the database is at {current}, this rag-contract knows {scripts.get_current_head()}"
        raise InputError([f"{known}; use the newer version or restore the backup"])


@cache
def _scripts(versions: tuple[Path, ...]) -> ScriptDirectory:
    return ScriptDirectory(str(versions[0]), version_locations=[str(each) for each in versions])


def _unused(path: Path) -> Path:
    names = (path if number == 1 else path.with_name(f"{path.name}.{number}") for number in count(1))
    return next(each for each in names if not each.exists())
