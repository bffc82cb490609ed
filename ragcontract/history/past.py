"""The recorded runs of a contract: read from a store as far as they are needed, and the one that is a baseline."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice

import msgspec
from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.numbers import count, more
from ragcontract.core.safe_text import clipped, encodable, visible
from ragcontract.evaluation.source import ENTRY
from ragcontract.files.writing import document
from ragcontract.history.commits import Commits
from ragcontract.history.entry import NO_COMMIT, Entry, EntryId, OtherVersionError, decode, entry_path, folder_of
from ragcontract.history.interface import Store
from ragcontract.runs.baseline_file import BaselineFile, StoredHead

FIRST_MONTHS, MORE_MONTHS = 2, 12  # read at once
SHORT = 7  # digits of a commit, as git shows it
LAST_PASS, LAST = "last-pass", "last"
NAMES = f"{ENTRY}{LAST_PASS}, {ENTRY}{LAST}, a commit of at least {SHORT} digits, or the id of an entry"
START_OF_ROW = b'{"id":'  # of a result set
_COMMIT = re.compile(rf"[0-9a-f]{{{SHORT},64}}")


def named(contract: str) -> str:
    """Return a contract's name for a message."""
    return repr(contract) if contract else "the contract without a name"


def only_contract(store: Store) -> str:
    """Return the folder of the only contract in a store; raises :class:`InputError` if it has several, or none."""
    folders = store.contracts()
    if not folders:
        raise InputError([f"{store.name}: has no entries yet; `rag-contract history add` records a check"])
    if len(folders) > 1:
        listed = ", ".join(folders[: bounds.NAMES]) + more(len(folders), bounds.NAMES, form=" and {}")
        raise InputError([f"{store.name}: has several contracts ({listed}); name one with --contract"])
    return folders[0]


class Past:
    """Reads the entries of a contract, newest first, each workflow run once.

    Of the attempts of a run, the last one counts. ``skipped`` counts entries of unknown versions, and ``faulty`` has
    what is wrong with others; neither is yielded.
    """

    def __init__(self, store: Store, contract: str, *, named: bool = True) -> None:
        """Ask for a contract by its name, or by its folder in the store if it is not ``named``."""
        self.store = store
        self.contract = encodable(contract)  # as it was recorded
        self.folder = folder_of(self.contract) if named else contract
        self.skipped: dict[str, None] = {}
        self.faulty: dict[str, None] = {}
        self._kept: dict[str, bytes | None] = {}

    def entries(self) -> Iterator[Entry]:
        """Yield the entries."""
        return self.read(self.ids())

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

    def has_any(self, own_run: int | None = None) -> bool:
        """Return whether there is an entry of the contract, on any branch, that is not of the workflow run ``own_run``.

        Without the exception, the first run that records could not be run again.
        """
        return any(own_run is None or entry_id.run_id != own_run for entry_id in self._ids())

    def may_have_passed(self, branch: str | None) -> bool:
        """Return whether a run of the branch has passed, or may have because an entry cannot be read."""
        has_passed = any(entry.source.branch == branch and passed(entry) for entry in self.entries())
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
            kept = _last_attempts(entry_id for entry_id in ids if (entry_id.commit, entry_id.run) not in later)
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
            yield f"history: {number} of a version that this rag-contract does not know, skipped, as {first}"
        for problem in [*self.faulty][: bounds.NAMES]:
            yield f"history: {problem}; skipped"
        if (further := len(self.faulty) - bounds.NAMES) > 0:
            yield f"history: {count(further, 'further entry')} skipped"

    @cached_property
    def newest(self) -> tuple[Entry, ...]:
        """The newest entries, of all branches; at most as many as are read at once."""
        return tuple(islice(self.entries(), bounds.ENTRIES_AT_ONCE))

    def branch(self, wanted: str | None) -> str | None:
        """Return the wanted branch, or the only one that entries have; None if they have none.

        Raises :class:`InputError` if entries have several, of which none is wanted.
        """
        if wanted:
            return encodable(wanted)
        branches = sorted({entry.source.branch for entry in self.newest if entry.source.branch})
        if len(branches) > 1:
            listed = ", ".join(clipped(branch, bounds.BRANCH) for branch in branches[: bounds.NAMES])
            entries = f"the entries of {named(self.contract)} are of several branches ({listed})"
            raise InputError([f"history: {entries}; name one with --branch"])
        return branches[0] if branches else None


def _last_attempts(ids: Iterable[EntryId]) -> list[EntryId]:
    """Return ids, newest first, with the last attempt of each run in the place of its first."""
    slots: dict[tuple[str, str], EntryId] = {}
    for entry_id in sorted(ids, key=lambda entry: entry.id):
        key = entry_id.commit, entry_id.run
        if key not in slots or slots[key].attempt < entry_id.attempt:
            slots[key] = entry_id
    return [*reversed(slots.values())]


class NoEntryFitsError(InputError):
    """There are entries, and none of them can be the baseline."""


class _Candidate(Struct, frozen=True, kw_only=True):
    """What is kept of an entry that could be the baseline but for its verdict, results or name; it may be large."""

    id: str
    state: str
    passed: bool
    has_results: bool

    @classmethod
    def of(cls, entry: Entry) -> "_Candidate":
        return cls(id=entry.id, state=state_of(entry), passed=passed(entry), has_results=entry.results is not None)


class Chosen(Struct, frozen=True, kw_only=True):
    """An entry that is the baseline, in the form of ``baseline.json``."""

    entry: Entry
    named: str  # last-pass, last, a commit or an id
    document: bytes

    @property
    def path(self) -> str:
        """What stands for the path of the baseline in reports."""
        return f"{ENTRY}{self.entry.id}"


