"""The pages of settings, which say who may do what, and who did what."""

from collections.abc import Mapping

from litestar import get
from litestar.response import Template

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.service.accounts import Principal, active_users, keys_of
from ragcontract.service.audit import audit_below
from ragcontract.service.web.administration import AuditRow, page_below
from ragcontract.service.web.authentication import ADMIN, SIGNED_IN
from ragcontract.service.web.pages.page_frame import shown_page
from ragcontract.service.web.parameters import DEFAULT_LIMIT, Asker, Cursor, Db

MAY = {
    "viewer": "read all projects",
    "editor": "read all projects, start and cancel runs, use the playground, decide on candidates and levels",
    "admin": "also manage users and keys, test alerts, and read the audit log",
    "read": "read projects and runs: what the check of a pull request needs",
    "record": "send runs: what the job of the main branch needs as well",
    "run": "start and cancel runs",
    "ingest": "nothing yet; later, send questions of production",
}
ACTIONS = {
    "user.add": "added a user",
    "user.role": "changed a role",
    "user.disable": "disabled a user",
    "user.enable": "enabled a user",
    "link.add": "made a login link",
    "key.add": "made a key",
    "key.revoke": "revoked a key",
    "login": "logged in",
    "login.failed": "failed to log in",
    "logout": "logged out",
    "project.add": "added a project",
    "run.add": "sent a run",
    "run.start": "started a run",
    "run.cancel": "cancelled a run",
    "run.expire": "deleted old runs",
    "candidate.add": "made a question a candidate",
    "candidate.accept": "accepted a candidate",
    "candidate.reject": "rejected a candidate",
    "candidate.reopen": "took a decision on a candidate back",
    "level.accept": "accepted the level of a monitor",
    "alert.test": "sent a test alert",
    "blob.expire": "deleted blobs that no run has",
}


def settings_view(template: str, principal: Principal, status: int = 200, **view: object) -> Template:
    """Return a page of settings. The navigation marks both the settings and the page."""
    page = shown_page(template, principal, **{"tab": template, **view, "here": "settings", "may": MAY})
    page.status_code = status
    return page


def sentences(error: InputError | None, labels: Mapping[str, str]) -> list[str]:
    """Return the problems of an error with the labels of a form in place of the fields of the API."""
    parts = [problem.partition(": ") for problem in (error.problems if error else ())]
    return [f"{labels.get(field, field)}{colon}{rest}" for field, colon, rest in parts]


@get("/settings", access=SIGNED_IN, page=True, include_in_schema=False, sync_to_thread=True)
def settings_page(principal: Asker, database: Db) -> Template:
    """Show who is logged in and what each role may do; and to administrators, who has which."""
    with database.read() as connection:
        users = active_users(connection) if ADMIN.admits(principal) else {}
        keys = [] if principal.user_id is None else keys_of(connection, principal.user_id, bounds.NAMES)
    return settings_view("settings.html", principal, users=users, keys=keys)


@get("/settings/audit", access=ADMIN, page=True, include_in_schema=False, sync_to_thread=True)
def audit_page(principal: Asker, database: Db, cursor: Cursor = None) -> Template:
    """Show what was done, the newest first."""
    rows = page_below(database, audit_below, AuditRow, DEFAULT_LIMIT, cursor)
    return settings_view("audit_log.html", principal, rows=rows, actions=ACTIONS)


ROUTES = (settings_page, audit_page)
