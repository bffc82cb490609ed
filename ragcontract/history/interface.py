"""The interface of a store of entries, which is a tree of small files that only grows, apart from pruning and badges.

::

    entries/<contract>/2026-11/<id>.json      results/ab/<sha256>.jsonl
    badges/<contract>.svg                     badges/<contract>.json          README.md

To add a kind of store, write a class with these methods and a line in :mod:`ragcontract.history.open_store`.
"""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from typing import Literal, Protocol

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.numbers import mebibytes
from ragcontract.history.entry import EntryId, NewEntry, results_path

Added = Literal["added", "exists"]
README = """\
# History of rag-contract

Each file below `entries` sums up a check that rag-contract recorded; it never changes. Files below `results` have what
the run returned, by document ids. `rag-contract history show` reads them. `badges` has the newest verdict of each
contract on the default branch. Delete result sets only with
`rag-contract history prune`.
"""


class NotReachableError(InputError):
    """A store cannot be asked: there is no token or key, or it is not known which repository is meant."""


class RefusedError(InputError):
    """An entry cannot be added. Other entries can."""


class ConflictError(RefusedError):
    """An entry cannot be added because another has its path, or is of the same run."""


def differs(path: str) -> ConflictError:
    """Return the error for an entry whose path another one has."""
    return ConflictError([f"{path}: already exists with different content; entries never change"])


def refuse_shared_run(new: NewEntry, names: Iterable[str]) -> None:
    """Raise ConflictError if the CI run of an entry has recorded another check: a name must have two contracts.

    ``names`` are those of the files in the entry's folder.
    """
    own, end = new.path.rpartition("/")[2], new.end_of_name
    other = next((name for name in names if end and name.endswith(end) and name != own and EntryId.of_file(name)), None)
    if other is not None:
        advice = "give each contract of a run its own name (option --name, or input name of the action)"
        already = f"this run has already recorded another check of this contract as {other}"
        raise ConflictError([f"{new.path}: {already}; {advice}"])


class ChangedResultsError(InputError):
    """A result set is not what its name says."""


class ResultSets(Protocol):
    """Has result sets. Reading one raises :class:`~ragcontract.core.errors.InputError` if that is impossible."""

    def results(self, sha256: str) -> bytes | None:
        """Return a result set; None if there is none. It may be wrong: see :func:`read_results`."""


class Store(ResultSets, Protocol):
    """Keeps entries. All methods raise :class:`~ragcontract.core.errors.InputError` if the store cannot be used.

    Names of contracts are those of their folders. Files of a store that have other names than entries and result sets
    have are not looked at.
    """

    name: str  # what a user named, for messages

    def contracts(self) -> list[str]:
        """Return the folders of contracts, sorted."""

    def months(self, contract: str) -> list[str]:
        """Return the months of a contract that have entries, such as 2026-11, the newest first."""

    def ids(self, contract: str, months: Sequence[str]) -> list[EntryId]:
        """Return the ids of a contract's entries in these months, the newest first."""

    def read(self, contract: str, ids: Sequence[EntryId]) -> dict[str, bytes]:
        """Return the contents of these entries, by id, without those that are gone.

        At most ``bounds.ENTRY`` + 1 bytes are returned of each, so that a larger one is seen.
        """

    def result_sets(self) -> set[str]:
        """Return the digests of all result sets."""

    def add(self, new: NewEntry) -> Added:
        """Store an entry, and its result set unless that exists; return "exists" if the same entry is there already.

        The badge is replaced unless another run is newer; that it cannot be written is no error.
        Raises ConflictError if another entry has its path, or if the same CI run and attempt has already recorded this
        contract in this month. A reader sees the entry only with its result set, and whole or not at all.
        """

    def delete_results(self, digests: Collection[str]) -> None:
        """Delete result sets."""


def read_results(store: ResultSets, sha256: str) -> bytes | None:
    """Return a result set; None if there is none. Raises ChangedResultsError if it is not what its name says."""
    data = store.results(sha256)
    if data is not None and len(data) > bounds.RESULT_SET:
        limit = mebibytes(bounds.RESULT_SET)
        raise ChangedResultsError([f"{results_path(sha256)}: is larger than {limit}, the limit for a result set"])
    if data is not None and hashlib.sha256(data).hexdigest() != sha256:
        raise ChangedResultsError([f"{results_path(sha256)}: has another SHA-256 than its name says"])
    return data
