"""Asks git about the repository that a folder is in. Without git, or outside of a repository, there are no answers."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from ragcontract.core import bounds


class Commit(Struct, frozen=True, kw_only=True):
    """The commit that is checked out."""

    sha: str
    dirty: bool  # whether files that git tracks are changed

    def __str__(self) -> str:
        """Return the commit as a version, such as ``1a2b3c4d5e6f-dirty``."""
        return f"{self.sha[:12]}{'-dirty' if self.dirty else ''}"


def commit_of(folder: Path = Path(), outputs: Sequence[str] = ()) -> Commit | None:
    """Return the commit of a folder's repository; None if there is none.

    Changes of ``outputs``, which we write, do not count: a run in the repository changes with every recording.
    """
    sha = git(folder, "rev-parse", "--verify", "HEAD")
    if sha is None:
        return None
    paths = [str(Path(output).resolve()) for output in outputs]
    inside = [path for path in paths if git(folder, "ls-files", "--", f":(literal){path}") is not None]
    besides = [f":(exclude,literal){path}" for path in inside]
    changed = git(folder, "status", "--porcelain", "--untracked-files=no", "--", ":/", *besides)
    return Commit(sha=sha.decode().strip(), dirty=changed != b"")


def git(folder: Path, *arguments: str) -> bytes | None:
    """Return what a command of git prints; None if it fails."""
    try:
        done = subprocess.run(  # noqa: S603 (only commits and file names vary)
            ["git", "--no-optional-locks", *arguments],  # noqa: S607 (as the user has it)
            cwd=folder,
            capture_output=True,
            timeout=bounds.GIT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def branch_of(folder: Path = Path()) -> str | None:
    """Return the branch that is checked out; None if there is none, as after a checkout of a commit."""
    name = git(folder, "symbolic-ref", "--quiet", "--short", "HEAD")
    return name.decode(errors="replace").strip() if name else None


def is_shallow(folder: Path = Path()) -> bool:
    """Return whether the repository lacks older commits, as clones of CI systems do."""
    return (git(folder, "rev-parse", "--is-shallow-repository") or b"").strip() == b"true"


def commits_before(commit: str, most: int, folder: Path = Path()) -> list[tuple[str, ...]] | None:
    """Return a commit and those before it, at most ``most``, each with its parents; None if git does not know it.

    The newest are first, and no commit is before one that follows it.
    """
    listed = git(folder, "rev-list", "--date-order", "--parents", f"--max-count={most}", "--end-of-options", commit)
    return None if listed is None else [tuple(line.split()) for line in listed.decode().splitlines()]


def commit_named(name: str, folder: Path = Path()) -> str | None:
    """Return the commit that a name such as HEAD, a branch or a tag means; None if git knows none."""
    commit = git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    return commit.decode().strip() if commit else None
