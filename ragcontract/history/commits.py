"""The commits that a commit reaches: which entries of a history belong to its past, and in which order.

The action asks GitHub for them, because it runs in shallow clones; commands ask git.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.files.git import commits_before, is_shallow
from ragcontract.github.context import GitHubError
from ragcontract.history.entry import is_commit

if TYPE_CHECKING:
    from ragcontract.github.http import Client

DEEPER = "this clone is shallow, so older commits are not known; check out with fetch-depth: 0 (GitLab: GIT_DEPTH: 0)"


class Commits(Struct, frozen=True, kw_only=True):
    """The last commits that a commit reaches."""

    order: tuple[str, ...]  # the newest first; the commit itself is the first one
    parents: dict[str, tuple[str, ...]]  # by commit; they need not be among ``order``
    advice: str = ""  # why older commits are not known, and what helps

    @classmethod
    def of(cls, rows: Iterable[tuple[str, Sequence[str]]], advice: str = "") -> "Commits":
        """Read commits and their parents, the newest first, without those whose ids are not ids of git."""
        parents = {sha: tuple(filter(is_commit, of_commit)) for sha, of_commit in rows if is_commit(sha)}
        return cls(order=tuple(parents), parents=parents, advice=advice)

    @property
    def newest(self) -> str:
        return self.order[0] if self.order else ""

    @property
    def base_of_merge(self) -> str | None:
        """The commit of the base branch in GitHub's merge of a pull request, which is its first parent.

        None if the newest commit is no merge.
        """
        parents = self.parents.get(self.newest, ())
        return parents[0] if len(parents) > 1 else None

    def first_parents_since(self, tip: str, ancestor: str) -> int | None:
        """Return how many steps lead from ``tip`` to ``ancestor`` along first parents; None if they do not lead there.

        These are the commits that a branch got since ``ancestor`` was its newest commit. None, too, if the way leads
        through commits that are not known.
        """
        steps = 0
        seen: set[str] = set()
        while tip != ancestor:
            parents = self.parents.get(tip, ())
            if not parents or tip in seen:  # a circle can only be in a faulty answer
                return None
            seen.add(tip)
            tip = parents[0]
            steps += 1
        return steps


class CheckContext(Struct, frozen=True, kw_only=True):
    """What a history must know of the check that asks it."""

    branch: str | None  # whose entries are read; None for the only one that entries have
    is_pull_request: bool = False
    run_id: int | None = None  # the workflow run
    commits: Callable[[], Commits]  # those before the checked one, which is the first
    tip: Callable[[Commits], str | None] = lambda commits: commits.newest  # the newest one of the branch itself


def reachable_by_api(client: "Client", sha: str) -> Commits:
    """Return the last ``bounds.REACHABLE`` commits that a commit reaches, as GitHub lists them.

    Raises :class:`InputError` if GitHub does not list them.
    """
    try:
        commits = Commits.of(client.commits(sha))
    except GitHubError as error:
        permission = "; reading them needs `permissions: contents: read`" if error.denied else ""
        raise InputError([f"the commits that {sha[:12]} reaches are not known: {error}{permission}"]) from error
    if len(commits.order) > bounds.REACHABLE or sha not in commits.parents:
        raise InputError([f"the commits that {sha[:12]} reaches are not known: GitHub lists others"])
    return commits


def reachable_by_git(folder: Path = Path()) -> Commits:
    """Return the last commits that the checked-out one reaches; raises :class:`InputError` without git."""
    rows = commits_before("HEAD", bounds.REACHABLE, folder)
    if rows is None:
        why = "git shows no commit here (is git installed, and is this folder in a repository that it trusts?)"
        raise InputError([f"history: {why}, so it is not known which entries are of earlier commits"])
    return Commits.of(((row[0], row[1:]) for row in rows), DEEPER if is_shallow(folder) else "")
