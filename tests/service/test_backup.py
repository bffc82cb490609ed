"""A copy of the database while it is written to, a check of it, and a restored copy that has all that was there."""

import re
import stat
import subprocess
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from threading import Event, Thread

import pytest
from sqlalchemy import URL, Connection, func, select

from ragcontract.service.accounts import Principal
from ragcontract.service.commands import TRIGGERS
from ragcontract.service.database import Database
from ragcontract.service.database_store import DatabaseStore
from ragcontract.service.migrate import newest
from ragcontract.service.tables import blobs, points, runs
from tests.forking import plain_environ
from tests.history.entries import digest, results_of
from tests.history.trends import run_at
from tests.process import COMMAND, rag_contract
from tests.runner import ROOT
from tests.service.conftest import name_of, open_database
from tests.service.running import serving

WHOLE = (0, "the database is whole\n", "")
GUIDE = (ROOT / "docs" / "guides" / "run-the-service.md").read_text()
(RESTORE,) = re.findall(r"--entrypoint sh serve -c '(.*)' < ", GUIDE)


def recorded(database: Database, number: int) -> None:
    """Record a run with a result set of its own, a point and a broken query."""
    new = run_at(number, results_of(f"d{number}"), mean=0.5, failed=["q1"])
    DatabaseStore(database, Principal(actor="key:ci")).add(new)


@pytest.fixture
def filled(database: Database) -> Database:
    """A database with three runs in a project."""

    for number in range(1, 4):
        recorded(database, number)
    return database


def counts(database: Database) -> tuple[int, ...]:
    with database.read() as connection:
        tables = (runs, points, blobs)
        return tuple(connection.execute(select(func.count()).select_from(table)).scalar_one() for table in tables)


def restore(copy: Path, commands: Path) -> tuple[int, str]:
    """Run the guide's line for it in the folder of the database; return its exit code and what it prints."""
    commands.mkdir(exist_ok=True)
    (commands / "rag-contract").write_text(f'#!/bin/sh\nexec {" ".join(COMMAND)} "$@"\n')
    (commands / "rag-contract").chmod(0o700)
    environ = plain_environ()
    environ["PATH"] = f"{commands}:{environ['PATH']}"
    with copy.open("rb") as backup:
        shell = ["sh", "-c", RESTORE]
        done = subprocess.run(
            shell, stdin=backup, capture_output=True, text=True, check=False, cwd=copy.parent, env=environ
        )
    return done.returncode, done.stdout


@pytest.mark.parametrize("kind", ["sqlite"])
@pytest.mark.parametrize("share", [0, 0.5, 0.999])
def test_a_truncated_copy_leaves_the_database_in_place(
    share: float, filled: Database, migrated: URL, tmp_path: Path
) -> None:
    file, copy = tmp_path / "service.db", tmp_path / "copy.db"
    assert rag_contract("service", "backup", str(copy), "--db", name_of(migrated)).code == 0
    filled.close()
    before, content = file.read_bytes(), copy.read_bytes()
    copy.write_bytes(content[: int(len(content) * share)])
    assert restore(copy, tmp_path / "bin")[0] != 0
    assert file.read_bytes() == before
    copy.write_bytes(content)
    assert restore(copy, tmp_path / "bin") == WHOLE[:2]


@pytest.mark.parametrize("kind", ["sqlite"])
def test_a_copy_that_is_made_under_writing_is_whole_and_restores_all(
    filled: Database, migrated: URL, tmp_path: Path
) -> None:
    file, copy = tmp_path / "service.db", tmp_path / "copy.db"
    enough, stop = Event(), Event()
    acknowledged = [3]

    def write() -> None:
        number = acknowledged[0]
        while not stop.is_set():
            number += 1
            recorded(filled, number)
            acknowledged[0] = number
            if number > 100:
                enough.set()

    writer = Thread(target=write, daemon=True)
    writer.start()
    assert enough.wait(60)
    before = acknowledged[0]
    ended = rag_contract("service", "backup", str(copy), "--db", name_of(migrated))
    stop.set()
    writer.join()
    assert ended == (0, f"copied to {copy}\n", "")
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert rag_contract("service", "check", "--db", str(copy)) == WHOLE
    with filled.read() as connection:
        everything = {each.id: tuple(each) for each in connection.execute(runs.select())}
    filled.close()
    left, earlier = tmp_path / "service.db-wal", tmp_path / "service.db.0001"
    left.write_bytes(b"of the database before")
    earlier.write_bytes(b"made by a migration")
    content = copy.read_bytes()
    assert restore(copy, tmp_path / "bin") == WHOLE[:2]
    assert file.read_bytes() == content
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not left.exists()
    assert earlier.exists()
    with serving("--db", str(file), cwd=tmp_path) as served:
        assert served.client.get("/readyz").status_code == 200
        with open_database(migrated) as restored:
            number = counts(restored)[0]
            assert counts(restored) == (number, number, number)
            assert number >= before
            with restored.read() as connection:
                for each in connection.execute(runs.select()):
                    assert everything[each.id] == tuple(each)
        assert rag_contract("service", "check", "--db", str(file)) == WHOLE


