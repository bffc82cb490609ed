"""What ``service user`` and ``service token`` do: accounts without the API, such as the first ones."""

import secrets
import time
from collections.abc import Sequence

from msgspec import Struct
from sqlalchemy import Connection, select

from ragcontract.core.errors import InputError
from ragcontract.history.entry import folder_of
from ragcontract.history.interface import ConflictError
from ragcontract.service.accounts import add_machine_key, add_user
from ragcontract.service.audit import COMMAND_LINE, Author, record
from ragcontract.service.database import Job, T, storable
from ragcontract.service.logging_in import create_link
from ragcontract.service.migrate import prepared
from ragcontract.service.tables import projects


class AddedKey(Struct, frozen=True, kw_only=True):
    """The key of a machine."""

    text: str
    slug: str | None  # of its project
    is_new_project: bool = False


def added_user(db: str, name: str, role: str) -> str:
    """Add a user and return the secret of a link."""

    def job(connection: Connection) -> str:
        author = _author()
        add_user(connection, name, role, author)
        return create_link(connection, name, author)

    return _written(db, job)


def new_link(db: str, name: str) -> str:
    """Return the secret of a new link of a user."""
    return _written(db, lambda connection: create_link(connection, name, _author()))


def added_key(db: str, name: str, scopes: Sequence[str], contract: str | None, days: int | None) -> AddedKey:
    """Make a key of a machine, and the project that it is for, if there is none."""

    def job(connection: Connection) -> AddedKey:
        author = _author()
        if contract is None:
            return AddedKey(text=add_machine_key(connection, name, scopes, author, days=days).text, slug=None)
        slug = folder_of(contract)
        of_slug = select(projects.c.id).where(projects.c.slug == slug)
        project_id = connection.execute(of_slug).scalar_one_or_none()
        is_new = project_id is None
        if is_new:
            values = {"slug": slug, "name": storable(contract), "secret": secrets.token_hex(), "created_at": author.at}
            project_id = connection.execute(projects.insert().values(values).returning(projects.c.id)).scalar_one()
            record(connection, author, "project.add", f"project:{slug}")
        key = add_machine_key(connection, name, scopes, author, project_id=project_id, days=days)
        return AddedKey(text=key.text, slug=slug, is_new_project=is_new)

    return _written(db, job)


def _author() -> Author:
    return Author(actor=COMMAND_LINE, at=time.time_ns() // 1_000_000)


def _written(db: str, job: Job[T]) -> T:
    with prepared(db) as database:
        try:
            return database.write(job)
        except ConflictError as error:
            raise InputError(error.problems) from error