def choose(past: Past, name: str, branch: str | None, commits: Commits, own_run: int | None) -> Chosen:
    """Return the entry that ``name`` names: with results, recorded on the branch, at one of the commits.

    ``own_run`` is the workflow run of this check, whose entries are left out. The newest one is that of the newest
    commit, and at one commit that of the newest run. Raises :class:`InputError` if there is none.
    """
    _refuse_no_name(name)
    places = {sha: place for place, sha in enumerate(commits.order)}
    place_of = {sha[: len(NO_COMMIT)]: place for sha, place in places.items()}
    ids = [entry_id for entry_id in past.ids() if entry_id.commit in place_of]  # newest first
    ids.sort(key=lambda entry_id: (place_of[entry_id.commit], -entry_id.run_id))
    candidates: list[_Candidate] = []
    for entry in past.read(ids):
        if entry.source.commit in places and entry.source.branch == branch and not is_own(entry, own_run):
            candidates.append(_Candidate.of(entry))
            if entry.results and _fits(entry, name):
                return Chosen(entry=entry, named=name, document=document_of(past.store, entry))
    raise NoEntryFitsError([_why_none(past, name, branch, commits, candidates)])


def is_own(entry: Entry, own_run: int | None) -> bool:
    """Return whether an entry is of the workflow run ``own_run``."""
    return own_run is not None and entry.source.run_id == own_run


def _fits(entry: Entry, name: str) -> bool:
    if name == LAST_PASS:
        return passed(entry)
    return name in {LAST, entry.id} or (entry.source.commit or "").startswith(name)


def passed(entry: Entry) -> bool:
    """Return whether a run passed by itself: no label accepted it, and its commit is what ran."""
    return entry.verdict == "pass" and not entry.accepted and not entry.source.dirty


def entry_named(past: Past, name: str, branch: str | None) -> Entry:
    """Return the newest entry that a name fits, of a branch if one is named; raises :class:`InputError` if none does.

    Unlike :func:`choose`, the entry need not be at a commit before the one that is checked out.
    """
    name = name.removeprefix(ENTRY)
    _refuse_no_name(name)
    for entry in past.entries():
        if branch in {None, entry.source.branch} and _fits(entry, name):
            return entry
    on = f" on {visible(branch)}" if branch else ""
    raise InputError([f"{visible(name)}: no entry of {named(past.contract)}{on} is named so", *past.warnings()])


def _refuse_no_name(name: str) -> None:
    if name not in {LAST_PASS, LAST} and EntryId.of(name) is None and not _COMMIT.fullmatch(name):
        raise InputError([f"{visible(f'{ENTRY}{name}')}: names no entry; use {NAMES}"])


def _why_none(past: Past, name: str, branch: str | None, commits: Commits, candidates: Sequence[_Candidate]) -> str:
    """Return why no entry can be the baseline."""
    start = f"{ENTRY}{name}"
    number = len(commits.order)
    among = f"among the last {count(number, 'commit')} of {commits.newest[:SHORT]}"
    on = f"on {visible(branch)} " if branch else ""
    advice = "".join(f"; {text}" for text in (*past.warnings(), commits.advice) if text)
    if not candidates:
        where = f"; the newest is {_shown(past.newest[0])}" if past.newest else ""
        return f"{start}: no entry of {named(past.contract)} is {on}{among}{where}{advice}"
    of_them = f"of {named(past.contract)} {on}{among}"
    newest = f"{candidates[0].id} ({candidates[0].state})"
    if len(candidates) == 1:
        return f"{start}: the only entry {of_them}, {newest}, {_lack(candidates[0], name)}{advice}"
    does = "passed and has a result set" if any(candidate.passed for candidate in candidates) else "passed"
    if name != LAST_PASS:
        does = "has a result set" if name == LAST else "is named so and has a result set"
    return f"{start}: none of the {count(len(candidates), 'entry')} {of_them} {does}; the newest is {newest}{advice}"


def _lack(entry: _Candidate, name: str) -> str:
    """Return why an entry cannot be the baseline of this name."""
    if name == LAST_PASS and not entry.passed:
        return "did not pass"
    return "is named otherwise" if entry.has_results else "has no result set"


def _shown(entry: Entry) -> str:
    commit, branch = (entry.source.commit or NO_COMMIT)[:SHORT], entry.source.branch
    return f"{entry.id} ({f'{clipped(branch, bounds.BRANCH)}@' if branch else ''}{commit})"


def state_of(entry: Entry) -> str:
    """Return the verdict of an entry, and why a pass of it does not count."""
    state = f"{entry.verdict}, accepted by a label" if entry.accepted else entry.verdict
    return f"{state}, of changed files" if entry.source.dirty else state


def document_of(store: Store, entry: Entry) -> bytes:
    """Return the ``baseline.json`` that an entry's run would make; raises :class:`InputError` without its results."""
    path = f"{ENTRY}{entry.id}"
    if entry.results is None:
        raise InputError(
            [f"{path}: has no result set: {clipped(entry.no_results or 'it does not say why', bounds.MESSAGE)}"]
        )
    data = store.results(entry.results.sha256)
    if data is None:
        raise InputError([f"{path}: its result set is gone, as after `rag-contract history prune`; name a newer entry"])
    if hashlib.sha256(data).hexdigest() != entry.results.sha256:
        raise InputError([f"{path}: its result set was changed; delete it from the store"])
    head = BaselineFile(**{name: getattr(entry.head, name) for name in StoredHead.__struct_fields__}, queries=[])
    lines = [*filter(None, data.split(b"\n"))]
    if not all(line.startswith(START_OF_ROW) for line in lines):  # a row for each byte would take all memory
        raise InputError([f"{path}: its result set is not one of rag-contract; delete it from the store"])
    return b"".join(document(head, {"queries": map(msgspec.Raw, lines)}))
