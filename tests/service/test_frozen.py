"""What was recorded stays: the databases themselves refuse to change and to delete it."""

from collections.abc import Sequence
from contextlib import suppress

import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from ragcontract.service.audit import deleting_frozen_rows
from ragcontract.service.database import Database

DIGESTS = [letter * 64 for letter in "abcd"]  # of a report, results, golden queries; the last one is in no run
ROWS = (
    "INSERT INTO projects (id, slug, name, secret, created_at) VALUES (1, 'a', 'a', 's', 1), (2, 'b', 'b', 's', 1)",
    *(
        f"INSERT INTO blobs (sha256, kind, bytes, body, created_at) VALUES ('{digest}', '{kind}', 1, '', 1)"
        for digest, kind in zip(DIGESTS, ("report", "results", "golden", "results"), strict=True)
    ),
    f"""INSERT INTO runs (id, project_id, key, origin, state, created_at, verdict, entry, report, results, golden)
    VALUES (1, 1, 'k1', 'ci', 'completed', 1, 'pass', 'text', '{DIGESTS[0]}', '{DIGESTS[1]}', '{DIGESTS[2]}')""",
    "INSERT INTO runs (id, project_id, key, origin, state, created_at) VALUES (2, 1, 'k2', 'service', 'running', 1)",
    "INSERT INTO points (project_id, metric, at, run_id, value) VALUES (1, 'mrr_at_5', 1, 1, 0.5)",
    "INSERT INTO broken (project_id, query_id, run_id, rules) VALUES (1, 'q1', 1, '[]')",
    "INSERT INTO audit (id, at, actor, action, subject) VALUES (1, 1, 'user:ana', 'login', '')",
)
COUNTED = ("projects", "runs", "points", "broken", "blobs", "audit", "deletions")
POINTS, RUN = "points never change", "what a run has recorded never changes"
REFUSED = {
    "UPDATE points SET value = 1": POINTS,
    "UPDATE points SET tag = 'x'": POINTS,
    "DELETE FROM points": "points go with their project, or by age",
    "DELETE FROM points WHERE run_id = 1": "points go with their project, or by age",
    "UPDATE runs SET entry = 'other' WHERE id = 1": RUN,
    "UPDATE runs SET entry = NULL WHERE id = 1": RUN,
    "UPDATE runs SET verdict = 'fail' WHERE id = 1": RUN,
    f"UPDATE runs SET report = '{DIGESTS[3]}' WHERE id = 1": RUN,
    "UPDATE runs SET report = NULL": RUN,
    "UPDATE runs SET results = NULL": RUN,
    "UPDATE runs SET golden = NULL": RUN,
    "UPDATE runs SET key = 'other' WHERE id = 1": RUN,
    "UPDATE runs SET project_id = 2 WHERE id = 2": RUN,
    "UPDATE runs SET id = 3 WHERE id = 2": RUN,
    "DELETE FROM runs": "runs with an entry go with their project, or by age",
    "DELETE FROM runs WHERE id = 1": "runs with an entry go with their project, or by age",
    "UPDATE blobs SET body = 'x'": "blobs never change",
    f"UPDATE blobs SET kind = 'golden' WHERE sha256 = '{DIGESTS[3]}'": "blobs never change",
    **{f"DELETE FROM blobs WHERE sha256 = '{digest}'": "a run names this blob" for digest in DIGESTS[:3]},
    "UPDATE audit SET actor = 'user:bob'": "the audit log never changes",
    "DELETE FROM audit": "rows of the audit log go by age",
}
KEPT = (2, 2, 1, 1, 4, 1, 0)
DONE = {
    "a run that has no entry gets one": (
        f"UPDATE runs SET entry = 'e', verdict = 'fail', report = '{DIGESTS[0]}', state = 'blocked' WHERE id = 2",
        KEPT,
    ),
    "a run that has no entry gets another key": ("UPDATE runs SET key = 'other' WHERE id = 2", KEPT),
    "the state of a run changes": ("UPDATE runs SET state = 'cancelled', problem = 'p', lease_until = 5", KEPT),
    "an update that changes nothing": ("UPDATE runs SET entry = entry, verdict = 'pass' WHERE id = 1", KEPT),
    "a run without an entry goes": ("DELETE FROM runs WHERE id = 2", (2, 1, 1, 1, 4, 1, 0)),
    "a blob that no run names goes": (f"DELETE FROM blobs WHERE sha256 = '{DIGESTS[3]}'", (2, 2, 1, 1, 3, 1, 0)),
    "a project goes with all it has": ("DELETE FROM projects WHERE id = 1", (1, 0, 0, 0, 4, 1, 0)),
}
BY_AGE = {
    "DELETE FROM runs WHERE id = 1": (2, 1, 0, 0, 4, 1, 0),
    "DELETE FROM points": (2, 2, 0, 1, 4, 1, 0),
    "DELETE FROM audit": (2, 2, 1, 1, 4, 0, 0),
}
STILL_REFUSED = [event for event in REFUSED if event.startswith("UPDATE")] + [
    f"DELETE FROM blobs WHERE sha256 = '{DIGESTS[1]}'"
]


