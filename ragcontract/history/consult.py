"""How commands and Python ask a history: the store by its name, the contract, and the check that asks."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from msgspec import Struct

from ragcontract.core.errors import InputError
from ragcontract.evaluation.source import ENTRY, Inputs, Local
from ragcontract.history.interface import Store
from ragcontract.history.lookup import EntryRows, Here, Lookup, look_up, not_read
from ragcontract.history.origin import here
from ragcontract.history.past import Past, only_contract
from ragcontract.history.stores import NoTokenError, open_store


class Consulted(Struct, frozen=True, kw_only=True):
    """A store, and the check that asks it."""

    open: Callable[[], Store]
    contract: str | None  # the name; None for the only one in the store
    here: Here

    def look_up(self, name: str | None) -> Lookup:
        """Read what a check needs; ``name`` is that of the entry that is its baseline, if any."""
        try:
            store = self.open()
        except NoTokenError as error:
            if name is None:
                return not_read(self.here.branch, error)
            raise
        return look_up(past_of(store, self.contract), name, self.here)

    def with_baseline(self, inputs: Inputs) -> tuple[Inputs, Lookup]:
        """Return inputs without a baseline that is an entry, and what a check needs."""
        inputs, name = inputs.without_entry()
        return inputs, self.look_up(name)

    def run_named(self, path: str) -> Local:
        """Return the run of the entry that stands in place of a path; raises :class:`InputError` if there is none."""
        looked_up = self.look_up(path.removeprefix(ENTRY))
        if looked_up.chosen is None:
            raise InputError([f"{path}: nothing is recorded yet"])
        return Local(EntryRows(chosen=looked_up.chosen))


def consult(history: str, environ: Mapping[str, str], branch: str | None, contract: str | None) -> Consulted:
    """Return the history that a user named, asked from the current folder."""
    return Consulted(open=partial(open_store, history, environ), contract=contract, here=here(environ, Path(), branch))


def past_of(store: Store, contract: str | None) -> Past:
    """Return the past of a contract, or of the only one in a store if none is named."""
    return Past(store, only_contract(store), named=False) if contract is None else Past(store, contract)
