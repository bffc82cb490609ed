"""The routes of administrators: users, keys, and the audit log."""

from collections.abc import Callable
from typing import Annotated, TypeVar
from urllib.parse import urlencode

import msgspec
from litestar import delete, get, patch, post
from litestar.params import JSONBody, PathParameter
from msgspec import Meta, Struct
from sqlalchemy import Connection

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.service.accounts import (
    NewKey,
    Role,
    Scope,
    add_machine_key,
    add_user,
    keys_below,
    revoke_key,
    update_user,
    user_named,
    users_below,
)
from ragcontract.service.audit import Author, audit_below
from ragcontract.service.database import BIGINT, Database, Milliseconds, Rows
from ragcontract.service.logging_in import create_link
from ragcontract.service.projects_and_runs import project_id
from ragcontract.service.web.authentication import ADMIN
from ragcontract.service.web.parameters import DEFAULT_LIMIT, By, Cursor, Db, Limit, Page, Whole, page_of, position_of
from ragcontract.service.web.problem_details import ProblemError

T = TypeVar("T")
NO_USER = "there is no such user"
UserName = Annotated[str, PathParameter(description="The name of a user.")]


class User(Struct, frozen=True, kw_only=True):
    """A person who may log in."""

    name: str
    role: Role
    created_at: Milliseconds
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
    expires_at: Milliseconds


class Key(Struct, frozen=True, kw_only=True):
    """A key, without its secret part."""

    prefix: Annotated[str, Meta(description="The 8 characters after rc_.")]
    name: str
    user: Annotated[str | None, Meta(description="Whose key it is; null for that of a machine.")] = None
    scopes: Annotated[list[Scope], Meta(description="What a machine may do; empty for the key of a user.")]
    project: Annotated[str | None, Meta(description="The only project that it may see; null for all.")] = None
    created_at: Milliseconds
    expires_at: Milliseconds | None = None
    last_used_at: Annotated[int | None, Meta(description="To within a minute.")] = None
    revoked_at: Milliseconds | None = None


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

    at: Milliseconds
    actor: Annotated[str, Meta(description="Such as user:ana, key:rc_1a2b3c4d, or command line.")]
    action: Annotated[str, Meta(description="Such as user.add.")]
    subject: str
    detail: str | None = None
    ip: str | None = None


@get("/users", access=ADMIN, sync_to_thread=True)
def list_users(database: Db, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None) -> Page[User]:
    """List the users, the newest first."""
    return page_below(database, users_below, User, limit, cursor)


@post("/users", access=ADMIN, sync_to_thread=True)
def post_user(data: JSONBody[NewUser], database: Db, author: By) -> User:
    """Add a user, who can log in with a link."""

    def job(connection: Connection) -> User:
        add_user(connection, data.name, data.role, author)
        return _user(connection, data.name)

    return database.write(job)


@patch("/users/{name:str}", access=ADMIN, sync_to_thread=True)
def patch_user(name: UserName, data: JSONBody[UserChange], database: Db, author: By) -> User:
    """Change the role of a user, or whether the user may log in."""

    def job(connection: Connection) -> User:
        change_user(connection, name, data, author)
        return _user(connection, name)

    return database.write(job)


@post("/users/{name:str}/link", access=ADMIN, sync_to_thread=True)
def post_link(name: UserName, database: Db, author: By) -> Link:
    """Make a link that logs a user in; the one before is no longer valid."""
    link = database.write(lambda connection: make_link(connection, name, author))
    return Link(path=path_of(link), expires_at=author.at + bounds.LINK_SECONDS * 1000)


@get("/tokens", access=ADMIN, sync_to_thread=True)
def list_keys(database: Db, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None) -> Page[Key]:
    """List the keys of users and machines, the newest first."""
    return page_below(database, keys_below, Key, limit, cursor)


@post("/tokens", access=ADMIN, sync_to_thread=True)
def post_key(data: JSONBody[NewMachineKey], database: Db, author: By) -> CreatedKey:
    """Make a key of a machine."""
    key = database.write(lambda connection: make_key(connection, data, author))
    return CreatedKey(key=key.text, prefix=key.prefix)


@delete("/tokens/{prefix:str}", access=ADMIN, sync_to_thread=True)
def delete_key(
    prefix: Annotated[str, PathParameter(description="The 8 characters after rc_.")], database: Db, author: By
) -> None:
    """Revoke a key, for good. With that of a user, the user's sessions end as well."""
    if not database.write(lambda connection: revoke_key(connection, prefix, author)):
        raise ProblemError(404, "there is no such key")


@get("/audit", access=ADMIN, sync_to_thread=True)
def list_audit(database: Db, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None) -> Page[AuditRow]:
    """List what was done, the newest first. Rows are kept for 400 days."""
    return page_below(database, audit_below, AuditRow, limit, cursor)


def change_user(connection: Connection, name: str, change: UserChange, author: Author) -> None:
    """Change a user; answers 404 if there is none of this name."""
    if not update_user(connection, name, author, role=change.role, disabled=change.disabled):
        raise ProblemError(404, NO_USER)


def make_link(connection: Connection, name: str, author: Author) -> str:
    """Return the secret of a new link of a user; answers 404 if there is none of this name."""
    if user_named(connection, name) is None:
        raise ProblemError(404, NO_USER)
    return create_link(connection, name, author)


def make_key(connection: Connection, new: NewMachineKey, author: Author) -> NewKey:
    """Make a key of a machine, for a project that there is."""
    number = None if new.project is None else project_id(connection, new.project)
    if new.project is not None and number is None:
        raise InputError(["project: there is none with this slug"])
    return add_machine_key(connection, new.name, new.scopes, author, project_id=number, days=new.expires_in_days)


def path_of(link: str) -> str:
    """Return the path of a link, from the secret in it."""
    return f"/login?{urlencode({'link': link})}"


def _user(connection: Connection, name: str) -> User:
    return msgspec.convert(user_named(connection, name), User, from_attributes=True)


def page_below(
    database: Database,
    rows_below: Callable[[Connection, int, int], Rows],
    kind: type[T],
    limit: int,
    cursor: str | None,
) -> Page[T]:
    """Return a page of a list whose newest rows come first."""
    with database.read() as connection:
        rows = rows_below(connection, position_of(cursor, Whole) or BIGINT, limit + 1)
    return page_of(rows, limit, kind, lambda row: row["id"])


ROUTES = (list_users, post_user, patch_user, post_link, list_keys, post_key, delete_key, list_audit)
