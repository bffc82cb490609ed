"""What all pages share: their templates, what templates may use, the files that they load, and who is shown what.

A page is whole without JavaScript. With it, htmx loads a page that is open again and again, and replaces the parts that
have ``data-live``. ``static/htmx.min.js`` is htmx.org 2.0.11 of npm, with the 0BSD licence.
"""

import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PackageLoader
from litestar import Request
from litestar.response import Template
from markupsafe import Markup, escape
from sqlalchemy import Connection, RowMapping

from ragcontract.history.entry import short_commit
from ragcontract.report.html import page as report_page
from ragcontract.report.html.elements import PACKAGE, lines
from ragcontract.report.html.elements import environment as report_environment
from ragcontract.service.accounts import Principal
from ragcontract.service.production.drift import date_of
from ragcontract.service.projects_and_runs import project_named
from ragcontract.service.web.parameters import NO_PROJECT
from ragcontract.service.web.problem_details import ProblemError

SERVICE = Path(__file__).parents[2]
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")  # in any locale
_END_OF_TIME = int(datetime(9999, 12, 31, tzinfo=UTC).timestamp() * 1000)  # of dates, not of numbers in a database
LONG = 120  # seconds or minutes, from which on the next larger unit says enough
_WEB = re.compile(r"https?://[!-~]{1,2000}", re.ASCII | re.IGNORECASE)


@cache
def static_files() -> Mapping[str, bytes]:
    """Return the files that pages load, by their names: those of the service, and those of the report's page."""
    own = {path.name: path.read_bytes() for path in (SERVICE / "static").iterdir()}
    of_report = {"report.css": report_page.asset("page.css"), "report.js": report_page.script()}
    return own | {name: text.encode() for name, text in of_report.items()}


@cache
def static(name: str) -> str:
    """Return the address of a file that pages load. It changes with the file, so that no browser uses an old one."""
    return f"/static/{name}?{hashlib.sha256(static_files()[name]).hexdigest()[:12]}"


@cache
def environment() -> Environment:
    """Return the templates of the service, which include those of the report."""
    of_report = report_environment()
    loaders = [FileSystemLoader(SERVICE / "templates"), PackageLoader(PACKAGE)]
    made = of_report.overlay(loader=ChoiceLoader(loaders))
    made.filters = {
        **of_report.filters,
        "when": when,
        "weekday": weekday,
        "iso": iso,
        "span": span,
        "short_day": date_of,
        "commit": short_commit,
        "link": link_of,
        "lines": lines,
        "exact": exact,
        "json_text": lambda value: msgspec.json.encode(value).decode(),
        "as_text": lambda value: value if isinstance(value, str) else msgspec.json.encode(value).decode(),
    }
    made.globals = {**of_report.globals, "static": static, "address": address}
    return made


def when(milliseconds: int | None) -> str:
    """Return a time as people read it: UTC, to the minute."""
    return "" if milliseconds is None else _utc(milliseconds).strftime("%Y-%m-%d %H:%M")


def weekday(milliseconds: int) -> str:
    """Return the day of a time as people talk of it: with the day of the week."""
    return f"{_DAYS[_utc(milliseconds).weekday()]} {when(milliseconds)}"


def span(milliseconds: int) -> str:
    """Return how long something took, as people say it."""
    seconds = max(milliseconds, 0) // 1000
    if seconds < LONG:
        return f"{seconds} s"
    minutes = seconds // 60
    return f"{minutes} min" if minutes < LONG else f"{minutes // 60} h {minutes % 60} min"


def iso(milliseconds: int) -> str:
    """Return a time as machines read it."""
    return _utc(milliseconds).isoformat(timespec="seconds")


def _utc(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(min(max(milliseconds, 0), _END_OF_TIME) / 1000, UTC)


def link_of(url: str | None) -> str | None:
    """Return an address that somebody sent; None if it is none, or one that a browser might act on."""
    return url if url and _WEB.fullmatch(url) else None


def exact(text: str) -> Markup:
    """Return a text for the value of a field, which is sent back as it is: invisible characters are references."""
    parts = [escape(each) if each.isprintable() or each == "\n" else f"&#x{ord(each):x};" for each in text]
    return Markup("".join(parts))  # noqa: S704 (what is no reference is escaped)


def address(*parts: object, **query: object) -> str:
    """Return the address of a page of the service: the parts of its path, and what of the query is not None."""
    path = "/".join(quote(str(part), safe="") for part in parts)
    wanted = {name: value for name, value in query.items() if value is not None and value != ""}
    return f"/{path}{'?' if wanted else ''}{urlencode(wanted)}"


def service_address(request: Request[Any, Any, Any]) -> str:
    """Return the address of the service, as who asks has named it."""
    return str(request.base_url).rstrip("/")


def shown_page(template: str, principal: Principal | None, **view: Any) -> Template:
    """Return a page; ``view`` is what its template shows, with the ``project`` that it is of, if it is of one.

    The navigation marks the link to the page that is ``here``.
    """
    here = template.removesuffix(".html")
    return Template(template, context={"asker": principal, "project": None, "here": here, **view})


def require_project_row(connection: Connection, principal: Principal, slug: str) -> RowMapping:
    """Return a project with the newest run of its branch; answers 404 if there is none that the principal sees."""
    row = project_named(connection, principal, slug)
    if row is None:
        raise ProblemError(404, NO_PROJECT)
    return row
