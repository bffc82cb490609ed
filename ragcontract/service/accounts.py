"""Users and keys: people have a role and a key of their own, machines have a key with scopes.

A key is ``rc_``, 8 characters that name it, and 256 random bits. The database has the digest of it, so a copy of the
database opens nothing. A random key needs no slow digest, as a password would.

Each change writes a row of the audit log in the same transaction.
"""

import hashlib
import hmac
import re
import secrets
import string
from collections.abc import Collection, Mapping
from typing import Any, Literal, NamedTuple, cast, get_args

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, Row, case, delete, func, or_, select, update

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.history.interface import ConflictError
from ragcontract.service.audit import Author, record
from ragcontract.service.database import DAY, Rows
from ragcontract.service.tables import projects, sessions, tokens, users

Role = Literal["viewer", "editor", "admin"]
Scope = Literal["read", "ingest", "record", "run"]
ROLES: tuple[Role, ...] = get_args(Role)  # each may do what those before it may
SCOPES: tuple[Scope, ...] = get_args(Scope)
ALPHABET = string.ascii_letters + string.digits
PREFIX_LENGTH, SECRET_LENGTH = 8, 43  # 62^43 is a little over 2^256
_KEY = re.compile(rf"rc_([A-Za-z0-9]{{{PREFIX_LENGTH}}})_([A-Za-z0-9]{{{SECRET_LENGTH}}})")
LINK = "link"  # in place of scopes
FIRST_ADMIN = "admin"
_USER_NAME = re.compile(r"[a-z0-9][a-z0-9@._+-]*", re.ASCII)  # no two names look alike
_KEY_NAME = re.compile(r"[ -~]*[!-~][ -~]*", re.ASCII)


class Principal(Struct, frozen=True, kw_only=True):
    """Who sent a request."""

    actor: str  # for the audit log: user:ana, or key:rc_1a2b3c4d
    role: Role | None = None  # of a person
    scopes: frozenset[Scope] = frozenset()  # of a machine's key
    project_id: int | None = None  # the only project that the key may see; None for all
    user_id: int | None = None
    token_id: int | None = None
    has_cookie: bool = False  # a browser sends it by itself, so what it changes needs a check of its origin


class NewKey(NamedTuple):
    """A key that was just made; ``text`` is shown once."""

    id: int
    text: str

    @property
    def prefix(self) -> str:
        """The part that names it."""
        return self.text.split("_")[1]


