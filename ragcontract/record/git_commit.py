"""What git says of the folder that is recorded; nothing where there is no git, or no repository."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.http.secrets import PLACEHOLDER


class Commit(Struct, frozen=True, kw_only=True):
    """The commit that is checked out, and whether files that git knows are changed."""

    sha: str
    dirty: bool

    def __str__(self) -> str:
        """Return it as a version, as ``1a2b3c4-dirty``."""
        return f"{self.sha[:12]}{'-dirty' if self.dirty else ''}"


def commit_of(folder: Path = Path(), outputs: Sequence[str] = ()) -> Commit | None:
    """Return the commit of a folder's repository; None if there is none.

    ``outputs`` are files that we write: a run that is in the repository changes with every recording.
    """
    sha = _git(folder, "rev-parse", "--verify", "HEAD")
    if sha is None:
        return None
    paths = [str(Path(output).resolve()) for output in outputs]
    inside = [path for path in paths if _git(folder, "ls-files", "--", f":(literal){path}") is not None]
    besides = [f":(exclude,literal){path}" for path in inside]
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", ":/", *besides)
    return Commit(sha=sha.decode().strip(), dirty=changed != b"")


def refuse_changed_by_others(path: str, data: bytes, environ: Mapping[str, str]) -> None:
    """Raise InputError if a pull request may have brought in a target file that is given secrets.

    A workflow for ``pull_request_target`` has the base branch's secrets, and may have checked out the pull request's
    files: such a file must be the same as the base branch's.
    """
    if environ.get("GITHUB_EVENT_NAME") != "pull_request_target" or not PLACEHOLDER.search(
        data.decode(errors="replace")
    ):
        return
    folder, name = os.path.split(os.path.abspath(path))  # noqa: PTH100 (a link must not be followed)
    # The event's commit is the base branch's; a branch may have been fetched instead.
    base = environ.get("GITHUB_BASE_REF", "")
    commits = [environ.get("GITHUB_SHA", ""), f"refs/remotes/origin/{base}" if base else ""]
    stored = [_git(Path(folder), "cat-file", "blob", f"{commit}:./{name}") for commit in commits if commit]
    if not any(one == data for one in stored):
        found = "differs from" if any(one is not None for one in stored) else "cannot be compared with"
        why = "a pull request could send them anywhere; check the base branch's file out, or use `pull_request`"
        raise InputError([f"{path}: uses secrets and {found} the base branch's file in pull_request_target: {why}"])


def _git(folder: Path, *arguments: str) -> bytes | None:
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
