"""The history of the service's projects as a store, so that all that reads histories works within the service.

It has the projects that somebody sees; nothing else is there for them.
"""

import time
from collections.abc import Collection, Sequence
from typing import NoReturn

from msgspec.structs import replace
from sqlalchemy import ColumnElement, Connection, and_, func, select, true

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.history.entry import EntryId, NewEntry, folder_of, is_folder_name, is_month, newest_first
from ragcontract.history.interface import Added
from ragcontract.service.access import Principal
from ragcontract.service.blobs import Kind, Sent, put_blob, result_sets_after, visible_blob
from ragcontract.service.database import Database
from ragcontract.service.record_entry import of_months, record, recording_of, with_rules
from ragcontract.service.tables import projects, runs

KEPT = "the service keeps result sets as long as their runs"


class DatabaseStore:
    """A :class:`~ragcontract.history.interface.Store`: the history of the projects that a principal sees.

    With ``commit``, the beginning of a commit, only entries at it are there, which an index finds.
    """

    name = "the service"

    def __init__(self, database: Database, principal: Principal, *, commit: str = "") -> None:
        self._database = database
        self._principal = principal
        self._at = at_commit(commit) if commit else true()

    def contracts(self) -> list[str]:
        with self._database.read() as connection:
            return sorted(connection.execute(select(projects.c.slug).where(seen(self._principal))).scalars())

    def months(self, contract: str) -> list[str]:
        if not is_folder_name(contract):
            return []
        query = select(func.substr(runs.c.key, 1, 6)).where(self._of(contract)).distinct()
        with self._database.read() as connection:
            starts = [*connection.execute(query).scalars()]
        return sorted(filter(is_month, (f"{start[:4]}-{start[4:]}" for start in starts)), reverse=True)

    def ids(self, contract: str, months: Sequence[str]) -> list[EntryId]:
        return self.ids_before(contract, months)

    def ids_before(
        self, contract: str, months: Sequence[str], *, before: str | None = None, limit: int | None = None
    ) -> list[EntryId]:
        """Return the newest ids in these months, of those that are older than an id."""
        if not is_folder_name(contract):
            return []
        wanted = self._of(contract), of_months(month.replace("-", "") for month in filter(is_month, months))
        query = select(runs.c.key).where(*wanted).order_by(runs.c.key.desc()).limit(limit)
        with self._database.read() as connection:
            keys = connection.execute(query if before is None else query.where(runs.c.key < before)).scalars()
            return newest_first(filter(None, map(EntryId.of, keys)))

    def read(self, contract: str, ids: Sequence[EntryId]) -> dict[str, bytes]:
        if not is_folder_name(contract):
            return {}
        keys = [entry_id.id for entry_id in ids]
        contents: dict[str, bytes] = {}
        with self._database.read() as connection:
            for start in range(0, len(keys), bounds.ENTRIES_AT_ONCE):
                contents |= self._contents(connection, contract, keys[start : start + bounds.ENTRIES_AT_ONCE])
        return {key: contents[key] for key in keys if key in contents}

    def _contents(self, connection: Connection, contract: str, keys: Collection[str]) -> dict[str, bytes]:
        wanted = self._of(contract), runs.c.key.in_(keys), runs.c.entry.is_not(None)
        rows = connection.execute(select(runs.c.key, runs.c.entry).where(*wanted))
        return {row.key: row.entry.encode() for row in rows}

    def results(self, sha256: str) -> bytes | None:
        """Return a result set. Raises :class:`~ragcontract.service.blobs.DamagedBlobError` if it was changed."""
        with self._database.read() as connection:
            return visible_blob(connection, sha256, self._principal, [runs.c.results])

    def result_sets(self) -> set[str]:
        digests: set[str] = set()
        with self._database.read() as connection:
            while more := result_sets_after(connection, self._principal, max(digests, default=""), bounds.PAGE_DIGESTS):
                digests.update(more)
        return digests

    def add(self, new: NewEntry) -> Added:
        """Store an entry with its blobs; a badge is not kept."""
        slug, principal, now = folder_of(new.entry.contract), self._principal, time.time_ns() // 1_000_000
        contents: dict[Kind, bytes | None] = {"results": new.results, "report": new.report, "golden": new.golden}
        sent = {kind: Sent.of(kind, data) for kind, data in contents.items() if data is not None}
        recording = replace(
            recording_of(slug, new.content),
            report=sent["report"].sha256 if "report" in sent else None,
            golden=sent["golden"].sha256 if "golden" in sent else None,
            default_branch=new.default_branch,
            without_results=new.results is None,
        )
        recording = with_rules(recording, new.report)

        def job(connection: Connection) -> Added:
            if principal.project_id is not None and project_id(connection, principal, slug) is None:
                raise InputError([f"{new.path}: is of another project than the key"])
            for each in sent.values():
                put_blob(connection, each, sender=principal.actor, now=now)
            return record(connection, recording, principal, now).added

        return self._database.write(job)

    def delete_results(self, digests: Collection[str]) -> NoReturn:  # noqa: ARG002 (the seam's)
        raise InputError([f"{self.name}: {KEPT}; delete the project to delete them"])

    def _of(self, contract: str) -> "ColumnElement[bool]":
        project = select(projects.c.id).where(projects.c.slug == contract, seen(self._principal)).scalar_subquery()
        return and_(runs.c.project_id == project, self._at)


def seen(principal: Principal) -> "ColumnElement[bool]":
    """Return the condition that a principal sees a project."""
    return true() if principal.project_id is None else projects.c.id == principal.project_id


def project_id(connection: Connection, principal: Principal, slug: str) -> int | None:
    """Return the id of a project; None if there is none that the principal sees."""
    if not is_folder_name(slug):
        return None
    return connection.execute(select(projects.c.id).where(projects.c.slug == slug, seen(principal))).scalar()


def at_commit(start: str) -> "ColumnElement[bool]":
    """Return the condition that runs are at a commit, of which the beginning is known; an index answers it."""
    return and_(runs.c.commit_sha >= start, runs.c.commit_sha < f"{start}g")  # the digits end with f