@pytest.mark.parametrize("kind", ["sqlite"])
def test_a_copy_replaces_no_file(migrated: URL, tmp_path: Path) -> None:
    taken, missing = tmp_path / "taken.db", tmp_path / "none" / "copy.db"
    taken.write_text("mine")
    for path, reason in ((taken, "File exists"), (missing, "No such file or directory"), (tmp_path, "File exists")):
        ended = rag_contract("service", "backup", str(path), "--db", name_of(migrated))
        assert ended == (2, "", f"error: {path}: cannot be written ({reason})\n")
    assert taken.read_text() == "mine"


def damage_page(file: Path) -> None:
    """Overwrite a page that has rows."""
    data = file.read_bytes()
    page = data.index(b"mrr_at_5") // 4096 * 4096
    file.write_bytes(data[:page] + b"\xff" * 4096 + data[page + 4096 :])


@pytest.mark.parametrize("kind", ["sqlite"])
def test_a_copy_that_fails_leaves_nothing(filled: Database, migrated: URL, tmp_path: Path) -> None:
    filled.close()
    damage_page(tmp_path / "service.db")
    ended = rag_contract("service", "backup", str(tmp_path / "copy.db"), "--db", name_of(migrated))
    assert (ended.code, ended.out) == (2, "")
    assert "copy.db: cannot be written (database disk image is malformed)" in ended.err
    assert not (tmp_path / "copy.db").exists()


@pytest.mark.parametrize("kind", ["postgres"])
def test_postgres_has_its_own_copies(migrated: URL, tmp_path: Path) -> None:
    ended = rag_contract("service", "backup", str(tmp_path / "copy"), "--db", name_of(migrated))
    assert (ended.code, ended.out) == (2, "")
    assert f"for Postgres, use `pg_dump --format=custom --file={tmp_path}/copy`" in ended.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", [("backup", "copy.db"), ("check",)])
