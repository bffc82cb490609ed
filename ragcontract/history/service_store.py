"""A store of entries in a team service, written and read through its API.

Everything in the service's answers is only used where it has the form that this program gives to it.
"""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, TypeVar

from msgspec import Meta, Struct

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.history.entry import (
    EntryId,
    NewEntry,
    folder_of,
    is_digest,
    is_folder_name,
    is_month,
    newest_first,
)
from ragcontract.history.interface import Added
from ragcontract.history.service_calls import NotThereError, ServiceCalls, check_key, service_address
from ragcontract.net.pacing import Timing


class _Page(Struct, frozen=True, kw_only=True):
    next: str | None = None


class _Project(Struct, frozen=True):
    slug: str


class _Projects(_Page, frozen=True, kw_only=True):
    items: Annotated[list[_Project], Meta(max_length=bounds.ENTRIES)]


class _Digests(_Page, frozen=True, kw_only=True):
    items: Annotated[list[str], Meta(max_length=bounds.ENTRIES)]


class _Months(Struct, frozen=True):
    months: Annotated[list[str], Meta(max_length=bounds.ENTRIES)]


class _Ids(_Page, frozen=True, kw_only=True):
    ids: Annotated[list[str], Meta(max_length=bounds.ENTRIES)]


class _Content(Struct, frozen=True):
    id: str
    content: str


class _Contents(Struct, frozen=True):
    items: Annotated[list[_Content], Meta(max_length=bounds.ENTRIES_AT_ONCE)]
    rest: Annotated[list[str], Meta(max_length=bounds.ENTRIES_AT_ONCE)] = []


class _Stored(Struct, frozen=True):
    key: str


P = TypeVar("P", bound=_Page)
T = TypeVar("T")


class ServiceStore:
    """Keeps entries in a team service. A contract is a project there; its folder is the name of the project."""

    def __init__(self, name: str, key: str, *, seconds: float, timing: Timing) -> None:
        """Use the service at an address, to which nothing is sent yet.

        Raises InputError if ``name`` cannot be one, or if ``key`` cannot be a key.
        """
        address = self.address(name)
        check_key(key)
        self.name = name
        self._calls = ServiceCalls(address, key, name=name, seconds=seconds, timing=timing)

    @staticmethod
    def address(name: str) -> str:
        """Return the address that a user named; raises InputError if it is none."""
        return service_address(name)

    def allow(self, seconds: float) -> None:
        """Let the calls from now on take at most so many seconds together."""
        self._calls.allow(seconds)

    def contracts(self) -> list[str]:
        pages = self._pages("/projects", _Projects, {"limit": f"{bounds.PAGE}"})
        return sorted({each.slug for page in pages for each in page.items if is_folder_name(each.slug)})

    def months(self, contract: str) -> list[str]:
        if not is_folder_name(contract):
            return []
        with suppress(NotThereError):
            months = self._calls.get(f"/projects/{contract}/months", _Months).months
            return sorted(filter(is_month, set(months)), reverse=True)
        return []

    def ids(self, contract: str, months: Sequence[str]) -> list[EntryId]:
        asked = [month for month in dict.fromkeys(months) if is_month(month)]
        if not is_folder_name(contract) or not asked:
            return []
        ids: dict[str, EntryId] = {}
        with suppress(NotThereError):
            for part in _parts(asked, bounds.MONTHS_AT_ONCE):
                for page in self._pages(f"/projects/{contract}/entries", _Ids, {"month": part}):
                    entries = filter(None, map(EntryId.of, page.ids))
                    ids |= {entry_id.id: entry_id for entry_id in entries if entry_id.month in part}
        return newest_first(ids.values())

    def read(self, contract: str, ids: Sequence[EntryId]) -> dict[str, bytes]:
        if not is_folder_name(contract):
            return {}
        contents: dict[str, bytes] = {}
        with suppress(NotThereError):
            for part in _parts(ids, bounds.ENTRIES_AT_ONCE):
                contents |= self._read(contract, {entry_id.id for entry_id in part})
        return {entry_id.id: contents[entry_id.id] for entry_id in ids if entry_id.id in contents}

    def _read(self, contract: str, asked: set[str]) -> dict[str, bytes]:
        """Return the contents of some entries; the service leaves those for another call that make it too large."""
        contents: dict[str, bytes] = {}
        while asked:
            answer = self._calls.get(f"/projects/{contract}/entries/contents", _Contents, {"id": sorted(asked)})
            contents |= {each.id: each.content.encode()[: bounds.ENTRY + 1] for each in answer.items}
            rest = (asked & set(answer.rest)) - contents.keys()
            if rest == asked:
                raise InputError([f"{self.name}: sends none of the entries that it has"])
            asked = rest
        return contents

    def results(self, sha256: str) -> bytes | None:
        try:
            return self._calls.content(f"/blobs/{sha256}") if is_digest(sha256) else None
        except NotThereError:
            return None

    def result_sets(self) -> set[str]:
        return {digest for page in self._pages("/blobs", _Digests, {}) for digest in page.items if is_digest(digest)}

    def add(self, new: NewEntry) -> Added:
        self._put("results", new.results)
        query = {kind: self._put(kind, content) for kind, content in (("report", new.report), ("golden", new.golden))}
        query["default_branch"] = "true" if new.default_branch else ""
        # A copied entry may have lost its results, as after `history prune`.
        query["without_results"] = "true" if new.entry.results and new.results is None else ""
        named = {name: value for name, value in query.items() if value}
        path = f"/projects/{folder_of(new.entry.contract)}/entries"
        stored, is_new = self._calls.post(path, new.content, named, _Stored)
        if stored.key != new.entry.id:
            raise InputError([f"{self.name}: says that it has stored another entry"])
        return "added" if is_new else "exists"

    def _put(self, kind: str, content: bytes | None) -> str:
        """Send content, and return its digest; empty if there is none."""
        if content is None:
            return ""
        sha256 = hashlib.sha256(content).hexdigest()
        self._calls.put(f"/blobs/{sha256}", content, {"kind": kind})
        return sha256

    def _pages(self, path: str, kind: type[P], query: Mapping[str, str | Sequence[str]]) -> Iterator[P]:
        """Yield the pages of a list."""
        cursor: Mapping[str, str] = {}
        for _ in range(bounds.SERVICE_PAGES):
            page = self._calls.get(path, kind, {**query, **cursor})
            yield page
            if not page.next:
                return
            cursor = {"cursor": page.next}
        raise InputError([f"{self.name}: a list has more than {bounds.SERVICE_PAGES} pages"])

    def delete_results(self, digests: Collection[str]) -> None:  # noqa: ARG002 (the interface's)
        raise InputError([f"{self.name}: the service keeps result sets as long as their runs"])


def _parts(items: Sequence[T], most: int) -> Iterator[Sequence[T]]:
    return (items[start : start + most] for start in range(0, len(items), most))
