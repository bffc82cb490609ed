"""Who asks, and what each may do. People have a role, machines have scopes; a route names the one and the other."""

from typing import Literal, get_args

from msgspec import Struct

Role = Literal["viewer", "editor", "admin"]
Scope = Literal["read", "ingest", "record", "run"]
ROLES: tuple[Role, ...] = get_args(Role)  # each may do what those before it may
SCOPES: tuple[Scope, ...] = get_args(Scope)


class Access(Struct, frozen=True, kw_only=True):
    """What a route needs: at least this role of a person, or this scope of a machine's key; None is never enough."""

    role: Role | None = None
    scope: Scope | None = None


READ = Access(role="viewer", scope="read")
RECORD = Access(scope="record")
ADMIN = Access(role="admin")
OPEN = "open"  # in place of an Access: a route for everybody
SIGNED_IN = "signed in"  # likewise: for everybody who has a key or a session


class Principal(Struct, frozen=True, kw_only=True):
    """Who sent a request."""

    actor: str  # for the audit log: user:ana, or key:rc_1a2b3c4d
    role: Role | None = None  # of a person
    scopes: frozenset[Scope] = frozenset()  # of a machine's key
    project_id: int | None = None  # the only project that the key may see; None for all
    user_id: int | None = None
    token_id: int | None = None
    has_cookie: bool = False  # a browser sends it by itself, so what it changes needs a check of its origin

    def may(self, needs: Access) -> bool:
        """Return whether this is enough for a route."""
        if self.role is not None:
            return needs.role is not None and ROLES.index(self.role) >= ROLES.index(needs.role)
        return needs.scope is not None and needs.scope in self.scopes

    def sees(self, project_id: int) -> bool:
        """Return whether a project is there for it."""
        return self.project_id is None or self.project_id == project_id
