"""The secret by which a journal is known to be of one's own."""

from pathlib import Path

import pytest

from ragcontract.judge.judgment_journal import SIZE, journal_key


def test_it_is_made_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    first = journal_key(environ)
    assert journal_key(environ) == first
    (file,) = (tmp_path / "rag-contract").iterdir()
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (first, 0o600)
    assert len(first) == SIZE


def test_another_user_has_another_one(tmp_path: Path) -> None:
    keys = {journal_key({"XDG_STATE_HOME": str(tmp_path / name)}) for name in "ab"}
    assert len(keys) == 2


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 100])
def test_a_file_that_is_no_key_is_left_alone_and_not_used(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "rag-contract" / "judge.key"
    path.parent.mkdir()
    path.write_bytes(content)
    assert journal_key({"XDG_STATE_HOME": str(tmp_path)}) != content
    assert path.read_bytes() == content


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_one_that_others_may_read_as_git_leaves_files_is_not_used(tmp_path: Path, mode: int) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    planted = journal_key(environ)
    (tmp_path / "rag-contract" / "judge.key").chmod(mode)
    assert journal_key(environ) != planted


def test_a_link_to_a_key_is_not_used(tmp_path: Path) -> None:
    planted = journal_key({"XDG_STATE_HOME": str(tmp_path)})
    (tmp_path / "home" / "rag-contract").mkdir(parents=True)
    (tmp_path / "home" / "rag-contract" / "judge.key").symlink_to(tmp_path / "rag-contract" / "judge.key")
    assert journal_key({"XDG_STATE_HOME": str(tmp_path / "home")}) != planted


def test_where_it_cannot_be_kept_it_is_another_one_each_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    environ = {"XDG_STATE_HOME": str(tmp_path / "file")}
    assert journal_key(environ) != journal_key(environ)


def test_a_relative_folder_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    journal_key({"XDG_STATE_HOME": "workspace"})
    assert [path.name for path in tmp_path.iterdir()] == [".local"]