def test_a_database_that_is_missing_is_not_created(
    command: Sequence[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    advice = "name the one that is served, or create it with `rag-contract service migrate`"
    message = f"error: --db service.db: there is no such file; {advice}\n"
    assert rag_contract("service", *command) == (2, "", message)
    assert not list(tmp_path.iterdir())


def test_a_database_as_it_should_be_is_whole(filled: Database, migrated: URL) -> None:
    assert counts(filled) == (3, 3, 3)
    assert rag_contract("service", "check", "--db", name_of(migrated)) == WHOLE


def first_blob(number: int) -> str:
    return digest(results_of(f"d{number}"))


def with_body(body: bytes) -> Callable[[Connection], object]:
    def job(connection: Connection) -> None:
        connection.execute(blobs.update().where(blobs.c.sha256 == first_blob(1)).values(body=body))

    return job


def sql(statement: str) -> Callable[[Connection], object]:
    return lambda connection: connection.exec_driver_sql(statement)


DATA = results_of("d1")
DAMAGES: dict[str, tuple[Callable[[Connection], object], str]] = {
    "another content": (with_body(zlib.compress(b"x")), f"blob {first_blob(1)} is damaged"),
    "a cut blob": (with_body(zlib.compress(DATA)[:-6]), f"blob {first_blob(1)} is damaged"),
    "noise": (with_body(b"noise"), f"blob {first_blob(1)} is damaged (Error -3 "),
    "another size": (sql("UPDATE blobs SET bytes = 7"), f"blob {first_blob(2)} is damaged"),
    "an entry of another run": (
        sql("UPDATE runs SET entry = (SELECT entry FROM runs WHERE id = 2)"),
        "runs: 1: entries/",
    ),
    "an entry that is none": (sql("UPDATE runs SET entry = 'text' WHERE id = 3"), "is not an entry of a history"),
    "a key that is none": (sql("UPDATE runs SET key = '../x' WHERE id = 3"), "runs: 3: entries/docs/"),
    "an entry with another verdict": (
        sql("UPDATE runs SET entry = replace(entry, '\"fail\"', '\"pass\"') WHERE id = 2"),
        "runs: 2: its column verdict is not what its entry says; restore a backup",
    ),
    "another commit": (
        sql("UPDATE runs SET commit_sha = NULL WHERE id = 2"),
        "runs: 2: its column commit_sha is",
    ),
    "other results": (
        sql("UPDATE runs SET results = (SELECT results FROM runs WHERE id = 1) WHERE id = 2"),
        "runs: 2: its column results is not what its entry says",
    ),
    "a missing point": (sql("DELETE FROM points WHERE run_id = 2"), "runs: 2: its points are not what its entry says"),
    "another value": (sql("UPDATE points SET value = 1 WHERE run_id = 3"), "runs: 3: its points are not what"),
    "a point too many": (
        sql("INSERT INTO points (project_id, metric, at, run_id) VALUES (1, 'x', 1, 3)"),
        "runs: 3: its points are not what",
    ),
    "a missing broken query": (
        sql("DELETE FROM broken WHERE run_id = 3"),
        "runs: 3: its broken queries are not what its entry says",
    ),
    "an open protection": (sql("INSERT INTO deletions VALUES ('age')"), "what was recorded is not protected"),
    "an older revision": (
        sql("UPDATE alembic_version SET version_num = '0000'"),
        f"the database is at 0000, this rag-contract knows {newest()}",
    ),
}


def drop_trigger(connection: Connection, name: str) -> None:
    table = name.partition("_")[0]
    connection.exec_driver_sql(f"DROP TRIGGER {name}" + ("" if connection.dialect.name == "sqlite" else f" ON {table}"))


def test_a_trigger_that_was_dropped_is_named(filled: Database, migrated: URL) -> None:
    for number, name in enumerate(sorted(TRIGGERS), 1):
        filled.write(partial(drop_trigger, name=name))
        ended = rag_contract("service", "check", "--db", name_of(migrated))
        assert (ended.code, len(ended.out.splitlines())) == (1, number)
        assert f"trigger {name}: is missing, so what was recorded is not protected; restore a backup\n" in ended.out


@pytest.mark.parametrize("kind", ["postgres"])
def test_a_trigger_that_was_disabled_is_named(filled: Database, migrated: URL) -> None:
    filled.write(sql("ALTER TABLE points DISABLE TRIGGER points_delete"))
    assert "trigger points_delete: is missing" in rag_contract("service", "check", "--db", name_of(migrated)).out


@pytest.mark.parametrize(("damage", "message"), DAMAGES.values(), ids=DAMAGES.keys())
def test_what_is_wrong_is_named(
    damage: Callable[[Connection], object], message: str, filled: Database, migrated: URL
) -> None:
    def job(connection: Connection) -> None:
        for name in ("runs_update", "blobs_update", "points_update", "points_delete"):
            drop_trigger(connection, name)
        damage(connection)

    filled.write(job)
    ended = rag_contract("service", "check", "--db", name_of(migrated))
    assert (ended.code, ended.err) == (1, "")
    assert message in ended.out
    assert all(line.endswith("\n") for line in ended.out.splitlines(keepends=True))


@pytest.mark.parametrize("kind", ["sqlite"])
def test_a_damaged_file_is_not_whole(filled: Database, migrated: URL, tmp_path: Path) -> None:
    filled.close()
    damage_page(tmp_path / "service.db")
    ended = rag_contract("service", "check", "--db", name_of(migrated))
    assert (ended.code, ended.err) == (1, "")
    assert "integrity: " in ended.out or "malformed" in ended.out


@pytest.mark.parametrize("kind", ["sqlite"])
def test_a_row_without_its_parent_is_named(filled: Database, migrated: URL) -> None:
    raw = filled.engine.raw_connection()
    raw.cursor().execute("PRAGMA foreign_keys=OFF")
    raw.cursor().execute("UPDATE tokens SET project_id = 7")
    raw.cursor().execute("INSERT INTO broken (project_id, query_id, run_id, rules) VALUES (1, 'q', 99, '[]')")
    raw.invalidate()
    ended = rag_contract("service", "check", "--db", name_of(migrated))
    assert (ended.code, ended.err) == (1, "")
    assert "refers to a row of runs that is gone" in ended.out