def digest(secret: str) -> str:
    """Return what the database stores of a key, or of the value of a session's cookie."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def add_user(connection: Connection, name: str, role: str, author: Author) -> int:
    """Add a user and return the id. Raises ConflictError if the name is taken, even by a user who is disabled."""
    if not _USER_NAME.fullmatch(name) or len(name) > bounds.ACCOUNT_NAME:
        expected = f"1 to {bounds.ACCOUNT_NAME} lower-case letters, digits or @ . _ + -, a letter or digit first"
        raise InputError([f"name: expected {expected}"])
    if role not in ROLES:
        raise InputError([f"role: expected {', '.join(ROLES)}"])
    if connection.execute(select(users.c.id).where(users.c.name == name)).first():
        raise ConflictError([f"there is a user {name} already"])
    row = {"name": name, "role": role, "created_at": author.at}
    number: int = connection.execute(users.insert().values(row).returning(users.c.id)).scalar_one()
    record(connection, author, "user.add", f"user:{name}", f"role {role}")
    return number


def user_named(connection: Connection, name: str) -> Row[Any] | None:
    """Return the row of a user."""
    return connection.execute(select(users).where(users.c.name == name)).one_or_none()


def update_user(
    connection: Connection, name: str, author: Author, *, role: Role | None = None, disabled: bool | None = None
) -> bool:
    """Change what is not None; return whether there is such a user.

    Disabling a user ends the user's sessions, and makes the user's keys invalid. The last administrator cannot be
    disabled, or get another role.
    """
    # Two administrators who disable each other at once wait for each other here.
    admins = select(users.c.id).where(users.c.role == "admin", users.c.disabled_at.is_(None)).order_by(users.c.id)
    active = {*connection.execute(admins.with_for_update()).scalars()}
    user = user_named(connection, name)
    if user is None:
        return False
    if active == {user.id} and (disabled or (role or user.role) != "admin"):
        raise ConflictError([f"{name} is the last administrator; make another user one first"])
    if role is not None and role != user.role:
        connection.execute(update(users).where(users.c.id == user.id).values(role=role))
        record(connection, author, "user.role", f"user:{name}", f"{user.role} to {role}")
    if disabled is not None and disabled != (user.disabled_at is not None):
        at = author.at if disabled else None
        connection.execute(update(users).where(users.c.id == user.id).values(disabled_at=at))
        record(connection, author, "user.disable" if disabled else "user.enable", f"user:{name}")
    if disabled:
        connection.execute(delete(sessions).where(sessions.c.user_id == user.id))
        revoke_links(connection, user.id, author.at)
    return True


def add_machine_key(
    connection: Connection,
    name: str,
    scopes: Collection[str],
    author: Author,
    *,
    project_id: int | None = None,
    days: int | None = None,
) -> NewKey:
    """Make a key of a machine, for one project or for all."""
    problems = []
    if not _KEY_NAME.fullmatch(name) or len(name) > bounds.ACCOUNT_NAME:
        problems.append(f"name: expected 1 to {bounds.ACCOUNT_NAME} ASCII characters")
    if not scopes or not set(scopes) <= set(SCOPES):
        problems.append(f"scopes: expected at least one of {', '.join(SCOPES)}")
    if days is not None and not 1 <= days <= bounds.KEY_DAYS:
        problems.append(f"expires_in_days: expected 1 to {bounds.KEY_DAYS:,}")
    if problems:
        raise InputError(problems)
    ordered = [scope for scope in SCOPES if scope in scopes]
    expires_at = None if days is None else author.at + days * DAY
    key = create_key(connection, name=name, now=author.at, scopes=ordered, project_id=project_id, expires_at=expires_at)
    of_project = "all projects" if project_id is None else f"project {project_id}"
    record(connection, author, "key.add", f"key:rc_{key.prefix}", f"{name}; {' '.join(ordered)}; {of_project}")
    return key


def add_personal_key(connection: Connection, user_id: int, author: Author) -> NewKey:
    """Make a key of a user, with the user's role."""
    key = create_key(connection, name="personal key", now=author.at, user_id=user_id)
    record(connection, author, "key.add", f"key:rc_{key.prefix}", "personal key")
    return key


def create_key(
    connection: Connection,
    *,
    name: str,
    now: int,
    user_id: int | None = None,
    scopes: Collection[str] = (),
    project_id: int | None = None,
    expires_at: int | None = None,
) -> NewKey:
    """Make a key of a user, or of a machine with scopes, without a row of the audit log."""
    prefix, secret = ("".join(secrets.choice(ALPHABET) for _ in range(size)) for size in (PREFIX_LENGTH, SECRET_LENGTH))
    text = f"rc_{prefix}_{secret}"
    row = {
        "user_id": user_id,
        "name": name,
        "prefix": prefix,
        "sha256": digest(text),
        "scopes": " ".join(scopes),
        "project_id": project_id,
        "created_at": now,
        "expires_at": expires_at,
    }
    inserted = connection.execute(tokens.insert().values(row).returning(tokens.c.id)).scalar_one()
    return NewKey(inserted, text)


def principal_of_key(connection: Connection, text: str, now: int) -> Principal | None:
    """Return who has a key; None if it is not a key, is expired or revoked, or belongs to a disabled user."""
    match = _KEY.fullmatch(text)
    if match is None:
        return None
    row = connection.execute(
        select(tokens, users.c.name.label("user_name"), users.c.role, users.c.disabled_at)
        .select_from(tokens.outerjoin(users, tokens.c.user_id == users.c.id))
        .where(tokens.c.prefix == match[1])
    ).one_or_none()
    if row is None or not hmac.compare_digest(row.sha256, digest(text)) or row.scopes == LINK:
        return None
    if row.revoked_at is not None or (row.expires_at is not None and row.expires_at <= now) or row.disabled_at:
        return None
    if row.user_id is not None:
        return Principal(
            actor=f"user:{row.user_name}", role=cast("Role", row.role), user_id=row.user_id, token_id=row.id
        )
    scopes = frozenset(cast("list[Scope]", row.scopes.split()))
    return Principal(actor=f"key:rc_{row.prefix}", scopes=scopes, project_id=row.project_id, token_id=row.id)


