"""What route handlers share: their dependencies and parameters, pages of lists, and look-ups that answer 404."""

import base64
import binascii
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import msgspec
from litestar.di import NamedDependency
from litestar.params import FromPath, QueryParameter
from msgspec import Meta, Struct
from sqlalchemy import Connection, RowMapping

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.service.accounts import Principal
from ragcontract.service.audit import Author
from ragcontract.service.database import BIGINT, Database, storable
from ragcontract.service.mounted import FILE, RECORD, MountedProject, content_of, project_in
from ragcontract.service.projects_and_runs import project_id, run_numbered
from ragcontract.service.trends import Trends
from ragcontract.service.web.problem_details import ProblemError

T = TypeVar("T")
R = TypeVar("R")
Asker = NamedDependency[Principal]  # who sent the request
Db = NamedDependency[Database]
Background = NamedDependency[Trends]
Mounts = NamedDependency[Path | None]  # the folder of the mounted projects
By = NamedDependency[Author]  # the asker, for the audit log
Slug = FromPath[str]
Number = FromPath[int]
Limit = Annotated[int, QueryParameter(ge=1, le=bounds.PAGE_ITEMS, description="How many items, at most.")]
Cursor = Annotated[str | None, QueryParameter(description="`next` of the page before.")]
Whole = Annotated[int, Meta(ge=-BIGINT, le=BIGINT)]  # a position that is a number
API = "/api/v1"  # where the routes for programs begin
DEFAULT_LIMIT = 50
SERVES_NONE = "this service runs no projects itself; start it with --projects, the folder that they are mounted in"
NO_PROJECT = "there is no such project, or the key may not see it"


class Page(Struct, Generic[T], frozen=True, kw_only=True):
    """A part of a list, and where the next part begins: null at the end."""

    items: list[T]
    next: str | None = None


def page_of(rows: Sequence[R], limit: int, kind: type[T], position: Callable[[R], object]) -> Page[T]:
    """Return a page of rows, of which one more was read; the cursor stands for the ``position`` of the last row."""
    shown = rows[:limit]
    cursor = cursor_of(position(shown[-1])) if len(rows) > limit else None
    return Page(items=msgspec.convert(shown, list[kind]), next=cursor)  # type: ignore[valid-type]


def cursor_of(position: object) -> str:
    """Return what stands for a position in a list."""
    return base64.urlsafe_b64encode(msgspec.json.encode(position)).decode().rstrip("=")


def position_of(cursor: str | None, kind: Any) -> Any:
    """Return the position of this type that a cursor stands for; raises InputError for any other text."""
    if cursor is None:
        return None
    try:
        data = base64.b64decode(f"{cursor}{'=' * (-len(cursor) % 4)}", altchars=b"-_", validate=True)
        position = msgspec.json.decode(data, type=kind)
    except (binascii.Error, msgspec.MsgspecError, ValueError) as error:
        raise InputError(["cursor: is not one of this list"]) from error
    return storable(position) if isinstance(position, str) else position


def require_project(connection: Connection, principal: Principal, slug: str) -> int:
    """Return the id of a project; answers 404 if there is none that the principal sees."""
    number = project_id(connection, slug, principal)
    if number is None:
        raise ProblemError(404, NO_PROJECT)
    return number


def require_run(connection: Connection, principal: Principal, number: int) -> RowMapping:
    """Return a run; answers 404 if there is none that the principal sees."""
    row = run_numbered(connection, principal, number)
    if row is None:
        raise ProblemError(404, "there is no such run, or the key may not see it")
    return row


def require_mounted(mounts: Path | None, slug: str) -> MountedProject:
    """Return a mounted project whose system can be asked; answers 409 with what to do if it cannot."""
    if mounts is None:
        raise ProblemError(409, SERVES_NONE)
    try:
        project = project_in(mounts, slug)
        has_record = project is not None and content_of(project.folder, RECORD, bounds.CONFIG) is not None
    except InputError as error:
        raise ProblemError(409, f"the mounted project cannot be read: {error.problems[0]}", error.problems) from error
    if project is None:
        files = f"{FILE}, {RECORD} and its contract"
        raise ProblemError(
            409, f"the project is not mounted; put a folder {slug} with {files} into the projects folder"
        )
    if not has_record:
        why = f"the mounted project has no {RECORD}, which says how its system is asked"
        raise ProblemError(409, f"{why}; put one into the folder {slug}")
    return project
