"""Logging in with a key, or with a link that works once; and the sessions of browsers, which the database keeps.

The value of a session's cookie is random, and the database has its digest. Each login begins a new session, so
nobody can be made to log in to a session that somebody else has chosen.
"""

import secrets
from typing import NamedTuple, cast

from sqlalchemy import ColumnElement, Connection, and_, delete, exists, or_, select, update

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.history.interface import ConflictError
from ragcontract.service.accounts import (
    FIRST_ADMIN,
    LINK,
    NewKey,
    Principal,
    Role,
    add_personal_key,
    add_user,
    create_key,
    digest,
    has_users,
    principal_of_key,
    revoke_links,
    user_named,
)
from ragcontract.service.audit import COMMAND_LINE, Author, record
from ragcontract.service.tables import sessions, tokens, users


class Login(NamedTuple):
    """A session that has begun, and the key that a link was exchanged for."""

    cookie: str
    key: NewKey | None = None


def create_link(connection: Connection, name: str, author: Author) -> str:
    """Return the secret of a new link of a user; the link before it is no longer valid."""
    user = user_named(connection, name)
    if user is None:
        raise InputError([f"there is no user {name}"])
    if user.disabled_at is not None:
        raise ConflictError([f"{name} is disabled"])
    revoke_links(connection, user.id, author.at)
    expires_at = author.at + bounds.LINK_SECONDS * 1000
    key = create_key(connection, name="link", now=author.at, user_id=user.id, scopes=[LINK], expires_at=expires_at)
    record(connection, author, "link.add", f"user:{name}")
    return key.text


def first_admin(connection: Connection, now: int) -> str | None:
    """Make the user ``admin`` if there is no user, and return the secret of a link; None if there are users.

    Until somebody has used such a link, each start makes another.
    """
    author = Author(actor=COMMAND_LINE, at=now)
    if not has_users(connection):
        add_user(connection, FIRST_ADMIN, "admin", author)
    elif (
        connection.execute(select(users.c.id).where(users.c.name != FIRST_ADMIN)).first()
        or connection.execute(select(tokens.c.id).where(tokens.c.user_id.is_not(None), tokens.c.scopes != LINK)).first()
    ):
        return None
    return create_link(connection, FIRST_ADMIN, author)


def may_log_in(connection: Connection, *, key: str, link: str, now: int) -> bool:
    """Return whether a login can succeed, so that one that cannot takes no write."""
    if not link:
        principal = principal_of_key(connection, key, now)
        return principal is not None and principal.user_id is not None
    return connection.execute(select(tokens.c.id).where(*_valid_link(link, now))).first() is not None


def _valid_link(text: str, now: int) -> tuple[ColumnElement[bool], ...]:
    active = exists().where(users.c.id == tokens.c.user_id, users.c.disabled_at.is_(None))
    unused = tokens.c.revoked_at.is_(None), tokens.c.expires_at > now
    return (tokens.c.sha256 == digest(text), tokens.c.scopes == LINK, *unused, active)


def log_in_with_link(connection: Connection, text: str, now: int, ip: str | None) -> Login | None:
    """Exchange the secret of a link for a session and a key; None if it is not valid, or was used before.

    Of two requests at once, the one that changes the row gets them.
    """
    taken = connection.execute(
        update(tokens).where(*_valid_link(text, now)).values(revoked_at=now).returning(tokens.c.user_id)
    ).scalar_one_or_none()
    if taken is None:
        return None
    name = connection.execute(select(users.c.name).where(users.c.id == taken)).scalar_one()
    author = Author(actor=f"user:{name}", at=now, ip=ip)
    return Login(_begin(connection, taken, author, "link"), add_personal_key(connection, taken, author))


def log_in_with_key(connection: Connection, text: str, now: int, ip: str | None) -> Login | None:
    """Begin a session of the user who has a key; None if it is not a key of a user, or not valid."""
    principal = principal_of_key(connection, text, now)
    if principal is None or principal.user_id is None:
        return None
    return Login(_begin(connection, principal.user_id, Author(actor=principal.actor, at=now, ip=ip), "key"))


def _begin(connection: Connection, user_id: int, author: Author, how: str) -> str:
    connection.execute(delete(sessions).where(ended_session(author.at)))
    value = secrets.token_urlsafe()  # 32 bytes
    row = {"sha256": digest(value), "user_id": user_id, "created_at": author.at, "seen_at": author.at}
    connection.execute(sessions.insert().values(row))
    record(connection, author, "login", author.actor, f"with a {how}")
    return value


def ended_session(now: int) -> "ColumnElement[bool]":
    """Return the condition that a session has ended."""
    is_idle = sessions.c.seen_at <= now - bounds.SESSION_IDLE * 1000
    return or_(is_idle, sessions.c.created_at <= now - bounds.SESSION_SECONDS * 1000)


def spent_link(now: int) -> "ColumnElement[bool]":
    """Return the condition that a key is a link that is no longer valid."""
    return and_(tokens.c.scopes == LINK, or_(tokens.c.expires_at <= now, tokens.c.revoked_at.is_not(None)))


def log_in_failed(connection: Connection, now: int, ip: str | None) -> None:
    """Record that a login failed, but not what was sent: it may be a key with a typing error."""
    record(connection, Author(actor="nobody", at=now, ip=ip), "login.failed", "login")


def log_out(connection: Connection, cookie: str, author: Author | None = None) -> None:
    """End a session."""
    ended = connection.execute(delete(sessions).where(sessions.c.sha256 == digest(cookie))).rowcount
    if ended and author:
        record(connection, author, "logout", author.actor)


def principal_of_session(connection: Connection, cookie: str, now: int) -> Principal | None:
    """Return whose session it is; None if it has ended, or the user is disabled."""
    row = connection.execute(
        select(users.c.id, users.c.name, users.c.role)
        .join(sessions, sessions.c.user_id == users.c.id)
        .where(
            sessions.c.sha256 == digest(cookie),
            sessions.c.created_at > now - bounds.SESSION_SECONDS * 1000,
            sessions.c.seen_at > now - bounds.SESSION_IDLE * 1000,
            users.c.disabled_at.is_(None),
        )
    ).one_or_none()
    if row is None:
        return None
    return Principal(actor=f"user:{row.name}", role=cast("Role", row.role), user_id=row.id, has_cookie=True)


def note_session_use(connection: Connection, cookie: str, now: int) -> None:
    """Record when a session was used, at most once a minute."""
    due = sessions.c.seen_at <= now - bounds.USE_NOTED * 1000
    connection.execute(update(sessions).where(sessions.c.sha256 == digest(cookie), due).values(seen_at=now))
