"""The tables of the service: each database gets them once, whole, and without losing what is in it."""

import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import URL, LargeBinary, MetaData, Numeric, Table, inspect, select, text
from sqlalchemy.exc import DBAPIError

from ragcontract.core.errors import InputError
from ragcontract.service.database import Database, database_url
from ragcontract.service.migrate import LOCK, VERSIONS, check_revision, held, migrate, newest, revision
from ragcontract.service.tables import metadata
from tests.forking import plain_environ
from tests.process import COMMAND, Ended, folder_of_nobody, hand_to_nobody, rag_contract, spawn_as_nobody
from tests.record.free_port import free_port
from tests.service.conftest import name_of, open_database
from tests.service.postgres import Cluster

LATER = (*VERSIONS, Path(__file__).parent / "later")
REVISIONS = [each.revision for each in ScriptDirectory(str(VERSIONS[0]), version_locations=VERSIONS).walk_revisions()]
AT_ONCE = 20
# What a column must have where the database checks it; a revision that adds such a column needs a line here.
CHECKED = {"kind": "report", "origin": "ci", "role": "viewer", "runs.state": "queued", "candidates.state": "new"}


def current(database: Database) -> str | None:
    with database.read() as connection:
        return revision(connection)


def tables_of(database: Database) -> dict[str, Table]:
    """Return the tables that a database has, apart from Alembic's."""
    reflected = MetaData()
    with database.read() as connection:
        reflected.reflect(connection)
    return {name: table for name, table in reflected.tables.items() if name != "alembic_version"}


def fill(database: Database) -> None:
    """Put two rows into each table, whatever its columns are: the first rows refer to each other, as do the second."""
    tables = tables_of(database)

    def insert(connection: Any) -> None:
        for table in MetaData.sorted_tables.fget(next(iter(tables.values())).metadata):  # type: ignore[attr-defined]
            if table.name in tables and table.name != "deletions":
                connection.execute(table.insert(), [row(table, number) for number in (1, 2)])

    database.write(insert)


def row(table: Table, number: int) -> dict[str, Any]:
    return {column.name: value(table.name, column, number) for column in table.columns}


def value(table: str, column: Any, number: int) -> Any:
    checked = CHECKED.get(f"{table}.{column.name}") or CHECKED.get(column.name)
    if checked:
        return checked
    if isinstance(column.type, LargeBinary):
        return bytes([number])
    if column.type.python_type is str:
        return str(number) * 64
    return number / 4 if isinstance(column.type, Numeric) else number


def rows_of(database: Database, tables: dict[str, Table]) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows, with the columns that the tables had."""
    with database.read() as connection:
        return {
            name: sorted(map(tuple, connection.execute(select(*table.columns))), key=repr)
            for name, table in tables.items()
        }


def test_the_migrations_make_the_tables_that_the_service_uses(database: Database) -> None:
    with database.read() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        assert compare_metadata(context, metadata) == []
        assert revision(connection) == newest()


def test_the_migrations_make_the_same_indexes_and_checks(database: Database, empty_twin: Database) -> None:
    """Alembic does not compare the order of an index, its condition, and checks of values: the databases' text does."""
    assert definitions(database) == definitions(empty_twin)


