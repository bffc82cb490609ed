"""The audit log: who did what, when and from where. Its rows are never changed, and are deleted when they are old."""

from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, select

from ragcontract.core import bounds
from ragcontract.service.database import DAY, Rows, index_key, storable
from ragcontract.service.tables import audit, deletions

COMMAND_LINE = "command line"


class Author(Struct, frozen=True, kw_only=True):
    """Who does something, and when."""

    actor: str  # of a principal, or the command line
    at: int
    ip: str | None = None


def record(connection: Connection, author: Author, action: str, subject: str, detail: str | None = None) -> None:
    """Record what somebody did, in the transaction that does it.

    ``action`` is a word such as ``user.add``, and ``subject`` is what it was done to. None of them contains
    a secret.
    """
    row = {
        "at": author.at,
        "actor": index_key(author.actor),
        "action": action,
        "subject": index_key(subject),
        "detail": None if detail is None else storable(detail),
        "ip": None if author.ip is None else index_key(author.ip),
    }
    connection.execute(audit.insert().values(row))


def audit_below(connection: Connection, number: int, limit: int) -> Rows:
    """Return the rows of the log whose ids are smaller, the newest first."""
    rows = select(audit).where(audit.c.id < number).order_by(audit.c.id.desc()).limit(limit)
    return connection.execute(rows).mappings().all()


def actor_of(connection: Connection, action: str, subject: str, at: int) -> str | None:
    """Return who did something at this time; None if nobody did, or it is no longer kept."""
    done = audit.c.at == at, audit.c.action == action, audit.c.subject == index_key(subject)
    actor: str | None = connection.execute(select(audit.c.actor).where(*done).limit(1)).scalar()
    return actor


@contextmanager
def deleting_frozen_rows(connection: Connection) -> Iterator[None]:
    """Let a transaction delete frozen rows within the block. No other transaction can.

    If the block raises, its changes are undone.
    """
    with connection.begin_nested():
        connection.execute(deletions.insert().values(reason="age"))
        yield
        connection.execute(deletions.delete())


def too_old(now: int) -> "ColumnElement[bool]":
    """Return the condition that a row is no longer kept."""
    return audit.c.at < now - bounds.AUDIT_DAYS * DAY
