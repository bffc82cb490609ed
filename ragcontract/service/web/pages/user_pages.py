"""The page of users, where administrators add them, change their roles, and make links for them."""

from typing import Any, Literal

from litestar import Request, get, post
from litestar.params import URLEncodedBody
from litestar.response import Redirect, Template
from msgspec import Struct
from sqlalchemy import Connection

from ragcontract.core.errors import InputError
from ragcontract.history.interface import ConflictError
from ragcontract.service.accounts import Principal, Role, active_users, add_user, users_below
from ragcontract.service.database import Database
from ragcontract.service.web.administration import User, UserChange, change_user, make_link, page_below, path_of
from ragcontract.service.web.authentication import ADMIN
from ragcontract.service.web.login import SEE_OTHER
from ragcontract.service.web.pages.page_frame import service_address
from ragcontract.service.web.pages.settings_page import sentences, settings_view
from ragcontract.service.web.parameters import DEFAULT_LIMIT, Asker, By, Cursor, Db

USERS = "/settings/users"


class UserForm(Struct, frozen=True, kw_only=True):
    """A user to add."""

    name: str = ""
    role: str = "viewer"


class ChangeForm(Struct, frozen=True, kw_only=True):
    """What to change of a user: the role, or whether the user may log in."""

    name: str
    role: Role | None = None
    disabled: Literal["yes", "no"] | None = None


class LinkForm(Struct, frozen=True, kw_only=True):
    """The user to make a link for."""

    name: str


def _page(
    database: Database,
    principal: Principal,
    *,
    cursor: str | None = None,
    form: UserForm | None = None,
    error: InputError | None = None,
) -> Template:
    with database.read() as connection:
        active = active_users(connection)
    rows = page_below(database, users_below, User, DEFAULT_LIMIT, cursor)
    problems = sentences(error, {"name": "Name", "role": "Role"})
    status = 200 if error is None else 409 if isinstance(error, ConflictError) else 422
    view = {"rows": rows, "active": active, "form": form, "problems": problems}
    return settings_view("users.html", principal, status, **view)


def _link(request: Request[Any, Any, Any], principal: Principal, name: str, secret: str) -> Template:
    url = f"{service_address(request)}{path_of(secret)}"
    return settings_view("new_link.html", principal, name=name, url=url, tab="users.html")


@get(USERS, access=ADMIN, page=True, include_in_schema=False, sync_to_thread=True)
def users_page(principal: Asker, database: Db, cursor: Cursor = None) -> Template:
    """Show the users, the newest first."""
    return _page(database, principal, cursor=cursor)


@post(USERS, access=ADMIN, page=True, include_in_schema=False, sync_to_thread=True)
def add_user_here(
    request: Request[Any, Any, Any], data: URLEncodedBody[UserForm], principal: Asker, author: By, database: Db
) -> Template:
    """Add a user and show the link, which is shown only now."""

    def job(connection: Connection) -> str:
        add_user(connection, data.name.strip(), data.role, author)
        return make_link(connection, data.name.strip(), author)

    try:
        secret = database.write(job)
    except InputError as error:
        return _page(database, principal, form=data, error=error)
    return _link(request, principal, data.name.strip(), secret)


@post(f"{USERS}/change", access=ADMIN, page=True, include_in_schema=False, sync_to_thread=True)
def change_user_here(
    data: URLEncodedBody[ChangeForm], principal: Asker, author: By, database: Db
) -> Template | Redirect:
    """Change the role of a user, or whether the user may log in."""
    change = UserChange(role=data.role, disabled=None if data.disabled is None else data.disabled == "yes")
    try:
        database.write(lambda connection: change_user(connection, data.name, change, author))
    except InputError as error:
        return _page(database, principal, error=error)
    return Redirect(USERS, status_code=SEE_OTHER)


@post(f"{USERS}/link", access=ADMIN, page=True, include_in_schema=False, sync_to_thread=True)
def make_link_here(
    request: Request[Any, Any, Any], data: URLEncodedBody[LinkForm], principal: Asker, author: By, database: Db
) -> Template:
    """Make a link that logs a user in, and show it: only now."""
    try:
        secret = database.write(lambda connection: make_link(connection, data.name, author))
    except InputError as error:
        return _page(database, principal, error=error)
    return _link(request, principal, data.name, secret)


ROUTES = (users_page, add_user_here, change_user_here, make_link_here)