@pytest.fixture
def empty_twin(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A database with the tables as the service defines them, without any migration."""
    if kind == "sqlite":
        twin = database_url(str(tmp_path / "twin.db"))
        with open_database(twin) as database:
            database.write(metadata.create_all)
            yield database
    else:
        with request.getfixturevalue("cluster").new_database() as url, open_database(url) as database:
            database.write(metadata.create_all)
            yield database


def definitions(database: Database) -> dict[str, Any]:
    with database.read() as connection:
        if not database.is_sqlite:
            indexes = "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'"
            constraints = "SELECT conrelid::regclass || ' ' || conname, pg_get_constraintdef(oid) FROM pg_constraint"
            parts = [*connection.execute(text(indexes)), *connection.execute(text(constraints))]
            return {name: text for name, text in parts if "alembic" not in name}
        indexes = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
        found: dict[str, Any] = dict(map(tuple, connection.execute(text(indexes))))
        for table in metadata.tables:
            seen = inspect(connection)
            found[table] = (
                sorted(seen.get_foreign_keys(table), key=str),
                sorted(each["sqltext"] for each in seen.get_check_constraints(table)),
                sorted(each["column_names"] for each in seen.get_unique_constraints(table)),
                seen.get_pk_constraint(table)["constrained_columns"],
            )
        return found


@pytest.mark.parametrize("at", REVISIONS)
def test_a_filled_database_of_each_revision_migrates_whole(at: str, empty: URL, tmp_path: Path) -> None:
    with open_database(empty) as database:
        migrate(database, to=at)
        fill(database)
        tables = tables_of(database)
        before = rows_of(database, tables)
        assert all(len(rows) == 2 for name, rows in before.items() if name != "deletions"), before
        for versions, newer in ((VERSIONS, newest()), (LATER, "later")):
            migrate(database, versions)
            assert current(database) == newer
            assert rows_of(database, tables) == before
        with database.read() as connection:
            assert connection.exec_driver_sql("SELECT colour FROM projects").scalars().all() == ["blue", "blue"]
        with pytest.raises(DBAPIError, match="points never change"):
            database.write(lambda connection: connection.exec_driver_sql("UPDATE points SET value = 7"))
        if database.is_sqlite:
            copies = {each.name for each in tmp_path.iterdir()} - {"service.db", "service.db-wal", "service.db-shm"}
            assert copies == {f"service.db.{revision}" for revision in {at, newest()}}
            with open_database(database_url(str(tmp_path / f"service.db.{at}"))) as copy:
                assert (current(copy), rows_of(copy, tables)) == (at, before)


@pytest.mark.parametrize("kind", ["sqlite"])
def test_sqlite_is_copied_before_it_migrates(migrated: URL, tmp_path: Path) -> None:
    taken = tmp_path / f"service.db.{newest()}"
    taken.write_text("an older copy")
    with open_database(migrated) as database:
        fill(database)
        migrate(database)
        assert not taken.with_name(f"{taken.name}.2").exists()  # nothing to do, so nothing to copy
        migrate(database, LATER)
    assert taken.read_text() == "an older copy"
    copy = taken.with_name(f"{taken.name}.2")
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    with open_database(database_url(str(copy))) as copied:
        assert current(copied) == newest()


def test_a_migration_that_fails_changes_nothing(migrated: URL, tmp_path: Path) -> None:
    (tmp_path / "failing").mkdir()
    (tmp_path / "failing" / "v_failing.py").write_text(
        "from alembic import op\n"
        f'revision, down_revision = "failing", "{newest()}"\n'
        "def upgrade():\n"
        '    op.execute("CREATE TABLE extra (id INTEGER)")\n'
        '    op.execute("CREATE TABLE extra (id INTEGER)")\n'
    )
    with open_database(migrated) as database:
        fill(database)
        with pytest.raises(DBAPIError, match="already exists"):
            migrate(database, (*VERSIONS, tmp_path / "failing"))
        assert current(database) == newest()
        assert "extra" not in tables_of(database)
        check_revision(database)


def start(*argv: str, cwd: Path) -> "subprocess.Popen[str]":
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*COMMAND, *argv], cwd=cwd, env=plain_environ(), text=True, **pipes)  # type: ignore[call-overload, no-any-return]


def end(processes: Sequence["subprocess.Popen[str]"]) -> list[Ended]:
    outputs = [process.communicate() for process in processes]
    return [Ended(process.returncode, *output) for process, output in zip(processes, outputs, strict=True)]


@contextmanager
def held_up(database: Database) -> Iterator[Callable[[], bool]]:
    """Have the turn to migrate on Postgres; yield whether all processes wait for it. On SQLite, let them run."""
    if database.is_sqlite:
        yield lambda: True
        return
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    with database.engine.connect() as connection:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK})")
        yield lambda: bool(connection.exec_driver_sql(waiting).scalar_one() == AT_ONCE)


def test_twenty_processes_that_migrate_at_once_leave_one_schema(empty: URL, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    argv = ("service", "migrate", "--db", name_of(empty))
    with open_database(empty) as database, held_up(database) as all_wait:
        migrating = [start(*argv, cwd=tmp_path / "elsewhere") for _ in range(AT_ONCE)]
        while not all_wait():
            assert all(process.poll() is None for process in migrating), "one has not waited for its turn"
    ended = end(migrating)
    assert [each.code for each in ended] == [0] * AT_ONCE, ended
    assert {each.err for each in ended} == {""}
    with open_database(empty) as database:
        check_revision(database)
        assert set(tables_of(database)) == set(metadata.tables)
        with database.read() as connection:
            assert connection.exec_driver_sql("SELECT count(*) FROM alembic_version").scalar_one() == 1


def test_a_newer_database_is_refused(migrated: URL, tmp_path: Path) -> None:
    with open_database(migrated) as database:
        database.write(lambda connection: connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9007'"))
        with pytest.raises(InputError, match="the database is at 9007") as raised:
            check_revision(database)
    message = (
        f"the database is at 9007, this rag-contract knows {newest()}; use the newer version or restore the backup"
    )
    assert raised.value.problems == [message]
    ended = rag_contract("service", "migrate", "--db", name_of(migrated))
    assert ended == (2, "", f"error: {message}\n")
    assert not list(tmp_path.glob("*.9007"))  # nothing was copied


def test_a_database_without_tables_is_not_served(empty: URL) -> None:
    with open_database(empty) as database, pytest.raises(InputError) as raised:
        check_revision(database)
    missing = f"the database has no tables yet, this rag-contract needs {newest()}"
    assert raised.value.problems == [f"{missing}; run `rag-contract service migrate`"]


def test_the_command_says_what_it_did(empty: URL) -> None:
    for _ in range(2):
        assert rag_contract("service", "migrate", "--db", name_of(empty)) == (0, f"at revision {newest()}\n", "")


@pytest.mark.parametrize("kind", ["sqlite"])
def test_a_database_that_is_served_is_not_migrated(empty: URL) -> None:
    with open_database(empty) as database, held(database):
        ended = rag_contract("service", "migrate", "--db", name_of(empty))
    assert (ended.code, ended.out) == (2, "")
    assert "another `rag-contract` serves or migrates it" in ended.err


def refused(*argv: str) -> str:
    """Return why `service migrate` does not take a database."""
    ended = rag_contract("service", "migrate", "--db", *argv)
    assert (ended.code, ended.out) == (2, ""), ended
    assert ended.err.startswith("error: "), ended.err
    return ended.err.removeprefix("error: ").removesuffix("\n")


def test_what_is_no_database_of_the_service_is_refused(tmp_path: Path) -> None:
    other, noise = tmp_path / "other.db", tmp_path / "noise.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE places (id INTEGER)")
    connection.close()
    noise.write_bytes(b"no database" * 1_000)
    (tmp_path / "file").touch()
    before = noise.read_bytes()
    assert refused(str(other)) == f"--db {other}: has the tables of another program"
    assert refused(str(noise)) == f"--db {noise}: file is not a database; name an SQLite file, or a new one"
    assert noise.read_bytes() == before
    assert refused(str(tmp_path)) == f"--db {tmp_path}: is a folder; name a file in it"
    assert refused(f"{tmp_path}/file/service.db").startswith(f"--db {tmp_path}/file/service.db: cannot be written")
    assert refused(":memory:").startswith("--db: expected the path of a file")
    assert refused("mysql://me:hunter2@host/db").startswith("--db mysql://host/db: expected sqlite:///FILE")


def test_a_database_of_another_host_is_refused_without_its_password(cluster: Cluster) -> None:
    socket = f"?host={cluster.folder}"
    port = free_port()
    nobody = f"postgresql://me:hunter2@127.0.0.1:{port}/service"
    cases = {
        nobody: f"--db postgresql://me@127.0.0.1:{port}/service: connection failed",
        f"postgresql://postgres:hunter2@/nowhere{socket}": 'database "nowhere" does not exist',
        f"postgresql://locked:hunter2@/postgres{socket}": 'role "locked" does not exist',
        f"postgresql://postgres:hunter2@/postgres{socket}&hunter=2": "hunter",
    }
    for name, reason in cases.items():
        message = refused(name)
        assert reason in message
        assert ("; check the address, and that Postgres runs" in message) == ("refused" in message)
        assert "hunter2" not in message


def test_a_folder_that_cannot_be_written_is_named() -> None:
    with folder_of_nobody() as folder:
        hand_to_nobody(folder)
        (folder / "closed").mkdir()
        (folder / "closed").chmod(0o555)
        ended = spawn_as_nobody("service", "migrate", "--db", "closed/service.db", cwd=folder)
    assert (ended.code, ended.out) == (2, "")
    assert "error: --db closed/service.db: cannot be written (Permission denied" in ended.err


@pytest.mark.parametrize("kind", ["sqlite"])
def test_only_the_owner_reads_a_new_database(empty: URL, tmp_path: Path) -> None:
    assert rag_contract("service", "migrate", "--db", name_of(empty)).code == 0
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}


def test_an_address_in_the_environment_is_used(empty: URL, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAG_CONTRACT_DB", name_of(empty))
    assert rag_contract("service", "migrate").code == 0
    with open_database(empty) as database:
        check_revision(database)


def test_the_default_is_a_file_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RAG_CONTRACT_DB", raising=False)
    assert rag_contract("service", "migrate").code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["service.db"]


def test_the_service_is_an_extra(tmp_path: Path) -> None:
    """Without its packages, its commands say what to install."""
    hide = "import sys\nsys.modules['sqlalchemy'] = sys.modules['litestar'] = None\n"
    entry = "from ragcontract.guard import entry_point\nentry_point()\n"
    for command in (("service", "migrate"), ("serve",)):
        done = subprocess.run(
            [sys.executable, "-c", hide + entry, *command], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert 'install it: pip install "rag-contract[service]"' in done.stderr
    assert not list(tmp_path.iterdir())
