"""The interface of a store of entries, which is a tree of small files that only grows, apart from pruning.

::

    entries/<contract>/2026-11/<id>.json      results/ab/<sha256>.jsonl      README.md

To add a kind of store, write a class with these methods and a line in :mod:`ragcontract.history.stores`.
"""

from collections.abc import Collection, Sequence
from typing import Literal, Protocol

from ragcontract.core.errors import InputError
from ragcontract.history.entry import EntryId, NewEntry

Added = Literal["added", "exists"]
README = """\
# History of rag-contract

Each file below `entries` sums up a check that rag-contract recorded; it never changes. Files below `results` have what
the run returned, by document ids. `rag-contract history show` reads them. Delete result sets only with
`rag-contract history prune`.
"""


class ConflictError(InputError):
    """An entry cannot be added because another has its path, or is of the same run. Other entries can be added."""


def differs(path: str) -> ConflictError:
    """Return the error for an entry whose path another one has."""
    return ConflictError([f"{path}: already exists with different content; entries never change"])


def shares_its_run(path: str, other: str) -> ConflictError:
    """Return the error for an entry of a run that has recorded another check under its name, in a file ``other``."""
    advice = "give each contract of a run its own name (option --name, or input name of the action)"
    return ConflictError([f"{path}: this run has already recorded another check of this contract as {other}; {advice}"])


class Store(Protocol):
    """Keeps entries. All methods raise :class:`~ragcontract.core.errors.InputError` if the store cannot be used.

    Names of contracts are those of their folders. Files of a store that have other names than entries and result sets
    have are not looked at.
    """

    name: str  # as a user named it, for messages

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

    def results(self, sha256: str) -> bytes | None:
        """Return a result set; None if there is none. It may be wrong: callers compare its digest."""

    def result_sets(self) -> set[str]:
        """Return the digests of all result sets."""

    def add(self, new: NewEntry) -> Added:
        """Store an entry, and its result set unless that exists; return "exists" if the same entry is there already.

        Raises ConflictError if another entry has its path, or its contract, month, run and attempt where the run is one
        of CI (``source.run_id``). A reader sees the entry only with its result set, and whole or not at all.
        """

    def delete_results(self, digests: Collection[str]) -> None:
        """Delete result sets."""
