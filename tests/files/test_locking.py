"""Files that one process at a time writes."""

from pathlib import Path

import pytest

from ragcontract.files.locking import locked


def test_a_file_is_locked_until_it_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "made" / "one"
    first = locked(path)
    assert first is not None
    assert locked(path) is None
    first.close()
    second = locked(path)
    assert second is not None
    second.close()


def test_what_is_in_it_stays(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"here")
    file = locked(tmp_path / "one")
    assert file is not None
    assert file.read() == b"here"
    file.close()


def test_a_folder_cannot_be_locked(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="directory"):
        locked(tmp_path)


@pytest.mark.parametrize("content", ["somebody's key", None])
def test_a_link_is_refused_and_what_it_leads_to_is_left_alone(tmp_path: Path, content: str | None) -> None:
    target = tmp_path / "elsewhere"
    if content is not None:
        target.write_text(content)
    (tmp_path / "one").symlink_to(target)
    with pytest.raises(OSError, match="it is a link"):
        locked(tmp_path / "one")
    assert (target.read_text() if target.exists() else None) == content