def revoke_key(connection: Connection, prefix: str, author: Author) -> bool:
    """Make a key invalid for good; return whether a key has that prefix.

    Whoever had a user's key may have logged in with it, so the user's sessions end as well.
    """
    row = connection.execute(select(tokens).where(tokens.c.prefix == prefix, tokens.c.scopes != LINK)).one_or_none()
    if row is None:
        return False
    unrevoked = update(tokens).where(tokens.c.id == row.id, tokens.c.revoked_at.is_(None))
    if connection.execute(unrevoked.values(revoked_at=author.at)).rowcount:
        if row.user_id is not None:
            connection.execute(delete(sessions).where(sessions.c.user_id == row.user_id))
        record(connection, author, "key.revoke", f"key:rc_{row.prefix}", row.name)
    return True


def revoke_links(connection: Connection, user_id: int, now: int) -> None:
    """Make the links of a user invalid."""
    links = update(tokens).where(tokens.c.user_id == user_id, tokens.c.scopes == LINK, tokens.c.revoked_at.is_(None))
    connection.execute(links.values(revoked_at=now))


def note_key_use(connection: Connection, token_id: int, now: int) -> None:
    """Record when a key was used, at most once a minute."""
    due = or_(tokens.c.last_used_at.is_(None), tokens.c.last_used_at <= now - bounds.USE_NOTED * 1000)
    connection.execute(update(tokens).where(tokens.c.id == token_id, due).values(last_used_at=now))


def users_below(connection: Connection, number: int, limit: int) -> Rows:
    """Return the rows of users whose ids are smaller, the newest first."""
    rows = select(users).where(users.c.id < number).order_by(users.c.id.desc()).limit(limit)
    return connection.execute(rows).mappings().all()


def active_users(connection: Connection) -> dict[Role, list[str]]:
    """Return the names of the users who may log in, by their roles."""
    rows = connection.execute(select(users.c.role, users.c.name).where(users.c.disabled_at.is_(None)))
    names = sorted((row.name, row.role) for row in rows)
    return {role: [name for name, of_user in names if of_user == role] for role in ROLES}


def keys_below(connection: Connection, number: int, limit: int) -> Rows:
    """Return the rows of keys whose ids are smaller, without digests, the newest first."""
    return _keys(connection, tokens.c.id < number, limit)


def valid_keys(connection: Connection, now: int) -> tuple[int, int]:
    """Return how many keys of machines are valid, and how many of users."""
    of_machine, of_user = tokens.c.user_id.is_(None), tokens.c.user_id.is_not(None)
    machines, people = (func.sum(case((condition, 1), else_=0)) for condition in (of_machine, of_user))
    unexpired = or_(tokens.c.expires_at.is_(None), tokens.c.expires_at > now)
    query = select(machines.label("machines"), people.label("people")).select_from(
        tokens.outerjoin(users, tokens.c.user_id == users.c.id)
    )
    valid = tokens.c.scopes != LINK, tokens.c.revoked_at.is_(None), unexpired, users.c.disabled_at.is_(None)
    (counts,) = connection.execute(query.where(*valid))
    return int(counts.machines or 0), int(counts.people or 0)


def keys_of(connection: Connection, user_id: int, limit: int) -> Rows:
    """Return the rows of the valid keys of a user as :func:`keys_below` does."""
    return _keys(connection, (tokens.c.user_id == user_id) & tokens.c.revoked_at.is_(None), limit)


def key_named(connection: Connection, prefix: str) -> Mapping[str, Any] | None:
    """Return the row of a key as :func:`keys_below` does; None if there is none."""
    return next(iter(_keys(connection, tokens.c.prefix == prefix, 1)), None)


def _keys(connection: Connection, wanted: "ColumnElement[bool]", limit: int) -> Rows:
    columns = [column for column in tokens.c if column.name not in {"sha256", "user_id", "project_id"}]
    disabled = users.c.disabled_at.label("user_disabled_at")
    rows = (
        select(*columns, users.c.name.label("user"), projects.c.slug.label("project"), disabled)
        .select_from(
            tokens.outerjoin(users, tokens.c.user_id == users.c.id).outerjoin(
                projects, tokens.c.project_id == projects.c.id
            )
        )
        .where(tokens.c.scopes != LINK, wanted)
    )
    listed = connection.execute(rows.order_by(tokens.c.id.desc()).limit(limit)).mappings()
    texts = [{str(name): value for name, value in row.items()} for row in listed]
    return [{**text, "scopes": text["scopes"].split()} for text in texts]


def has_users(connection: Connection) -> bool:
    """Return whether there is any user."""
    return connection.execute(select(func.count()).select_from(users)).scalar_one() > 0
