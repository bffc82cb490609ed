"""The options for the history of a contract, and what a command takes from a store that they name."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from ragcontract.core.errors import InputError
from ragcontract.core.lines import Line
from ragcontract.evaluation.source import ENTRY, Inputs, Local

if TYPE_CHECKING:
    from ragcontract.history.interface import Store
    from ragcontract.history.lookup import Here, Lookup

VARIABLE = "RAG_CONTRACT_HISTORY"
STORE: Line[Any] = Line(home="ragcontract.history.stores")
LOOKUP: Line[Any] = Line(home="ragcontract.history.lookup")
PAST: Line[Any] = Line(home="ragcontract.history.past")
HERE: Line[Any] = Line(home="ragcontract.history.origin")

history_option = click.option(
    "--history",
    envvar=VARIABLE,
    metavar="STORE",
    help=f"The history: a folder, or github: for this repository's branch. [${VARIABLE}]",
)
branch_option = click.option(
    "--branch", metavar="NAME", help="The branch whose entries count. [the base branch, or the only one with entries]"
)
contract_option = click.option(
    "--contract", metavar="NAME", help="The name of the contract. [the only one in the history]"
)


def history_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for the history to a command whose contract has another option for its name."""
    return history_option(branch_option(command))


class Consulted(Struct, frozen=True, kw_only=True):
    """A store, and the check that asks it."""

    store: "Store"
    contract: str | None  # None for the only one in the store
    here: "Here"

    def look_up(self, name: str | None) -> "Lookup":
        """Read what a check needs; ``name`` is that of the entry that is its baseline, if any."""
        past, lookup = PAST.load(), LOOKUP.load()
        folder = None if self.contract is not None else past.only_contract(self.store)
        runs = past.Past(self.store, self.contract if folder is None else folder, folder)
        looked: Lookup = lookup.look_up(runs, name, self.here)
        return looked


def consulted(history: str | None, branch: str | None, contract: str | None = None) -> Consulted | None:
    """Return the history that an option or the environment names; None without one."""
    if not history:
        return None
    environ: Mapping[str, str] = os.environ
    here = HERE.load().here(environ, Path(), branch)
    return Consulted(store=STORE.load().open_store(history, environ), contract=contract, here=here)


def with_history(inputs: Inputs, history: Consulted | None) -> "tuple[Inputs, Lookup | None]":
    """Return inputs whose baseline is no name of an entry, and what the history says; None without a history.

    Raises :class:`InputError` if the baseline is an entry and no history is named.
    """
    entries = [*filter(is_entry, inputs.paths("baseline"))]
    if history is None:
        if entries:
            raise _no_history(entries[0])
        return inputs, None
    inputs, name = inputs.without_entry()
    return inputs, history.look_up(name)


def is_entry(path: str) -> bool:
    """Return whether what stands in place of a path is the name of an entry."""
    return path.startswith(ENTRY)


def run_named(path: str, history: Consulted | None) -> Local:
    """Return the run of the entry that stands in place of a path; raises :class:`InputError` if there is none."""
    if history is None:
        raise _no_history(path)
    looked_up = history.look_up(path.removeprefix(ENTRY))
    if looked_up.chosen is None:
        raise InputError([f"{path}: nothing is recorded yet"])
    return Local(LOOKUP.load().EntryRows(chosen=looked_up.chosen))


def _no_history(path: str) -> InputError:
    return InputError([f"{path}: is an entry of a history; name the history with --history or {VARIABLE}"])
