"""The routes of administrators: users, keys, and the audit log."""

import re
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar
from urllib.parse import urlencode

from litestar import delete, get, patch, post
from litestar.params import JSONBody, PathParameter, QueryParameter
from msgspec import Meta, Struct
from sqlalchemy import Connection, Row, select

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.service.access import ADMIN, Role, Scope
from ragcontract.service.accounts import (
    add_machine_key,
    add_user,
    keys_below,
    revoke_key,
    update_user,
    user_named,
    users_below,
)
from ragcontract.service.audit import audit_below
from ragcontract.service.database import Database, Page
from ragcontract.service.logging_in import create_link
from ragcontract.service.tables import projects
from ragcontract.service.web.authentication import By, Db
from ragcontract.service.web.problem_details import ProblemError

T = TypeVar("T")
PAGE = 50
Time = Annotated[int, Meta(description="Milliseconds since 1970, UTC.")]
Limit = Annotated[int, QueryParameter(ge=1, le=bounds.PAGE_ITEMS, description="How many items, at most.")]
Cursor = Annotated[str | None, QueryParameter(description="What the part before has as `next`.")]
UserName = Annotated[str, PathParameter(description="The name of a user.")]
_CURSOR = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)


class User(Struct, frozen=True, kw_only=True):
    """A person who may log in."""

    name: str
    role: Role
    created_at: Time
    disabled_at: Annotated[int | None, Meta(description="Since when the user may not log in.")] = None


