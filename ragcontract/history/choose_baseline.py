"""Chooses the entry of a history that is the baseline of a check, and makes a ``baseline.json`` of it."""

from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct, structs

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.numbers import count
from ragcontract.core.run import RunRow
from ragcontract.core.safe_text import clipped, visible
from ragcontract.evaluation.source import ENTRY_PREFIX, entry_ref
from ragcontract.files.writing import document
from ragcontract.history.commits import Commits
from ragcontract.history.contract_entries import ContractEntries, contract_in_message
from ragcontract.history.entry import NO_COMMIT, SHORT_COMMIT, Entry, EntryId, is_commit_start, short_commit
from ragcontract.history.interface import ChangedResultsError, ResultSets, read_results
from ragcontract.runs.baseline_file import BaselineFile, StoredEvent, document_events

LAST_PASS, LAST = "last-pass", "last"
NAMES = f"{entry_ref(LAST_PASS)}, {entry_ref(LAST)}, a commit of at least {SHORT_COMMIT} digits, or the id of an entry"
START_OF_ROW = b'{"id":'  # of a result set
NOT_OURS = "is not one of rag-contract; delete it from the store"


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
        return cls(id=entry.id, state=entry.state, passed=entry.passed, has_results=entry.results is not None)


class Chosen(Struct, frozen=True, kw_only=True):
    """An entry that is the baseline, in the form of ``baseline.json``."""

    entry: Entry
    named: str  # last-pass, last, a commit or an id
    document: bytes

    def events(self, rows: type[RunRow], *, with_metrics: bool = False) -> Iterator[StoredEvent]:  # noqa: ARG002
        """Read the run as a stored baseline; ``history:`` and its id stand for the path in reports."""
        return document_events(self.document, entry_ref(self.entry.id), with_metrics=with_metrics)


def choose(entries: ContractEntries, name: str, branch: str | None, commits: Commits, own_run: int | None) -> Chosen:
    """Return the entry that ``name`` names: with results, recorded on the branch, at one of the commits.

    ``own_run`` is the workflow run of this check, whose entries are left out. The newest one is that of the newest
    commit, and at one commit that of the newest run. Raises :class:`InputError` if there is none.
    """
    _refuse_no_name(name)
    places = {sha: place for place, sha in enumerate(commits.order)}
    place_of = {sha[: len(NO_COMMIT)]: place for sha, place in places.items()}
    ids = [entry_id for entry_id in entries.ids() if entry_id.commit in place_of]  # newest first
    ids.sort(key=lambda entry_id: (place_of[entry_id.commit], -entry_id.run_id))
    candidates: list[_Candidate] = []
    for entry in entries.read(ids):
        if entry.source.commit in places and entry.source.branch == branch and not entry.is_of_run(own_run):
            candidates.append(_Candidate.of(entry))
            if entry.results and _fits(entry, name):
                return Chosen(entry=entry, named=name, document=document_of(entries.store, entry))
    raise NoEntryFitsError([_why_none(entries, name, branch, commits, candidates)])


def _fits(entry: Entry, name: str) -> bool:
    if name == LAST_PASS:
        return entry.passed
    return name in {LAST, entry.id} or (entry.source.commit or "").startswith(name)


def entry_named(entries: ContractEntries, name: str, branch: str | None) -> Entry:
    """Return the newest entry that a name fits, of a branch if one is named; raises :class:`InputError` if none does.

    Unlike :func:`choose`, the entry need not be at a commit before the one that is checked out.
    """
    name = name.removeprefix(ENTRY_PREFIX)
    _refuse_no_name(name)
    wanted = entries.branch(branch) if name in {LAST_PASS, LAST} else branch
    for entry in entries.newest_first():
        if wanted in {None, entry.source.branch} and _fits(entry, name):
            return entry
    on = f" on {visible(branch)}" if branch else ""
    none = f"no entry of {contract_in_message(entries.contract)}{on} matches this name"
    raise InputError([f"{visible(name)}: {none}", *entries.warnings()])


def _refuse_no_name(name: str) -> None:
    if name not in {LAST_PASS, LAST} and EntryId.of(name) is None and not is_commit_start(name):
        raise InputError([f"{visible(entry_ref(name))}: is not the name of an entry; use {NAMES}"])


def _why_none(
    entries: ContractEntries, name: str, branch: str | None, commits: Commits, candidates: Sequence[_Candidate]
) -> str:
    """Return why no entry can be the baseline."""
    start = entry_ref(name)
    number = len(commits.order)
    among = f"among the last {count(number, 'commit')} of {short_commit(commits.newest)}"
    on = f"on {visible(branch)} " if branch else ""
    advice = "".join(f"; {text}" for text in (*entries.warnings(), commits.advice) if text)
    if not candidates:
        where = f"; the newest is {_shown(entries.newest[0])}" if entries.newest else ""
        return f"{start}: no entry of {contract_in_message(entries.contract)} is {on}{among}{where}{advice}"
    of_them = f"of {contract_in_message(entries.contract)} {on}{among}"
    newest = f"{candidates[0].id} ({candidates[0].state})"
    if len(candidates) == 1:
        return f"{start}: the only entry {of_them}, {newest}, {_lack(candidates[0], name)}{advice}"
    does = "passed and has a result set" if any(candidate.passed for candidate in candidates) else "passed"
    if name != LAST_PASS:
        does = "has a result set" if name == LAST else "matches the name and has a result set"
    return f"{start}: none of the {count(len(candidates), 'entry')} {of_them} {does}; the newest is {newest}{advice}"


def _lack(entry: _Candidate, name: str) -> str:
    """Return why an entry cannot be the baseline of this name."""
    if name == LAST_PASS and not entry.passed:
        return "did not pass"
    return "does not match the name" if entry.has_results else "has no result set"


def _shown(entry: Entry) -> str:
    commit, branch = short_commit(entry.source.commit), entry.source.branch
    return f"{entry.id} ({f'{clipped(branch, bounds.BRANCH)}@' if branch else ''}{commit})"


def document_of(store: ResultSets, entry: Entry) -> bytes:
    """Return the ``baseline.json`` that an entry's run would make; raises :class:`InputError` without its results."""
    lines = lines_of(store, entry)
    head = BaselineFile(**structs.asdict(entry.head), queries=[])
    return b"".join(document(head, {"queries": map(msgspec.Raw, lines)}))


def lines_of(store: ResultSets, entry: Entry) -> list[bytes]:
    """Return the queries of an entry's result set, encoded; raises :class:`InputError` if it has none."""
    path = entry_ref(entry.id)
    if entry.results is None:
        why = clipped(entry.no_results or "it does not say why", bounds.MESSAGE)
        raise InputError([f"{path}: has no result set: {why}"])
    try:
        data = read_results(store, entry.results.sha256)
    except ChangedResultsError as error:
        raise InputError([f"{path}: its result set was changed; delete it from the store"]) from error
    if data is None:
        deleted = "its result set was deleted, probably by `rag-contract history prune`"
        raise InputError([f"{path}: {deleted}; name another entry, such as history:last"])
    lines = [*filter(None, data.split(b"\n"))]
    if not all(line.startswith(START_OF_ROW) for line in lines):  # a row for each byte would take all memory
        raise InputError([f"{path}: its result set {NOT_OURS}"])
    return lines
