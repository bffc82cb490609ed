"""Real git repositories, for tests of what a history knows of commits."""

import os
import subprocess
import time
from pathlib import Path

import pytest

CI = ("GITHUB_", "CI_", "GIT_", "BUILD_", "CHANGE_", "RAG_CONTRACT_")


def without_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove what a CI system says about its job from the environment."""
    for name in [name for name in os.environ if name.startswith(CI)]:
        monkeypatch.delenv(name)


def git(*arguments: str, stdin: str | None = None) -> str:
    """Run git and return what it prints."""
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *identity, *arguments], check=True, capture_output=True, text=True, input=stdin)
    return done.stdout.strip()


def new_repository(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Go to an empty repository in a folder, with the branch main, as on a laptop."""
    without_ci(monkeypatch)
    (folder / "repository").mkdir()
    monkeypatch.chdir(folder / "repository")
    git("init", "-q", "-b", "main")


def commits(number: int, branch: str, start: str = "") -> list[str]:
    """Add commits to a branch, from a commit if one is named; return them, the newest first."""
    lines = []
    for count in range(number):
        who = f"committer x <x@example.com> {1_700_000_000 + count} +0000"
        lines += [f"commit refs/heads/{branch}", who, "data 1", "x"]
        lines += [f"from {start}"] if start and count == 0 else []
        lines += ["M 100644 inline file", f"data {len(str(count))}", str(count)]
    git("fast-import", "--quiet", "--force", stdin="\n".join([*lines, "done", ""]))
    return git("rev-list", f"--max-count={number}", branch).split()


def next_second() -> None:
    """Wait until the clock shows another second: of two checks in one second, nothing says which was first."""
    second = int(time.time())
    while int(time.time()) == second:
        time.sleep(0.05)
