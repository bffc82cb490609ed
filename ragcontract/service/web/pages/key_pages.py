"""The page of keys, where administrators make those of machines, and revoke keys."""

from typing import Annotated, Any

from litestar import Request, get, post
from litestar.params import QueryParameter, URLEncodedBody
from litestar.response import Redirect, Template
from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.safe_text import visible
from ragcontract.service.accounts import Principal, Scope, key_named, keys_below, revoke_key, valid_keys
from ragcontract.service.database import Database, now_ms
from ragcontract.service.projects_and_runs import all_projects
from ragcontract.service.web.administration import Key, NewMachineKey, make_key, page_below
from ragcontract.service.web.authentication import ADMIN
from ragcontract.service.web.login import SEE_OTHER
from ragcontract.service.web.pages.page_frame import service_address
from ragcontract.service.web.pages.settings_page import sentences, settings_view
from ragcontract.service.web.parameters import DEFAULT_LIMIT, Asker, By, Cursor, Db
from ragcontract.service.web.problem_details import ProblemError

KEYS = "/settings/keys"
NO_KEY = "there is no such key"
LABELS = {"name": "What it is for", "scopes": "What it may do", "project": "Project", "expires_in_days": "Days"}


class ListedKey(Key, frozen=True, kw_only=True):
    """A key, and since when its user may not log in."""

    user_disabled_at: int | None = None


class KeyForm(Struct, frozen=True, kw_only=True):
    """A key of a machine to make. A box that is ticked alone comes as text, several come as a list."""

    name: str = ""
    scopes: list[Scope] | Scope = []
    project: str = ""
    days: str = ""

    @property
    def ticked(self) -> list[Scope]:
        """The scopes."""
        return self.scopes if isinstance(self.scopes, list) else [self.scopes]

    def key(self) -> NewMachineKey:
        """Return the key; raises InputError if the days are no number."""
        days = self.days.strip()
        if days and not (days.isascii() and days.isdecimal() and len(days) < bounds.ACCOUNT_NAME):
            raise InputError([f"expires_in_days: {visible(days)!r} is not a number of days"])
        return NewMachineKey(
            name=self.name.strip(),
            scopes=self.ticked,
            project=self.project or None,
            expires_in_days=int(days) if days else None,
        )


class RevokeForm(Struct, frozen=True, kw_only=True):
    """The key to revoke."""

    prefix: str


FOR_CI = KeyForm(scopes=["read", "record"])


def _page(
    database: Database,
    principal: Principal,
    *,
    cursor: str | None = None,
    form: KeyForm = FOR_CI,
    error: InputError | None = None,
) -> Template:
    with database.read() as connection:
        projects = all_projects(connection, principal)
        valid = valid_keys(connection, now_ms())
    view = {
        "rows": page_below(database, keys_below, ListedKey, DEFAULT_LIMIT, cursor),
        "projects": sorted(projects, key=lambda row: row["slug"]),
        "valid": valid,
        "form": form,
        "problems": sentences(error, LABELS),
        "now": now_ms(),
    }
    return settings_view("keys.html", principal, 422 if error else 200, **view)


@get(KEYS, access=ADMIN, page=True, include_in_schema=False, sync_to_thread=True)
def keys_page(principal: Asker, database: Db, cursor: Cursor = None) -> Template:
    """Show the keys of users and machines, the newest first."""
    return _page(database, principal, cursor=cursor)


@post(KEYS, access=ADMIN, page=True, include_in_schema=False, sync_to_thread=True)
def make_key_here(
    request: Request[Any, Any, Any], data: URLEncodedBody[KeyForm], principal: Asker, author: By, database: Db
) -> Template:
    """Make a key of a machine and show it: only now."""
    try:
        new = data.key()
        key = database.write(lambda connection: make_key(connection, new, author))
    except InputError as error:
        return _page(database, principal, form=data, error=error)
    service = service_address(request)
    return settings_view("new_machine_key.html", principal, new=new, key=key, service=service, tab="keys.html")


@get(f"{KEYS}/revoke", access=ADMIN, page=True, include_in_schema=False, sync_to_thread=True)
def revoke_page(
    principal: Asker,
    database: Db,
    prefix: Annotated[str, QueryParameter(max_length=bounds.ACCOUNT_NAME)],
) -> Template:
    """Ask whether a key is to be revoked."""
    with database.read() as connection:
        row = key_named(connection, prefix)
    if row is None:
        raise ProblemError(404, NO_KEY)
    return settings_view("revoke_key.html", principal, row=row, tab="keys.html")


@post(f"{KEYS}/revoke", access=ADMIN, page=True, include_in_schema=False, sync_to_thread=True)
def revoke_key_here(data: URLEncodedBody[RevokeForm], author: By, database: Db) -> Redirect:
    """Revoke a key, for good."""
    if not database.write(lambda connection: revoke_key(connection, data.prefix, author)):
        raise ProblemError(404, NO_KEY)
    return Redirect(KEYS, status_code=SEE_OTHER)


ROUTES = (keys_page, make_key_here, revoke_page, revoke_key_here)
