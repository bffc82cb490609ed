"""The commits before the one that was checked, which say whose entries can be its baseline."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.files.git import commits_before, is_shallow

DEEPER = "this clone is shallow, so older commits are not known; check out with fetch-depth: 0"


class Commits(Struct, frozen=True, kw_only=True):
    """A commit and those before it, the newest first."""

    shas: tuple[str, ...]
    parents: dict[str, tuple[str, ...]]
    advice: str = ""  # why older commits are not known, and what helps

    @classmethod
    def of(cls, rows: Iterable[Sequence[str]], advice: str = "") -> "Commits":
        """Make the record of rows that have a commit and its parents each."""
        parents = {row[0]: tuple(row[1:]) for row in rows}
        return cls(shas=tuple(parents), parents=parents, advice=advice)

    @property
    def newest(self) -> str:
        return self.shas[0] if self.shas else ""

    def first_parents_since(self, tip: str, ancestor: str) -> int | None:
        """Return the number of steps from a commit to an ancestor along first parents; None if they do not lead there.

        Along first parents are the commits of a branch itself, without those that were merged into it.
        """
        commit: str | None = tip
        for steps in range(len(self.shas)):
            if commit == ancestor:
                return steps
            commit = next(iter(self.parents.get(commit or "", ())), None)
        return None


def reachable_by_git(folder: Path = Path()) -> Commits:
    """Return the last commits before the one that is checked out; raises :class:`InputError` without git."""
    rows = commits_before("HEAD", bounds.REACHABLE, folder)
    if rows is None:
        raise InputError(["history: git knows no commit here, so it is not known which entries are of earlier commits"])
    return Commits.of(rows, DEEPER if is_shallow(folder) else "")
