"""The routes of projects: what there is, and whether a commit passed."""

from datetime import UTC, datetime
from typing import Annotated, Literal

import msgspec
from litestar import get
from litestar.params import FromPath, FromQuery, QueryParameter
from msgspec import Meta, Struct
from sqlalchemy import Connection

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.safe_text import visible
from ragcontract.history.commit_state import Outcome, commit_state
from ragcontract.history.contract_entries import ContractEntries
from ragcontract.history.entry import SHORT_COMMIT, is_commit_start
from ragcontract.service.access import READ, Principal
from ragcontract.service.database import Page
from ragcontract.service.recorded import DatabaseStore, project_id
from ragcontract.service.run_list import cursor_of, page_of, project_named, projects_after
from ragcontract.service.web.authentication import Asker, Db
from ragcontract.service.web.problem_details import ProblemError

Slug = FromPath[str]
Limit = Annotated[int, QueryParameter(ge=1, le=bounds.PAGE_ITEMS, description="How many items, at most.")]
Cursor = Annotated[str | None, QueryParameter(description="`next` of the page before.")]
DEFAULT_LIMIT = 50
Milliseconds = Annotated[int, Meta(description="Milliseconds since 1970, UTC.")]
NO_PROJECT = "there is no such project, or the key may not see it"
VERDICTS: dict[Outcome, Literal["pass", "fail", "none"]] = {"success": "pass", "failure": "fail", "error": "none"}


class Project(Struct, frozen=True, kw_only=True):
    """A contract whose checks are recorded, and the newest run of its branch."""

    slug: Annotated[str, Meta(description="Its name in addresses: the folder that other stores have for it.")]
    name: Annotated[str, Meta(description="The name of the contract; empty for the one without a name.")]
    repository: str | None
    branch: Annotated[str | None, Meta(description="The branch whose runs are the state of the project.")]
    created_at: Milliseconds
    verdict: Annotated[str | None, Meta(description="Of the newest run; null without one.")]
    run: Annotated[int | None, Meta(description="The id of the newest run.")]
    commit: str | None
    at: Annotated[int | None, Meta(description="When the newest run was checked, in milliseconds since 1970.")]


class Gate(Struct, frozen=True, kw_only=True):
    """Whether a commit passed: the newest run at it."""

    verdict: Annotated[
        Literal["pass", "fail", "none"], Meta(description="`none` if no run at the commit can decide it.")
    ]
    commit: Annotated[str, Meta(description="In full, if a run says it.")]
    why: Annotated[str, Meta(description="The verdict in words, and why a pass does not count.")]
    entry: Annotated[str | None, Meta(description="The id of the entry that decided it.")] = None


def require_project(connection: Connection, principal: Principal, slug: str) -> int:
    """Return the id of a project; answers 404 if there is none that the principal sees."""
    number = project_id(connection, principal, slug)
    if number is None:
        raise ProblemError(404, NO_PROJECT)
    return number


@get("/projects", access=READ, sync_to_thread=True)
def list_projects(principal: Asker, database: Db, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT) -> Page[Project]:
    """Return the projects that the key may see, sorted by slug."""
    with database.read() as connection:
        rows, has_more = page_of(projects_after(connection, principal, cursor, limit), limit)
    items = msgspec.convert(rows, list[Project])
    return Page(items=items, next=cursor_of(items[-1].slug) if has_more else None)


@get("/projects/{slug:str}", access=READ, sync_to_thread=True)
def show_project(principal: Asker, database: Db, slug: Slug) -> Project:
    """Return a project."""
    with database.read() as connection:
        row = project_named(connection, principal, slug)
    if row is None:
        raise ProblemError(404, NO_PROJECT)
    return msgspec.convert(row, Project)


@get("/projects/{slug:str}/gate", access=READ, sync_to_thread=True)
def gate(principal: Asker, database: Db, slug: Slug, commit: FromQuery[str]) -> Gate:
    """Say whether a commit passed, by its newest run that is not from a dirty working tree."""
    with database.read() as connection:
        require_project(connection, principal, slug)
    if not is_commit_start(commit):
        raise InputError([f"commit: {visible(commit)!r} is not the beginning of one, of {SHORT_COMMIT} digits or more"])
    store = DatabaseStore(database, principal, commit=commit)
    state = commit_state(store, commit, [ContractEntries(store, slug).contract], datetime.now(UTC))
    (of_contract,) = state.contracts
    entry = of_contract.entry.id if of_contract.entry else None
    return Gate(verdict=VERDICTS[of_contract.state], commit=state.commit, why=of_contract.why, entry=entry)


ROUTES = (list_projects, show_project, gate)
