"""Blobs: reports, result sets and contracts as they were, by digest. They are stored compressed, and never change.

A digest alone gives access to nothing: a sender who names a blob must have sent all of it, or see a run that has it.
"""

import hashlib
import zlib
from collections.abc import Collection
from typing import Literal

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, exists, or_, select

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.numbers import mebibytes
from ragcontract.history.entry import is_digest
from ragcontract.service.accounts import Principal
from ragcontract.service.database import insert_if_new
from ragcontract.service.projects_and_runs import seen_runs
from ragcontract.service.tables import blobs, runs, uploads

Kind = Literal["results", "report", "golden"]
OF_RUNS = (runs.c.results, runs.c.report, runs.c.golden)


class DamagedBlobError(Exception):
    """A stored blob differs from what was sent: the disk is faulty, or somebody changed it."""


class Sent(Struct, frozen=True, kw_only=True):
    """A blob as it is stored. Compressing it takes a while, so it is made before the write begins."""

    kind: Kind
    sha256: str
    size: int
    body: bytes  # zlib

    @classmethod
    def of(cls, kind: Kind, data: bytes, sha256: str | None = None) -> "Sent":
        """Pack a blob; raises InputError if it is too large, or has another digest than its sender says."""
        digest = hashlib.sha256(data).hexdigest()
        if sha256 not in {None, digest}:
            raise InputError([f"blob: has the SHA-256 {digest}, and its address says another one"])
        if len(data) > bounds.BLOB:
            raise InputError([f"blob {digest}: is larger than {mebibytes(bounds.BLOB)}"])
        return cls(kind=kind, sha256=digest, size=len(data), body=zlib.compress(data))


def put_blob(connection: Connection, sent: Sent, *, sender: str, now: int) -> bool:
    """Store a blob, and record that its sender may name it; return whether the blob is new."""
    row = {"sha256": sent.sha256, "kind": sent.kind, "bytes": sent.size, "body": sent.body, "created_at": now}
    # The lock keeps one that is there from being deleted, as one that no run has, before the upload is recorded.
    known = select(blobs.c.kind).where(blobs.c.sha256 == sent.sha256).with_for_update(read=True, key_share=True)
    is_new = connection.execute(known).first() is None and insert_if_new(connection, blobs, row)
    upload = {"sha256": sent.sha256, "sender": sender}
    if not insert_if_new(connection, uploads, {**upload, "at": now}):
        connection.execute(uploads.update().filter_by(**upload).values(at=now))
    return is_new


def blob(connection: Connection, sha256: str) -> bytes | None:
    """Return a blob; None if there is none. Raises :class:`DamagedBlobError`."""
    row = connection.execute(select(blobs.c.bytes, blobs.c.body).where(blobs.c.sha256 == sha256)).one_or_none()
    if row is None:
        return None
    unpack = zlib.decompressobj()
    try:
        data = unpack.decompress(row.body, min(row.bytes, bounds.BLOB) + 1)
    except zlib.error as error:
        raise DamagedBlobError(f"blob {sha256} is damaged ({error}); restore the database from a backup") from error
    if len(data) != row.bytes or hashlib.sha256(data).hexdigest() != sha256:
        raise DamagedBlobError(f"blob {sha256} is damaged (it has another SHA-256); restore the database from a backup")
    return data


def visible_blob(
    connection: Connection, sha256: str, principal: Principal, columns: "Collection[ColumnElement[str]]" = OF_RUNS
) -> bytes | None:
    """Return a blob that a run has in one of these columns; None if the principal sees no such run."""
    if not is_digest(sha256):
        return None
    named = exists().where(or_(*(column == sha256 for column in columns)), seen_runs(principal))
    return blob(connection, sha256) if connection.execute(select(named)).scalar_one() else None


def result_sets_after(connection: Connection, principal: Principal, after: str, limit: int) -> list[str]:
    """Return the digests of result sets of visible projects that sort after a digest; "" begins the list."""
    wanted = runs.c.results.is_not(None), runs.c.results > after, seen_runs(principal, runs.c.project_id + 0)
    query = select(runs.c.results).distinct().where(*wanted).order_by(runs.c.results).limit(limit)
    return [*connection.execute(query).scalars()]


def require_blob(connection: Connection, sha256: str, name: str, *, sender: str, project_id: int, most: int) -> None:
    """Raise InputError unless a sender may name a blob, and the blob is small enough for its use."""
    is_known = or_(
        exists().where(uploads.c.sha256 == sha256, uploads.c.sender == sender),
        exists().where(or_(*(column == sha256 for column in OF_RUNS)), runs.c.project_id == project_id),
    )
    # The lock keeps it from being deleted, as one that nobody has named, before the run names it.
    query = select(blobs.c.bytes).where(blobs.c.sha256 == sha256, is_known).with_for_update(read=True, key_share=True)
    size = connection.execute(query).scalar_one_or_none()
    if size is None:
        raise InputError([f"{name}: the blob {sha256} is missing; send it first"])
    if size > most:
        raise InputError([f"{name}: the blob {sha256} is larger than {mebibytes(most)}"])
