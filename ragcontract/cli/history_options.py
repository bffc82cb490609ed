"""The options for the history of a contract. What they name is only loaded if a command gets one."""

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from ragcontract.cli.console import warn
from ragcontract.core.errors import InputError
from ragcontract.core.lines import Line
from ragcontract.evaluation.source import Inputs, Local, is_entry

if TYPE_CHECKING:
    from ragcontract.history.for_check import HistoryFacts, HistoryOfCheck

VARIABLE = "RAG_CONTRACT_HISTORY"
HISTORY: "Line[Callable[[str, Mapping[str, str], str | None, str | None], HistoryOfCheck]]" = Line(
    home="ragcontract.history.for_check:history_of_check"
)

history_option = click.option(
    "--history",
    envvar=VARIABLE,
    metavar="STORE",
    help="A folder, github:owner/name@branch (github: is this repository), or https://… of a team service. "
    f"[${VARIABLE}]",
)
branch_option = click.option(
    "--branch", metavar="NAME", help="Use the entries of this branch. [the base branch, or the only one]"
)
contract_option = click.option("--contract", metavar="NAME", help="The contract. [the only one]")


def history_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for the history to a command."""
    return history_option(branch_option(command))


def history_named(history: str | None, branch: str | None, contract: str | None) -> "HistoryOfCheck | None":
    """Return the history that an option or the environment names; None without one."""
    return HISTORY.load()(history, os.environ, branch, contract) if history else None


def with_history(inputs: Inputs, history: "HistoryOfCheck | None") -> "tuple[Inputs, HistoryFacts | None]":
    """Return inputs whose baseline is no name of an entry, and what the history says; None without a history.

    Raises :class:`InputError` if the baseline is an entry and no history is named.
    """
    if history is not None:
        inputs, name = inputs.without_entry()
        return inputs, history.facts(name)
    for path in filter(is_entry, inputs.paths("baseline")):
        raise _no_history(path)
    return inputs, None


def run_named(path: str, history: "HistoryOfCheck | None") -> Local:
    """Return the run of the entry that stands in place of a path; raises :class:`InputError` if there is none."""
    if history is None:
        raise _no_history(path)
    run, warnings = history.run_named(path)
    warn(warnings)
    return run


def _no_history(path: str) -> InputError:
    return InputError([f"{path}: is an entry of a history; name the history with --history or {VARIABLE}"])
