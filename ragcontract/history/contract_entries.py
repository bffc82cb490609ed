"""The entries of a contract, read from a store as far as they are needed."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.numbers import beginning, count, more
from ragcontract.core.safe_text import clipped, encodable
from ragcontract.history.entry import Entry, EntryId, OtherVersionError, decode, entry_path, folder_of, last_attempts
from ragcontract.history.interface import Store

FIRST_MONTHS, MORE_MONTHS = 2, 12  # read at once


UNNAMED = "the contract without a name"


def contract_in_message(contract: str) -> str:
    """Return how a message names a contract."""
    return repr(contract) if contract else UNNAMED


def entries_of(store: Store, contract: str | None) -> "ContractEntries":
    """Return the entries of a contract, or of the only one in a store if none is named.

    Raises :class:`InputError` if none is named and the store has several, or none.
    """
    if contract is not None:
        contract = encodable(contract)  # as it was recorded
        return ContractEntries(store, folder_of(contract), contract)
    folders = store.contracts()
    if not folders:
        raise InputError([f"{store.name}: has no entries yet; `rag-contract history add` records a check"])
    if len(folders) > 1:
        listed = ", ".join(folders[: bounds.NAMES]) + more(len(folders), bounds.NAMES, form=" and {}")
        raise InputError([f"{store.name}: has several contracts ({listed}); name one with --contract"])
    return ContractEntries(store, folders[0])


def entries_of_all(store: Store, contract: str | None) -> "list[ContractEntries]":
    """Return the entries of a contract, or of each in a store if none is named; raises InputError if it has none."""
    if contract is not None or len(folders := store.contracts()) <= 1:
        return [entries_of(store, contract)]
    return [ContractEntries(store, folder) for folder in folders]


class ContractEntries:
    """Reads the entries of a contract, newest first, each workflow run once.

    Of the attempts of a run, the last one counts. ``skipped`` has the paths of entries of unknown versions, and
    ``faulty`` what is wrong with others; neither is yielded.
    """

    def __init__(self, store: Store, folder: str, name: str | None = None) -> None:
        """Ask for the entries in a contract's folder; ``name`` is the contract's, if it is known."""
        self.store = store
        self.folder = folder
        self._name = name
        self.skipped: dict[str, None] = {}
        self.faulty: dict[str, None] = {}
        self._kept: dict[str, bytes | None] = {}

    @cached_property
    def contract(self) -> str:
        """The name of the contract: as it was given, or as the newest entry has it."""
        if self._name is not None:
            return self._name
        return self.newest[0].contract if self.newest else self.folder

    def newest_first(self) -> Iterator[Entry]:
        """Yield all entries."""
        return self.read(self.ids())

    def of_branch(self, branch: str | None) -> Iterator[Entry]:
        """Yield the entries of a branch."""
        return (entry for entry in self.newest_first() if entry.source.branch == branch)

    def read(self, ids: Iterable[EntryId]) -> Iterator[Entry]:
        """Yield the entries with these ids, in this order. The contents of some are read at once.

        The first contents are kept: a check asks for the newest entries twice, to choose its baseline and to show the
        trend. Each is decoded when its turn comes, because an entry takes ten times its size.
        """
        left = iter(ids)
        while batch := [*islice(left, bounds.ENTRIES_AT_ONCE)]:
            unknown = [entry_id for entry_id in batch if entry_id.id not in self._kept]
            contents: dict[str, bytes | None] = dict.fromkeys(entry_id.id for entry_id in unknown)
            contents |= self.store.read(self.folder, unknown) if unknown else {}
            if not self._kept:
                self._kept = contents
            for entry_id in batch:
                content = contents[entry_id.id] if entry_id.id in contents else self._kept[entry_id.id]
                if content is not None and (entry := self._decoded(entry_id, content)):
                    yield entry

    def has_any(self, own_run: int | None) -> bool:
        """Return whether there is an entry of the contract, on any branch, that is not of the workflow run ``own_run``.

        Otherwise, re-running the first recorded run would fail.
        """
        return any(entry_id.run_id != own_run for entry_id in self._ids())

    def may_have_passed(self, branch: str | None, own_run: int | None) -> bool:
        """Return whether a run of the branch has passed with results, or may have because an entry cannot be read.

        Entries of the workflow run ``own_run`` do not count.
        """
        has_passed = any(
            entry.source.branch == branch and entry.passed and entry.results and not entry.is_of_run(own_run)
            for entry in self.newest_first()
        )
        return has_passed or bool(self.skipped or self.faulty)

    def ids(self) -> Iterator[EntryId]:
        """Yield the ids of the newest ``bounds.ENTRIES`` entries; the names of some months are read at once."""
        return islice(self._ids(), bounds.ENTRIES)

    def _ids(self) -> Iterator[EntryId]:
        months = self.store.months(self.folder)
        later: set[tuple[str, str]] = set()
        start, size = 0, FIRST_MONTHS
        while start < len(months):
            ids = self.store.ids(self.folder, months[start : start + size])
            kept = last_attempts(entry_id for entry_id in ids if (entry_id.commit, entry_id.run) not in later)
            yield from kept
            later |= {(entry_id.commit, entry_id.run) for entry_id in kept}
            start, size = start + size, MORE_MONTHS

    def _decoded(self, entry_id: EntryId, data: bytes) -> Entry | None:
        path = entry_path(self.folder, entry_id.id)
        try:
            return decode(data, path)
        except OtherVersionError:
            self.skipped[path] = None
        except InputError as error:
            self.faulty |= dict.fromkeys(error.problems)
        return None

    def warnings(self) -> Iterator[str]:
        """Yield what could not be read so far."""
        if self.skipped:
            number, first = count(len(self.skipped), "entry"), next(iter(self.skipped))
            yield f"history: skipped {number} written by a newer rag-contract, such as {first}"
        for problem in [*self.faulty][: bounds.NAMES]:
            yield f"history: {problem}; skipped"
        if (further := len(self.faulty) - bounds.NAMES) > 0:
            yield f"history: {count(further, 'further entry')} skipped"

    @cached_property
    def newest(self) -> tuple[Entry, ...]:
        """The newest entries, of all branches; at most as many as are read at once."""
        return tuple(islice(self.newest_first(), bounds.ENTRIES_AT_ONCE))

    def branch(self, wanted: str | None) -> str | None:
        """Return the wanted branch, or the only one that entries have; None if they have none.

        Raises :class:`InputError` if entries have several, of which none is wanted.
        """
        if wanted:
            return encodable(wanted)
        branches = sorted({entry.source.branch for entry in self.newest if entry.source.branch})
        if len(branches) > 1:
            listed = beginning([clipped(branch, bounds.BRANCH) for branch in branches])
            has = f"{contract_in_message(self.contract)} has entries from several branches ({listed})"
            raise InputError([f"history: {has}; name one with --branch"])
        return branches[0] if branches else None
