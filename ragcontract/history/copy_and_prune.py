"""Copies a history from one store to another, and deletes old result sets. Both work with any store.

What is copied is checked first, because anybody may have written into a store: a file that is not what its name says is
left out, with a warning. Entries are copied byte by byte, so that their digests stay what they are.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.safe_text import shorten
from ragcontract.history.entry import (
    Entry,
    EntryId,
    NewEntry,
    OtherVersionError,
    decode,
    entry_path,
)
from ragcontract.history.interface import ChangedResultsError, RefusedError, Store, read_results


class Copied(Struct, frozen=True, kw_only=True):
    """What was copied, and what was not."""

    entries: int
    result_sets: int
    present: int  # entries that were in the target already
    other_versions: int  # entries of a version of the format that this program does not know, which are left out
    faulty: int  # entries and result sets that are left out
    warnings: tuple[str, ...]  # about what is left out; the first ``bounds.PROBLEMS``, and a count of the others


def copy(source: Store, target: Store) -> Copied:
    """Copy the entries and result sets that the target lacks.

    May be stopped and repeated. Raises InputError if a store cannot be used.
    """
    copying = _Copying(source, target)
    for contract in source.contracts():
        oldest_first = source.ids(contract, source.months(contract))[::-1]  # a copy that was stopped has no gaps
        for batch in _batches(oldest_first):
            copying.copy(contract, batch)
    return copying.copied()


def prune(store: Store, keep: int) -> int:
    """Delete the result sets that none of the newest ``keep`` entries of any contract names; return how many.

    Raises InputError, before anything is deleted, if one of these entries cannot be read, because it may need any of
    them. Nothing should be recorded in a folder meanwhile: an entry may have the results of one that is just deleted.
    """
    superfluous = store.result_sets()  # looked up first, so that those of later entries stay
    for contract in store.contracts() if superfluous else []:
        newest = (entry_id for month in store.months(contract) for entry_id in store.ids(contract, [month]))
        for batch in _batches(islice(newest, keep)):
            contents = store.read(contract, batch)
            for entry_id in batch:
                entry = _needed(contract, entry_id, contents.get(entry_id.id))
                if entry.results is not None:
                    superfluous.discard(entry.results.sha256)
    if superfluous:
        store.delete_results(sorted(superfluous))
    return len(superfluous)


def _needed(contract: str, entry_id: EntryId, content: bytes | None) -> Entry:
    path = entry_path(contract, entry_id.id)
    if content is None:
        raise InputError([f"{path}: was deleted meanwhile, so no result set is deleted; run the command again"])
    try:
        return decode(content, path)
    except OtherVersionError as error:
        reason = f"{path}: was written by a newer rag-contract; use that one"
        raise InputError([f"{reason}; no result set is deleted"]) from error
    except InputError as error:
        raise InputError([f"{error}; no result set is deleted, because it may need any"]) from error


def _batches(ids: Sequence[EntryId] | Iterator[EntryId]) -> Iterator[list[EntryId]]:
    remaining = iter(ids)
    while batch := [*islice(remaining, bounds.ENTRIES_AT_ONCE)]:
        yield batch


class _Copying:
    """One copy, from the sets of what there was before it to the counts of what it did."""

    def __init__(self, source: Store, target: Store) -> None:
        self._source, self._target = source, target
        self._present = {
            (contract, entry.id)
            for contract in target.contracts()
            for entry in target.ids(contract, target.months(contract))
        }
        self._missing = source.result_sets() - target.result_sets()
        self._counts = dict.fromkeys(("entries", "result_sets", "present", "other_versions", "faulty"), 0)
        self._warnings: list[str] = []

    def copy(self, contract: str, ids: Sequence[EntryId]) -> None:
        """Copy some entries of a contract."""
        new = [entry for entry in ids if (contract, entry.id) not in self._present]
        self._counts["present"] += len(ids) - len(new)
        # An entry that the target has may have lost its result set there. If none is missing, skip the search.
        wanted = ids if self._missing else new
        contents = self._source.read(contract, wanted)
        for entry_id in wanted:
            if entry_id.id in contents:
                is_new = (contract, entry_id.id) not in self._present
                self._copy(entry_path(contract, entry_id.id), contents[entry_id.id], is_new=is_new)

    def _copy(self, path: str, content: bytes, *, is_new: bool) -> None:
        try:
            entry = decode(content, path)
        except OtherVersionError:
            self._counts["other_versions"] += is_new
            return
        except InputError as error:
            if is_new:
                self._leave_out(str(error))
            return
        results = self._results(entry)
        if not is_new and results is None:
            return
        try:
            added = self._target.add(NewEntry(entry=entry, content=content, results=results))
        except RefusedError as error:
            self._leave_out(str(error))
            return
        if results is not None and entry.results is not None:
            self._missing.discard(entry.results.sha256)
        if is_new:
            self._counts["entries" if added == "added" else "present"] += 1
        self._counts["result_sets"] += results is not None

    def _results(self, entry: Entry) -> bytes | None:
        """Return the result set of an entry if the target lacks it, and if it is what its name says."""
        if entry.results is None or entry.results.sha256 not in self._missing:
            return None
        sha256 = entry.results.sha256
        try:
            return read_results(self._source, sha256)
        except ChangedResultsError as error:
            self._leave_out(str(error))
            self._missing.discard(sha256)
            return None

    def _leave_out(self, reason: str) -> None:
        self._counts["faulty"] += 1
        if len(self._warnings) < bounds.PROBLEMS:
            self._warnings.append(f"{shorten(reason, bounds.MESSAGE)}; it was not copied")

    def copied(self) -> Copied:
        """Return the counts, and the warnings."""
        warnings = list(self._warnings)
        if more := self._counts["faulty"] - len(warnings):
            warnings.append(f"… and {more:,} more files that were not copied")
        if count := self._counts["other_versions"]:
            entries = "1 entry was" if count == 1 else f"{count:,} entries were"
            warnings.append(f"{entries} written by a newer rag-contract, and not copied")
        return Copied(warnings=tuple(warnings), **self._counts)