@pytest.fixture
def filled(database: Database) -> Database:
    execute(database, ROWS)
    return database


def execute(database: Database, statements: Sequence[str], *, by_age: bool = False) -> None:
    """Run statements in one transaction."""

    def run(connection: Connection) -> None:
        for statement in statements:
            if by_age:
                with deleting_frozen_rows(connection):
                    connection.exec_driver_sql(statement)
            else:
                connection.exec_driver_sql(statement)

    database.write(run)


def counts(database: Database) -> tuple[int, ...]:
    with database.read() as connection:
        return tuple(connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one() for table in COUNTED)


@pytest.mark.parametrize(("statement", "why"), REFUSED.items(), ids=REFUSED.keys())
def test_sql_cannot_change_what_was_recorded(statement: str, why: str, filled: Database) -> None:
    with pytest.raises(IntegrityError, match=why):
        execute(filled, [statement])
    assert counts(filled) == KEPT


@pytest.mark.parametrize(("statement", "left"), DONE.values(), ids=DONE.keys())
def test_the_rest_goes_on(statement: str, left: tuple[int, ...], filled: Database) -> None:
    execute(filled, [statement])
    assert counts(filled) == left


@pytest.mark.parametrize(("statement", "left"), BY_AGE.items(), ids=BY_AGE.keys())
def test_what_is_old_may_go(statement: str, left: tuple[int, ...], filled: Database) -> None:
    execute(filled, [statement], by_age=True)
    assert counts(filled) == left
    execute(filled, ["INSERT INTO audit (id, at, actor, action, subject) VALUES (2, 1, 'a', 'b', 'c')"])
    with pytest.raises(IntegrityError, match="by age"):
        execute(filled, ["DELETE FROM audit"])


@pytest.mark.parametrize("statement", STILL_REFUSED)
def test_what_is_old_does_not_change(statement: str, filled: Database) -> None:
    with pytest.raises(IntegrityError, match=r"never change|a run names this blob"):
        execute(filled, [statement], by_age=True)
    assert counts(filled) == KEPT


@pytest.mark.parametrize("kind", ["postgres"])  # SQLite has one transaction that writes at a time
def test_no_other_transaction_may_delete_meanwhile(filled: Database) -> None:
    with filled.engine.begin() as first, deleting_frozen_rows(first):
        first.exec_driver_sql("DELETE FROM points")
        with pytest.raises(IntegrityError, match="by age"), filled.engine.begin() as second:
            second.exec_driver_sql("DELETE FROM audit")
    assert counts(filled) == (2, 2, 0, 1, 4, 1, 0)


def test_a_deletion_by_age_that_fails_leaves_no_permission(filled: Database) -> None:
    def failing(connection: Connection) -> None:
        with suppress(ZeroDivisionError), deleting_frozen_rows(connection):
            connection.exec_driver_sql("DELETE FROM points")
            raise ZeroDivisionError
        connection.exec_driver_sql("DELETE FROM audit")

    with pytest.raises(IntegrityError, match="by age"):
        filled.write(failing)
    assert counts(filled) == KEPT


@pytest.mark.parametrize("kind", ["sqlite"])  # only SQLite replaces
def test_a_replacement_is_a_change(filled: Database) -> None:
    row = "INSERT OR REPLACE INTO points (project_id, metric, at, run_id, value) VALUES (1, 'mrr_at_5', 1, 1, 0.9)"
    with pytest.raises(IntegrityError, match="by age"):
        execute(filled, [row])
