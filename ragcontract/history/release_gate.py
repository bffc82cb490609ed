"""Says whether a commit passed: the newest run of each contract at this very commit."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Literal

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.errors import ExitCode, InputError
from ragcontract.core.safe_text import clipped, visible
from ragcontract.history.entry import NO_COMMIT, Entry, EntryId
from ragcontract.history.interface import Store
from ragcontract.history.past import SHORT, Past, passed, state_of

RECENT = timedelta(days=90)  # a contract with a newer entry must have passed, unless contracts are named
Outcome = Literal["success", "failure", "error"]  # as GitHub names the states of a commit
EXIT_CODES: dict[Outcome, ExitCode] = {
    "success": ExitCode.PASS,
    "failure": ExitCode.BROKEN,
    "error": ExitCode.UNUSABLE_INPUT,
}
WORST_FIRST: tuple[Outcome, ...] = ("error", "failure", "success")
_COMMIT = re.compile(rf"[0-9a-f]{{{SHORT},64}}")


class ContractState(Struct, frozen=True, kw_only=True):
    """What became of one contract at the commit."""

    contract: str
    state: Outcome
    why: str  # a clause
    entry: Entry | None = None


class Release(Struct, frozen=True, kw_only=True):
    """What became of all contracts at a commit."""

    commit: str  # in full, if an entry says it
    contracts: list[ContractState]

    @property
    def state(self) -> Outcome:
        states = {each.state for each in self.contracts}
        return next((state for state in WORST_FIRST if state in states), "error")

    @property
    def exit_code(self) -> ExitCode:
        return EXIT_CODES[self.state]

    @property
    def description(self) -> str:
        """One line for a commit's status."""
        texts = [f"{each.contract or 'contract'}: {each.why}" for each in self.contracts]
        return clipped("; ".join(texts), bounds.STATUS_DESCRIPTION)


def release(store: Store, commit: str, contracts: Sequence[str], now: datetime) -> Release:
    """Return what became of the named contracts at a commit, by default of all with entries of the last 90 days.

    Raises :class:`InputError` if ``commit`` is no commit or the beginning of several, or if there is no contract.
    """
    if not _COMMIT.fullmatch(commit):
        raise InputError([f"{visible(commit)}: is not a commit; give at least {SHORT} of its hexadecimal digits"])
    pasts = [Past(store, name) for name in dict.fromkeys(contracts)]
    pasts = pasts or [Past(store, folder, named=False) for folder in _recent(store, now)]
    if not pasts:
        nothing = f"no contract has an entry of the last {RECENT.days} days"
        raise InputError([f"{store.name}: {nothing}; name one with --contract"])
    states = [_state(past, commit) for past in pasts]
    commits = {each.entry.source.commit for each in states if each.entry}
    if len(commits) > 1:
        listed = " and ".join(sorted(str(sha)[: len(NO_COMMIT)] for sha in commits))
        raise InputError([f"{commit}: several commits begin so ({listed}); give more digits"])
    return Release(commit=next(iter(commits), None) or commit, contracts=states)


def _recent(store: Store, now: datetime) -> Iterator[str]:
    """Yield the contracts with an entry of the last 90 days, by the times in the ids."""
    earliest = f"{now - RECENT:%Y%m%dT%H%M%SZ}"
    for contract in store.contracts():
        # Of all of these months: anybody may have made a later one that has no entries.
        months = [month for month in store.months(contract) if month.replace("-", "") >= earliest[:6]]
        if any(entry_id.id >= earliest for entry_id in store.ids(contract, months)):
            yield contract


def _state(past: Past, commit: str) -> ContractState:
    ids = [entry_id for entry_id in past.ids() if _may_be_of(entry_id, commit)]
    ids.sort(key=lambda entry_id: (entry_id.run_id, entry_id.id), reverse=True)
    entry = next((entry for entry in past.read(ids) if (entry.source.commit or "").startswith(commit)), None)
    if unread := [*past.skipped, *past.faulty]:
        return ContractState(contract=past.contract, state="error", why=f"an entry cannot be read ({unread[0]})")
    if entry is None:
        newest = next(past.entries(), None)
        where = f"; the newest is {newest.id}" if newest else ""
        return ContractState(contract=past.contract, state="error", why=f"no entry at {commit[:SHORT]}{where}")
    if entry.source.dirty:
        why = f"no entry at {commit[:SHORT]} but one of changed files, {entry.id}"
        return ContractState(contract=past.contract, state="error", why=why, entry=entry)
    state: Outcome = "success" if passed(entry) else "failure"
    return ContractState(contract=past.contract, state=state, why=state_of(entry), entry=entry)


def _may_be_of(entry_id: EntryId, commit: str) -> bool:
    digits = len(NO_COMMIT)
    return entry_id.commit.startswith(commit[:digits])
