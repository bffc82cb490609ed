"""What git says of a folder, and the target files that a pull request may have changed."""

import subprocess
from pathlib import Path

import pytest

from ragcontract.core.errors import InputError
from ragcontract.files.git import commit_of
from ragcontract.net.secrets import Secrets
from tests.record.systems import target_of

WITH_SECRET = "command: {each: [cat], environ: {KEY: '${secret:TOKEN}'}}"
EVENT = {"GITHUB_EVENT_NAME": "pull_request_target", "GITHUB_BASE_REF": "main"}


def git(*arguments: str) -> str:
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *identity, *arguments], check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A repository whose commit is the base branch's; the folder rag has a target file."""
    monkeypatch.chdir(tmp_path)
    git("init", "-q", "-b", "main")
    Path("rag").mkdir()
    Path("rag/record.yml").write_text(WITH_SECRET)
    git("add", "-A")
    git("commit", "-qm", "one")
    return git("rev-parse", "HEAD")


def read(**environ: str) -> None:
    target_of(Path(), "rag/record.yml", secrets=Secrets({"TOKEN": "topsecretvalue"}), environ=environ)


def test_a_commit_is_clean_until_a_file_changes(base: str) -> None:
    commit = commit_of()
    assert commit is not None
    assert (commit.sha, commit.dirty, str(commit)) == (base, False, base[:12])
    Path("rag/record.yml").write_text("")
    commit = commit_of(Path("rag"))
    assert commit is not None
    assert str(commit) == f"{base[:12]}-dirty"


def test_a_new_file_makes_no_commit_dirty(base: str) -> None:
    """The run itself is such a file."""
    Path("current_run.jsonl").write_text("")
    commit = commit_of()
    assert commit is not None
    assert (commit.sha, commit.dirty) == (base, False)


def test_without_a_repository_there_is_no_commit(tmp_path: Path) -> None:
    assert commit_of(tmp_path) is None
    assert commit_of(tmp_path / "nothing") is None


def test_a_file_of_the_base_branch_gets_its_secrets(base: str) -> None:
    read(**EVENT, GITHUB_SHA=base)
    git("update-ref", "refs/remotes/origin/main", base)
    read(**EVENT)


def test_a_file_that_a_pull_request_changed_gets_none(base: str) -> None:
    Path("rag/record.yml").write_text(WITH_SECRET.replace("cat", "curl"))
    with pytest.raises(InputError, match="uses secrets and differs from the base branch's file in pull_request_target"):
        read(**EVENT, GITHUB_SHA=base)
    read(GITHUB_EVENT_NAME="pull_request", GITHUB_BASE_REF="main", GITHUB_SHA=base)


def test_a_file_that_a_pull_request_committed_gets_none(base: str) -> None:
    Path("rag/record.yml").write_text(WITH_SECRET.replace("cat", "curl"))
    git("commit", "-qam", "two")
    with pytest.raises(InputError, match="differs from"):
        read(**EVENT, GITHUB_SHA=base)


@pytest.mark.parametrize("environ", [{}, {"GITHUB_SHA": "0" * 40}])
def test_a_file_that_cannot_be_compared_gets_none(base: str, environ: dict[str, str]) -> None:
    assert base
    with pytest.raises(InputError, match="cannot be compared with the base branch's file"):
        read(**EVENT, **environ)


def test_a_file_without_secrets_may_be_anybodys(base: str) -> None:
    Path("rag/record.yml").write_text("command: {each: [cat]}")
    read(**EVENT, GITHUB_SHA=base)
