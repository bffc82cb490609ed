"""The commit that is recorded, with a mark if the files are not those of the commit."""

import subprocess
from pathlib import Path

from ragcontract.files.git import commit_of
from tests.record.test_recording import rows_of
from tests.record.workplace import Toy, Workplace


def revision(folder: Path, outputs: tuple[str, ...] = ()) -> str | None:
    found = commit_of(folder, outputs)
    return None if found is None else str(found)


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def repository(folder: Path, *names: str) -> str:
    """Make a repository of some files, and return its commit."""
    git(folder, "init", "-q")
    for name in names:
        (folder / name).write_text("old\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return git(folder, "rev-parse", "--short=12", "HEAD")


def test_a_folder_without_git_has_no_commit(tmp_path: Path) -> None:
    assert revision(tmp_path) is None


def test_a_commit_is_dirty_if_a_file_has_changed_that_git_knows(tmp_path: Path) -> None:
    commit = repository(tmp_path, "search.py")
    (tmp_path / "notes.txt").write_text("new\n")
    assert revision(tmp_path) == commit
    (tmp_path / "search.py").write_text("new\n")
    assert revision(tmp_path) == f"{commit}-dirty"


def test_a_run_that_is_in_the_repository_does_not_make_it_dirty(tmp_path: Path) -> None:
    (tmp_path / "rag").mkdir()
    commit = repository(tmp_path, "search.py", "rag/run [1].jsonl")
    out = str(tmp_path / "rag" / "run [1].jsonl")
    (tmp_path / "rag" / "run [1].jsonl").write_text("new\n")
    assert revision(tmp_path) == f"{commit}-dirty"
    assert revision(tmp_path, (out,)) == commit
    assert revision(tmp_path / "rag", (out, "/elsewhere/run.jsonl")) == commit
    (tmp_path / "search.py").write_text("new\n")
    assert revision(tmp_path / "rag", (out,)) == f"{commit}-dirty"


def test_it_is_the_retrievers_version_unless_there_is_one(tmp_path: Path) -> None:
    place = Workplace(tmp_path, 1)
    commit = repository(tmp_path, "search.py")
    place.record(Toy())
    assert rows_of(place.out)[0]["retriever_version"] == commit
    place.record(Toy(versions={"retriever_version": "bm25 2"}))
    assert rows_of(place.out)[0]["retriever_version"] == "bm25 2"
    place.record(Toy(versions={"retriever_version": "bm25 2"}), versions={"retriever_version": "mine"})
    assert rows_of(place.out)[0]["retriever_version"] == "mine"
