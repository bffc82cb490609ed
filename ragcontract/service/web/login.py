"""The pages that log in and out. They work without JavaScript."""

import re
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from litestar import Request, Response, get, post
from litestar.params import QueryParameter, URLEncodedBody
from litestar.response import Redirect, Template
from msgspec import Struct
from sqlalchemy import Connection

from ragcontract.core import bounds
from ragcontract.service.database import Database, now_ms
from ragcontract.service.logging_in import Login, log_in_failed, log_in_with_key, log_in_with_link, log_out, may_log_in
from ragcontract.service.web.authentication import OPEN, SIGNED_IN, Credential, LoginNeededError, session_cookie
from ragcontract.service.web.pages.page_frame import shown_page
from ragcontract.service.web.parameters import By, Db
from ragcontract.service.web.problem_details import ProblemError
from ragcontract.service.web.request_limits import RequestRates, address_of, network_of

FIRST_PAGE = "/"
# A second slash or a backslash would begin the name of another host.
_LOCAL = re.compile(r"/(?:[\w.~%!$&'()*+,;=:@?-][\w.~%!$&'()*+,;=:@?/-]*)?", re.ASCII)
SEE_OTHER: Literal[303] = 303


class LoginForm(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the login page sends: a key, or what a link has."""

    key: str = ""
    link: str = ""
    next: str = FIRST_PAGE


def local_path(path: str) -> str:
    """Return where a login leads to: a path of this service, else the first page."""
    return path if len(path) <= bounds.LOCAL_PATH and _LOCAL.fullmatch(path) else FIRST_PAGE


def to_login(request: Request[Any, Any, Any], error: LoginNeededError) -> Response[Any]:
    """Answer somebody who needs to log in first; a part of an open page is not replaced by the login page."""
    if "hx-request" in request.headers:
        return Response(b"", status_code=401, headers={"HX-Refresh": "true"})
    target = local_path(error.path)
    query = "" if target == FIRST_PAGE else f"?{urlencode({'next': target})}"
    return Redirect(f"/login{query}", status_code=SEE_OTHER)


@get("/login", access=OPEN, include_in_schema=False, sync_to_thread=True)
def login_page(
    link: Annotated[str, QueryParameter(max_length=bounds.LOCAL_PATH)] = "",
    target: Annotated[str, QueryParameter(name="next")] = FIRST_PAGE,
) -> Template:
    """Show the form. A link is not used up, because programs that preview messages open links as well."""
    return shown_page("login.html", None, link=link, next=local_path(target), problem="")


@post("/login", access=OPEN, include_in_schema=False, sync_to_thread=True, status_code=200)
def log_in(request: Request[Any, Any, Any], data: URLEncodedBody[LoginForm], database: Db) -> Response[Any]:
    """Begin a session; with a link, show the user's new key as well."""
    address = address_of(request.scope)
    replaced: Credential | None = request.auth

    def job(connection: Connection) -> Login | None:
        if data.link:
            login = log_in_with_link(connection, data.link, now_ms(), address)
        else:
            login = log_in_with_key(connection, data.key.strip(), now_ms(), address)
        if login and replaced and not replaced.is_key:
            log_out(connection, replaced.text)
        return login

    with database.read() as connection:
        is_valid = may_log_in(connection, key=data.key.strip(), link=data.link, now=now_ms())
    login = database.write(job) if is_valid else None
    target = local_path(data.next)
    if login is None:
        return _failed(request, data, database, target)
    cookies = [session_cookie(request.scope, login.cookie)]
    if login.key is None:
        return Redirect(target, status_code=SEE_OTHER, cookies=cookies)
    page = shown_page("new_key.html", None, key=login.key.text, next=target)
    page.cookies.extend(cookies)
    return page


def _failed(request: Request[Any, Any, Any], data: LoginForm, database: Database, target: str) -> Template:
    address = address_of(request.scope)
    problem = "This link was used already, or is older than 15 minutes. Ask an administrator for another."
    if not data.link:
        problem = "This is not a valid key of a person. Check that the whole key was copied."
    failure = ProblemError(401)
    try:
        rates: RequestRates = request.state.service.rates
        rates.login_failed(network_of(address))
        database.write(lambda connection: log_in_failed(connection, now_ms(), address))
    except ProblemError as error:  # too many of them; the audit log is not flooded either
        problem = f"Too many attempts failed. Wait {error.headers['Retry-After']} seconds."
        failure = error
    page = shown_page("login.html", None, link="", next=target, problem=problem)
    page.status_code = failure.status
    page.headers.update(failure.headers)
    return page


@post("/logout", access=SIGNED_IN, page=True, include_in_schema=False, sync_to_thread=True)
def log_out_here(request: Request[Any, Any, Any], author: By, database: Db) -> Redirect:
    """End the session of this browser."""
    credential: Credential = request.auth
    if not credential.is_key:
        database.write(lambda connection: log_out(connection, credential.text, author))
    return Redirect("/login", status_code=SEE_OTHER, cookies=[session_cookie(request.scope, "")])


ROUTES = (login_page, log_in, log_out_here)
