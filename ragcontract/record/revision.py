"""The commit of the code that is recorded."""

import subprocess
from pathlib import Path

from ragcontract.core import bounds


def revision(folder: Path, outputs: tuple[str, ...] = ()) -> str | None:
    """Return the commit of a folder, with ``-dirty`` if files that git knows have changed; None without git.

    ``outputs`` are files that are written by ourselves: a run that is in the repository changes with every recording.
    """
    commit = _git(folder, "rev-parse", "--short=12", "HEAD")
    if not commit:
        return None
    besides = [f":(exclude,literal){Path(output).resolve()}" for output in outputs]
    inside = [one for one in besides if _git(folder, "ls-files", "--", one.replace("exclude,", "", 1)) is not None]
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", ":/", *inside)
    return f"{commit}-dirty" if changed or changed is None else commit


def _git(folder: Path, *arguments: str) -> str | None:
    """Return what a command prints, None if it fails. It takes no locks, and runs no hooks of the repository."""
    command = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", *arguments]
    try:
        done = subprocess.run(  # noqa: S603 (git, and options of ours)
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=bounds.GIT, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
