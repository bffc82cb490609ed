"""Users and keys: people have a role and a key of their own, machines have a key with scopes.

A key is ``rc_``, 8 characters that name it, and 256 random bits. The database has the digest of it, so a copy of the
database opens nothing. A random key needs no slow digest, as a password would.
"""

import hashlib
import hmac
import re
import secrets
import string
from collections.abc import Collection
from typing import NamedTuple, cast

from sqlalchemy import Connection, select

from ragcontract.service.access import Principal, Role, Scope
from ragcontract.service.tables import tokens, users

ALPHABET = string.ascii_letters + string.digits
PREFIX_LENGTH, SECRET_LENGTH = 8, 43  # 62^43 is a little over 2^256
_KEY = re.compile(rf"rc_([A-Za-z0-9]{{{PREFIX_LENGTH}}})_([A-Za-z0-9]{{{SECRET_LENGTH}}})")


class NewKey(NamedTuple):
    """A key that was just made; ``text`` is shown once."""

    id: int
    text: str


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
    """Make a key of a user, or of a machine with scopes."""
    prefix, secret = ("".join(secrets.choice(ALPHABET) for _ in range(size)) for size in (PREFIX_LENGTH, SECRET_LENGTH))
    text = f"rc_{prefix}_{secret}"
    row = {
        "user_id": user_id,
        "name": name,
        "prefix": prefix,
        "sha256": _digest(text),
        "scopes": " ".join(scopes),
        "project_id": project_id,
        "created_at": now,
        "expires_at": expires_at,
    }
    inserted = connection.execute(tokens.insert().values(row).returning(tokens.c.id)).scalar_one()
    return NewKey(inserted, text)


def principal_of_key(connection: Connection, text: str, now: int) -> Principal | None:
    """Return who has a key; None if it is not a key, or expired, revoked, or of a user who is disabled."""
    match = _KEY.fullmatch(text)
    if match is None:
        return None
    row = connection.execute(
        select(tokens, users.c.name.label("user_name"), users.c.role, users.c.disabled_at)
        .select_from(tokens.outerjoin(users, tokens.c.user_id == users.c.id))
        .where(tokens.c.prefix == match[1])
    ).one_or_none()
    if row is None or not hmac.compare_digest(row.sha256, _digest(text)) or row.scopes == "link":
        return None
    if row.revoked_at is not None or (row.expires_at is not None and row.expires_at <= now) or row.disabled_at:
        return None
    if row.user_id is not None:
        return Principal(
            actor=f"user:{row.user_name}", role=cast("Role", row.role), user_id=row.user_id, token_id=row.id
        )
    scopes = frozenset(cast("list[Scope]", row.scopes.split()))
    return Principal(actor=f"key:rc_{row.prefix}", scopes=scopes, project_id=row.project_id, token_id=row.id)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
