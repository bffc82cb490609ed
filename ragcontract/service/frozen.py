"""What was recorded stays as it is: triggers of the database itself refuse to change or delete it.

They let it go with its project, and because of its age: in a transaction that has a row in the table ``deletions``.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection

from ragcontract.service.tables import deletions

FROZEN = ("points", "runs", "blobs", "audit")
TRIGGERS = frozenset(f"{table}_{event}" for table in FROZEN for event in ("update", "delete"))
_WORKING = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'trigger'",
    "postgresql": "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgenabled IN ('O', 'A')",
}


@contextmanager
def retention(connection: Connection) -> Iterator[None]:
    """Allow a transaction to delete, within the block, what is kept otherwise. No other transaction may do so.

    If the block raises, what it did is undone.
    """
    with connection.begin_nested():
        connection.execute(deletions.insert().values(reason="age"))
        yield
        connection.execute(deletions.delete())


def missing_triggers(connection: Connection) -> list[str]:
    """Return the names of the triggers that somebody has dropped or disabled."""
    working = connection.exec_driver_sql(_WORKING[connection.dialect.name]).scalars()
    return sorted(TRIGGERS.difference(working))


def refusing(dialect: str, table: str, event: str, condition: str, reason: str) -> list[str]:
    """Return the statements that make a trigger, which refuses an event for each row of which a condition is true.

    The condition names the columns of the row ``OLD.column`` and ``NEW.column``. On both databases the error is that
    of a violated constraint.
    """
    name = f"{table}_{event.lower()}"
    when = f"CREATE TRIGGER {name} BEFORE {event} ON {table} FOR EACH ROW"
    if dialect == "sqlite":
        return [f"{when} WHEN {condition} BEGIN SELECT RAISE(ABORT, '{reason}'); END"]
    raising = f"RAISE EXCEPTION '{reason}' USING ERRCODE = 'integrity_constraint_violation'"
    row = "NEW" if event == "UPDATE" else "OLD"
    body = f"BEGIN IF {condition} THEN {raising}; END IF; RETURN {row}; END"
    return [
        f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ {body} $$",
        f"{when} EXECUTE FUNCTION {name}()",
    ]
