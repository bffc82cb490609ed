"""The database of the service: SQLite in a file, or Postgres. Reads run side by side; SQLite writes in one thread.

SQLite allows one writer at a time. Writers that wait for each other inside SQLite poll, and may wait forever; in one
thread, each has its turn. Postgres needs no such thread: a write there is a transaction of its own.
"""

import hashlib
import math
import os
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

from msgspec import Meta, Struct
from sqlalchemy import URL, Connection, Engine, Table, create_engine, event, make_url
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError

from ragcontract.core import bounds
from ragcontract.core.errors import InputError, OutputError
from ragcontract.core.safe_text import encodable

T = TypeVar("T")
Job = Callable[[Connection], T]
Rows: TypeAlias = Sequence[Any]
SQLITE = "sqlite"
BIGINT = 2**63 - 1  # the largest number of a column
DAY = 86_400_000  # in milliseconds
Milliseconds = Annotated[int, Meta(description="Milliseconds since 1970, UTC.")]
DRIVERS = {"sqlite": "sqlite+pysqlite", "postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}


def seconds() -> float:
    """Return the time of a clock that is never set."""
    return time.monotonic()


class LookedUp(Struct):
    """When something was looked up that is known for a moment."""

    at: float = -math.inf
    asked_at: float = -math.inf  # when a caller was told to look it up again

    def is_known(self, now: float, moment: float) -> bool:
        """Return whether it still counts.

        After the moment one caller is told to look it up again; for the others it counts for another moment.
        """
        if now - self.at > moment and now - self.asked_at > moment:
            self.asked_at = now
            return False
        return now - self.at <= 2 * moment


def now_ms() -> int:
    """Return the time in milliseconds since 1970, as the database stores it."""
    return time.time_ns() // 1_000_000


class BusyError(Exception):
    """Too many writes wait, or the database does not answer; a later try may succeed."""


def database_url(name: str) -> URL:
    """Return the address of a database that a user named: an address, or the path of a file for SQLite.

    Raises :class:`InputError` if it is none.
    """
    if "://" not in name:
        if not name or name == ":memory:" or "\0" in name:
            raise InputError(["--db: expected the path of a file, or an address such as postgresql://host/name"])
        return URL.create(DRIVERS[SQLITE], database=name)
    try:
        url = make_url(name)
    except (ArgumentError, ValueError):
        url = None
    if url is None or url.drivername.partition("+")[0] not in DRIVERS or not url.database:
        shown = re.sub("//[^/]*@", "//", name).partition("?")[0]
        raise InputError([f"--db {shown}: expected sqlite:///FILE or postgresql://USER@HOST/NAME"])
    return url.set(drivername=DRIVERS[url.drivername.partition("+")[0]])


class Database:
    """A database to read from and write to. ``close`` waits for the writes that are queued."""

    def __init__(self, url: URL, *, readers: int = bounds.SERVICE_READERS) -> None:
        self.url = url
        self.is_sqlite = url.get_backend_name() == SQLITE
        self.engine = _engine(url, readers)
        self.writing = _engine(url, 1, begin="BEGIN IMMEDIATE") if self.is_sqlite else self.engine
        self._writer = ThreadPoolExecutor(1, "writer") if self.is_sqlite else None
        self._writes = 0  # that are in the thread, or wait for it
        self._counting = threading.Lock()

    @property
    def file(self) -> Path | None:
        """The file of an SQLite database."""
        return Path(str(self.url.database)) if self.is_sqlite else None

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a transaction that sees one state of the database, and writes nothing."""
        with self.engine.connect() as connection:
            if not self.is_sqlite:  # which does so anyway
                connection.execution_options(isolation_level="REPEATABLE READ")
            yield connection
            connection.rollback()

    def write(self, job: "Job[T]") -> T:
        """Run a job in a transaction, commit it and return its result; an exception of the job undoes it.

        Raises :class:`BusyError` if too many jobs wait.
        """
        if self._writer is None:
            return self._commit(job)
        with self._counting:
            if self.waiting >= bounds.SERVICE_WRITES_WAITING:
                raise BusyError("too many writes wait")
            self._writes += 1
        done = self._writer.submit(self._commit, job)
        try:
            return done.result(bounds.SERVICE_DATABASE_WAIT)
        except TimeoutError:
            if done.cancel():  # it has not begun, so that who asked may ask again
                raise BusyError("the database does not take what waits") from None
            return done.result()
        finally:
            with self._counting:
                self._writes -= 1

    def _commit(self, job: "Job[T]") -> T:
        with self.writing.begin() as connection:
            return job(connection)

    def forget_deleted(self) -> None:
        """Leave nothing of what was deleted in the files of an SQLite database.

        What is deleted is overwritten in the file itself (``secure_delete``), but the log that SQLite writes first
        still has the pages as they were. It is emptied here, as soon as nobody reads from it. Postgres removes what
        was deleted when it vacuums.
        """
        if self._writer is None:
            return

        def empty() -> None:
            raw = self.writing.raw_connection()  # without the transaction that this engine begins
            raw.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
            raw.close()

        self._writer.submit(empty).result()

    def copy_to(self, path: Path) -> None:
        """Copy an SQLite database, as it is now, into a new file that only its owner can read; raises OutputError."""
        try:
            target = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            raise OutputError([f"{path}: cannot be written ({error.strerror})"]) from error
        raw = self.engine.raw_connection()
        try:
            raw.cursor().execute("VACUUM INTO ?", (str(path.resolve()),))
            os.fsync(target)
        except BaseException as error:
            path.unlink()
            if isinstance(error, (OSError, sqlite3.Error)):
                raise OutputError([f"{path}: cannot be written ({error})"]) from error
            raise
        finally:
            os.close(target)
            raw.close()

    def size(self, connection: Connection) -> int:
        """Return how many bytes the database takes on its disk."""
        if self.file is None:
            return int(connection.exec_driver_sql("SELECT pg_database_size(current_database())").scalar_one())
        files = (self.file, self.file.with_name(f"{self.file.name}-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    @property
    def waiting(self) -> int:
        """How many writes wait."""
        return max(0, self._writes - 1)

    def close(self) -> None:
        if self._writer:
            self._writer.shutdown()
        self.writing.dispose()
        self.engine.dispose()


def _engine(url: URL, connections: int, *, begin: str = "BEGIN") -> Engine:
    wait = bounds.SERVICE_DATABASE_WAIT
    if url.get_backend_name() == SQLITE:
        arguments: dict[str, Any] = {"check_same_thread": False, "timeout": wait}
    else:
        arguments = {"connect_timeout": wait, "options": f"-c timezone=UTC -c lock_timeout={wait}s"}
    engine = create_engine(
        url,
        pool_size=connections,
        max_overflow=0,
        pool_timeout=wait,
        pool_pre_ping=url.get_backend_name() != SQLITE,
        connect_args=arguments,
        hide_parameters=True,  # messages are logged, and these have questions and secrets
    )
    if url.get_backend_name() == SQLITE:
        event.listen(engine, "connect", _prepare)
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
    return engine


def _prepare(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None  # Python's own transactions would begin late, and never for reading
    for setting in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "trusted_schema=OFF"):
        connection.execute(f"PRAGMA {setting}")
    connection.execute("PRAGMA secure_delete=ON")  # nothing of what is deleted stays in the file
    connection.execute("PRAGMA recursive_triggers=ON")  # what INSERT OR REPLACE deletes fires triggers


def insert_if_new(connection: Connection, table: Table, row: Mapping[str, object]) -> bool:
    """Insert a row unless a row has its key, even while others insert the same; return whether it is new."""
    insert = sqlite.insert if connection.dialect.name == SQLITE else postgresql.insert
    statement = insert(table).values(row).on_conflict_do_nothing().returning(*table.primary_key)
    return connection.execute(statement).one_or_none() is not None


def storable(text: str) -> str:
    """Return a text without NUL characters and lone surrogates, which become replacement characters."""
    return encodable(text).replace("\0", "\ufffd")


def index_key(text: str) -> str:
    """Return what stands for a text in an index: itself, or the digest of a long one."""
    stored = storable(text)
    encoded = stored.encode()
    return stored if len(encoded) <= bounds.INDEXED_TEXT else f"sha256:{hashlib.sha256(encoded).hexdigest()}"
