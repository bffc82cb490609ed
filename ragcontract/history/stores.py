"""Opens the store of a history by the name that a user gave it.

A name is the path of a folder, or ``github:`` for a branch: of this repository, or as ``github:owner/name@branch``.
It comes from an option, the environment or an input of the action, never from ``ragcontract.yml``, which a pull
request can change.
"""

import re

from msgspec import Struct

from ragcontract.core.errors import InputError
from ragcontract.history.folder import Folder
from ragcontract.history.interface import Store

DEFAULT_BRANCH = "rag-contract-history"
_ON_GITHUB = "github:"
_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]*)://(?:[^/?#]*@)?([^/?#]*)", re.IGNORECASE)
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}/(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}")
# Stricter than git, so that a branch needs no quoting in a URL or a message.
_BRANCH = re.compile(
    r"(?=.{1,200}$)(?!.*\.\.)(?!.*\.lock(/|$))[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*"
)


class BranchName(Struct, frozen=True, kw_only=True):
    """A branch that has a history."""

    repository: str  # such as org/app; empty for the repository in which the command runs
    branch: str


def open_store(name: str) -> Store:
    """Return the store that a user named; raises InputError if the name cannot be that of a store.

    A folder does not need to exist.
    """
    if not name.strip():
        raise InputError(["history: has no name; name a folder, or github: for a branch of this repository"])
    if name.lower().startswith(_ON_GITHUB):
        return _branch(name, branch_named(name))
    if address := _ADDRESS.match(name):
        raise InputError([_not_a_store(*address.groups())])
    if "\0" in name:
        raise InputError([f"history {name!r}: a path cannot contain a NUL character"])
    return Folder(name)


def branch_named(name: str) -> BranchName:
    """Return the branch that ``github:`` and what follows it names; raises InputError if it is none."""
    repository, at, branch = name[len(_ON_GITHUB) :].partition("@")
    if not repository and not at:
        return BranchName(repository="", branch=DEFAULT_BRANCH)
    if not _REPOSITORY.fullmatch(repository):
        raise InputError([f"{name}: {repository!r} is not a repository; expected github: or github:owner/name@branch"])
    if at and not is_branch_name(branch):
        raise InputError([f"{name}: {branch!r} cannot be a branch with a history; expected github:owner/name@branch"])
    return BranchName(repository=repository, branch=branch or DEFAULT_BRANCH)


def is_branch_name(branch: str) -> bool:
    """Return whether a branch may have a history: letters, digits, and ``._-`` in parts between slashes."""
    return bool(_BRANCH.fullmatch(branch)) and not branch.endswith(".")


def _branch(name: str, named: BranchName) -> Store:
    """Return the store of a branch. The place where ``ragcontract.history.branch.Branch`` is imported and made."""
    raise NotImplementedError(name, named)


def _not_a_store(scheme: str, host: str) -> str:
    """Return why an address is no store, without what may be secret in it."""
    shown = f"{scheme}://{host}"
    if scheme.lower() in {"http", "https"}:
        return f"{shown}: needs the team service, which this version does not have; name a folder, or github:"
    return f"{shown}: is not a store of a history; name a folder, or github: for a branch of this repository"