class NewUser(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A user to add."""

    name: str
    role: Role


class UserChange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to change of a user; null leaves it as it is."""

    role: Role | None = None
    disabled: Annotated[bool | None, Meta(description="Ends all sessions, and makes all keys invalid.")] = None


class Link(Struct, frozen=True, kw_only=True):
    """A link that logs in once, within 15 minutes."""

    path: Annotated[str, Meta(description="What follows the address of the service. It is a secret.")]
    expires_at: Time


class Key(Struct, frozen=True, kw_only=True):
    """A key, without its secret part."""

    prefix: Annotated[str, Meta(description="The 8 characters after rc_.")]
    name: str
    user: Annotated[str | None, Meta(description="Whose key it is; null for that of a machine.")] = None
    scopes: Annotated[list[Scope], Meta(description="What a machine may do; empty for the key of a user.")]
    project: Annotated[str | None, Meta(description="The only project that it may see; null for all.")] = None
    created_at: Time
    expires_at: Time | None = None
    last_used_at: Annotated[int | None, Meta(description="To within a minute.")] = None
    revoked_at: Time | None = None


class NewMachineKey(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A key of a machine to make."""

    name: Annotated[str, Meta(description="What it is for.")]
    scopes: list[Scope]
    project: Annotated[str | None, Meta(description="The slug of the only project that it may see.")] = None
    expires_in_days: int | None = None


class CreatedKey(Struct, frozen=True, kw_only=True):
    """A key that was just made."""

    key: Annotated[str, Meta(description="The whole key. It is a secret, and is shown only now.")]
    prefix: str


class AuditRow(Struct, frozen=True, kw_only=True):
    """Something that somebody did."""

    at: Time
    actor: Annotated[str, Meta(description="Such as user:ana, key:rc_1a2b3c4d, or command line.")]
    action: Annotated[str, Meta(description="Such as user.add.")]
    subject: str
    detail: str | None = None
    ip: str | None = None


@get("/users", access=ADMIN, sync_to_thread=True)
def list_users(database: Db, limit: Limit = PAGE, cursor: Cursor = None) -> Page[User]:
    """List the users, the newest first."""
    return _page(database, users_below, _user, limit, cursor)


@post("/users", access=ADMIN, sync_to_thread=True)
def post_user(data: JSONBody[NewUser], database: Db, author: By) -> User:
    """Add a user, who can log in with a link."""

    def job(connection: Connection) -> User:
        add_user(connection, data.name, data.role, author)
        return _user(user_named(connection, data.name))

    return database.write(job)


@patch("/users/{name:str}", access=ADMIN, sync_to_thread=True)
def patch_user(name: UserName, data: JSONBody[UserChange], database: Db, author: By) -> User:
    """Change the role of a user, or whether the user may log in."""

    def job(connection: Connection) -> User:
        if not update_user(connection, name, author, role=data.role, disabled=data.disabled):
            raise ProblemError(404, "there is no such user")
        return _user(user_named(connection, name))

    return database.write(job)


@post("/users/{name:str}/link", access=ADMIN, sync_to_thread=True)
def post_link(name: UserName, database: Db, author: By) -> Link:
    """Make a link that logs a user in; the one before is no longer valid."""

    def job(connection: Connection) -> str:
        if user_named(connection, name) is None:
            raise ProblemError(404, "there is no such user")
        return create_link(connection, name, author)

    link = database.write(job)
    return Link(path=path_of(link), expires_at=author.at + bounds.LINK_SECONDS * 1000)


@get("/tokens", access=ADMIN, sync_to_thread=True)
def list_keys(database: Db, limit: Limit = PAGE, cursor: Cursor = None) -> Page[Key]:
    """List the keys of users and machines, the newest first."""
    return _page(database, keys_below, _key, limit, cursor)


@post("/tokens", access=ADMIN, sync_to_thread=True)
def post_key(data: JSONBody[NewMachineKey], database: Db, author: By) -> CreatedKey:
    """Make a key of a machine."""

    def job(connection: Connection) -> CreatedKey:
        project_id = None
        if data.project is not None:
            of_slug = select(projects.c.id).where(projects.c.slug == data.project)
            project_id = connection.execute(of_slug).scalar_one_or_none()
            if project_id is None:
                raise InputError(["project: there is none with this slug"])
        key = add_machine_key(
            connection, data.name, data.scopes, author, project_id=project_id, days=data.expires_in_days
        )
        return CreatedKey(key=key.text, prefix=key.prefix)

    return database.write(job)


@delete("/tokens/{prefix:str}", access=ADMIN, sync_to_thread=True)
def delete_key(
    prefix: Annotated[str, PathParameter(description="The 8 characters after rc_.")], database: Db, author: By
) -> None:
    """Revoke a key, for good. With that of a user, the user's sessions end as well."""
    if not database.write(lambda connection: revoke_key(connection, prefix, author)):
        raise ProblemError(404, "there is no such key")


@get("/audit", access=ADMIN, sync_to_thread=True)
def list_audit(database: Db, limit: Limit = PAGE, cursor: Cursor = None) -> Page[AuditRow]:
    """List what was done, the newest first. Rows are kept for 400 days."""
    return _page(database, audit_below, _audit_row, limit, cursor)


def path_of(link: str) -> str:
    """Return the path of a link, from the secret in it."""
    return f"/login?{urlencode({'link': link})}"


def _page(
    database: Database,
    rows_below: Callable[[Connection, int, int], Sequence[Row[Any]]],
    item: Callable[[Any], T],
    limit: int,
    cursor: str | None,
) -> Page[T]:
    if cursor is not None and not _CURSOR.fullmatch(cursor):
        raise InputError(["cursor: is not one of this list"])
    with database.read() as connection:
        rows = rows_below(connection, int(cursor) if cursor else sys.maxsize, limit + 1)
    return Page(items=[item(row) for row in rows[:limit]], next=str(rows[limit - 1].id) if rows[limit:] else None)


def _user(row: Any) -> User:
    return User(name=row.name, role=row.role, created_at=row.created_at, disabled_at=row.disabled_at)


def _key(row: Any) -> Key:
    return Key(
        prefix=row.prefix,
        name=row.name,
        user=row.user,
        scopes=row.scopes.split(),
        project=row.project,
        created_at=row.created_at,
        expires_at=row.expires_at,
        last_used_at=row.last_used_at,
        revoked_at=row.revoked_at,
    )


def _audit_row(row: Any) -> AuditRow:
    return AuditRow(at=row.at, actor=row.actor, action=row.action, subject=row.subject, detail=row.detail, ip=row.ip)


ROUTES = (list_users, post_user, patch_user, post_link, list_keys, post_key, delete_key, list_audit)
