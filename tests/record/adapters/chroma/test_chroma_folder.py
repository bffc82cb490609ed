"""Copies of folders of Chroma's."""

import os
import stat
import tempfile
from pathlib import Path

import pytest

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.record.adapters.chroma import copied, explained


@pytest.fixture
def copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder that temporary folders are made in."""
    folder = tmp_path / "copies"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "db"
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "deep" / "er" / "data.bin").write_bytes(b"0123456789")
    (folder / "chroma.sqlite3").touch()
    return folder


def test_a_copy_has_the_contents_and_may_be_written_to(store: Path, copies: Path) -> None:
    (store / "deep" / "er" / "data.bin").chmod(0o400)
    (store / "deep").chmod(0o500)
    copy = copied(store)
    assert copy.parent == copies
    assert (copy / "deep" / "er" / "data.bin").read_bytes() == b"0123456789"
    assert all(path.stat().st_mode & stat.S_IWUSR for path in copy.rglob("*"))
    assert stat.S_IMODE(copy.stat().st_mode) == 0o700


def test_what_is_no_file_is_not_copied(store: Path, copies: Path) -> None:  # noqa: ARG001
    os.mkfifo(store / "pipe")
    (store / "gone").symlink_to(store / "nothing")
    assert sorted(path.name for path in copied(store).iterdir()) == ["chroma.sqlite3", "deep"]


def test_a_folder_that_is_too_large_is_not_copied(store: Path, copies: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "CHROMA_COPY", 9)
    with pytest.raises(InputError, match="too large to copy; with `in_place: true`, Chroma writes to the folder it"):
        copied(store)
    assert list(copies.iterdir()) == []


@pytest.mark.parametrize(("error", "why"), [(OSError(28, "No space left"), "No space left"), (SystemExit("^C"), "C")])
def test_a_copy_that_fails_is_removed(
    error: BaseException, why: str, store: Path, copies: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr("shutil.copyfile", fails)
    with pytest.raises((InputError, SystemExit), match=why):
        copied(store)
    assert list(copies.iterdir()) == []


def test_an_interrupt_is_not_explained() -> None:
    with pytest.raises(KeyboardInterrupt), explained("what"):
        raise KeyboardInterrupt
