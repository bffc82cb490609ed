"""Says whether a commit passed: the newest run of each contract at this very commit."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Literal

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.errors import ExitCode, InputError
from ragcontract.core.safe_text import clipped, visible
from ragcontract.history.contract_entries import UNNAMED, ContractEntries, entries_of
from ragcontract.history.entry import NO_COMMIT, SHORT_COMMIT, Entry, is_commit_start, short_commit
from ragcontract.history.interface import Store

RECENT = timedelta(days=90)  # a contract with a newer entry must have passed, unless contracts are named
Outcome = Literal["success", "failure", "error"]  # as GitHub names the states of a commit
# The worst is first.
EXIT_CODES: dict[Outcome, ExitCode] = {
    "error": ExitCode.UNUSABLE_INPUT,
    "failure": ExitCode.BROKEN,
    "success": ExitCode.PASS,
}


class ContractState(Struct, frozen=True, kw_only=True):
    """The result of one contract at the commit."""

    contract: str
    state: Outcome
    why: str  # a clause
    entry: Entry | None = None


class CommitState(Struct, frozen=True, kw_only=True):
    """The results of all contracts at a commit."""

    commit: str  # in full, if an entry says it
    contracts: list[ContractState]

    @property
    def state(self) -> Outcome:
        states = {each.state for each in self.contracts}
        return next((state for state in EXIT_CODES if state in states), "error")

    @property
    def exit_code(self) -> ExitCode:
        return EXIT_CODES[self.state]

    @property
    def description(self) -> str:
        """One line for a commit's status."""
        texts = [f"{each.contract or UNNAMED}: {each.why}" for each in self.contracts]
        return clipped("; ".join(texts), bounds.STATUS_DESCRIPTION)


def commit_state(store: Store, commit: str, contracts: Sequence[str], now: datetime) -> CommitState:
    """Return the results of the named contracts at a commit, by default of all with entries of the last 90 days.

    Raises :class:`InputError` if ``commit`` is not a commit or the beginning of several, or if there is no contract.
    """
    if not is_commit_start(commit):
        advice = f"give at least {SHORT_COMMIT} of its hexadecimal digits"
        raise InputError([f"{visible(commit)}: is not a commit; {advice}"])
    named = [entries_of(store, name) for name in dict.fromkeys(contracts)]
    judged = named or [ContractEntries(store, folder) for folder in _recent(store, now)]
    if not judged:
        nothing = f"no contract has an entry from the last {RECENT.days} days"
        raise InputError([f"{store.name}: {nothing}; name one with --contract"])
    states = [_state(entries, commit) for entries in judged]
    commits = {each.entry.source.commit for each in states if each.entry}
    if len(commits) > 1:
        listed = " and ".join(sorted(str(sha)[: len(NO_COMMIT)] for sha in commits))
        raise InputError([f"{commit}: matches several commits ({listed}); give more digits"])
    return CommitState(commit=next(iter(commits), None) or commit, contracts=states)


def _recent(store: Store, now: datetime) -> Iterator[str]:
    """Yield the contracts with an entry of the last 90 days, by the times in the ids."""
    earliest = f"{now - RECENT:%Y%m%dT%H%M%SZ}"
    for contract in store.contracts():
        # Of all of these months: anybody may have made a later one that has no entries.
        months = [month for month in store.months(contract) if month.replace("-", "") >= earliest[:6]]
        if any(entry_id.id >= earliest for entry_id in store.ids(contract, months)):
            yield contract


def _state(entries: ContractEntries, commit: str) -> ContractState:
    ids = [entry_id for entry_id in entries.ids() if entry_id.commit.startswith(commit[: len(NO_COMMIT)])]
    ids.sort(key=lambda entry_id: (entry_id.run_id, entry_id.id), reverse=True)
    at_commit = [entry for entry in entries.read(ids) if (entry.source.commit or "").startswith(commit)]
    entry = next((entry for entry in at_commit if not entry.source.dirty), next(iter(at_commit), None))
    state: Outcome = "error"
    if unread := [*entries.skipped, *entries.faulty]:
        entry, why = None, f"an entry cannot be read ({unread[0]})"
    elif entry is None:
        where = f"; the newest is {entries.newest[0].id}" if entries.newest else ""
        why = f"no entry at {short_commit(commit)}{where}"
    elif entry.source.dirty:
        why = f"all runs at {short_commit(commit)} are from a dirty working tree, such as {entry.id}"
    else:
        state, why = "success" if entry.passed else "failure", entry.state
    return ContractState(contract=entries.contract, state=state, why=why, entry=entry)
