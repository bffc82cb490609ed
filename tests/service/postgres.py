"""A Postgres of the tests' own: a cluster in a temporary folder, which only this user reaches, by a socket."""

import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import URL, create_engine

from tests.needs import program

OWNER = "postgres"  # whom Debian's package creates; the server refuses to run as root


class Cluster:
    """A running server. ``folder`` has its socket."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def url(self, database: str = "postgres") -> URL:
        query = {"host": str(self.folder)}
        return URL.create("postgresql+psycopg", username=OWNER, database=database, query=query)

    @contextmanager
    def new_database(self, template: str = "template0") -> Iterator[URL]:
        """Make a database for one test, a copy of another one, and drop it afterwards."""
        name = f"test_{uuid.uuid4().hex}"
        self._run(f"CREATE DATABASE {name} TEMPLATE {template} ENCODING 'UTF8'")
        yield self.url(name)
        self._run(f"DROP DATABASE {name} WITH (FORCE)")

    @contextmanager
    def database_on(self, disk: Path) -> Iterator[URL]:
        """Make a database whose tables are on a disk that is mounted at a folder."""
        if os.getuid() == 0:
            shutil.chown(disk, OWNER)
        name = f"test_{uuid.uuid4().hex}"
        self._run(
            f"CREATE TABLESPACE {name} LOCATION '{disk}'",
            f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8' TABLESPACE {name}",
        )
        yield self.url(name)
        self._run(f"DROP DATABASE {name} WITH (FORCE)", f"DROP TABLESPACE {name}")

    def rename(self, name: str, new: str) -> None:
        """Give a database another name; who is connected to it loses the connection."""
        self._run(
            f"ALTER DATABASE {name} ALLOW_CONNECTIONS false",
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'",
            f"ALTER DATABASE {name} RENAME TO {new}",
            f"ALTER DATABASE {new} ALLOW_CONNECTIONS true",
        )

    def _run(self, *statements: str) -> None:
        engine = create_engine(self.url(), isolation_level="AUTOCOMMIT")
        try:
            with engine.connect() as connection:
                for statement in statements:
                    connection.exec_driver_sql(statement)
        finally:
            engine.dispose()


@contextmanager
def running() -> Iterator[Cluster]:
    """Start a server; it is gone with its data when the block ends."""
    initdb = program("postgres")
    if initdb is None:
        raise FileNotFoundError("initdb")
    tools = Path(initdb).resolve().parent
    folder = Path(tempfile.mkdtemp(prefix="rc-pg-", dir="/tmp"))  # the path of a socket has at most 107 characters
    as_owner = []
    if os.getuid() == 0:
        shutil.chown(folder, OWNER)
        as_owner = ["runuser", "-u", OWNER, "--"]
    data = folder / "data"

    def run(*command: str) -> None:
        subprocess.run([*as_owner, *command], check=True, capture_output=True, cwd=folder)

    try:
        run(str(tools / "initdb"), "-D", str(data), "-U", OWNER, "--auth=trust", "--encoding=UTF8", "--no-sync")
        fast = "-c fsync=off -c full_page_writes=off -c shared_buffers=32MB -c max_connections=200"
        options = f"-c listen_addresses='' -c unix_socket_directories={folder} {fast}"
        run(
            str(tools / "pg_ctl"), "-D", str(data), "-w", "-t", "120", "-l", str(folder / "log"), "-o", options, "start"
        )
        try:
            yield Cluster(folder)
        finally:
            run(str(tools / "pg_ctl"), "-D", str(data), "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
