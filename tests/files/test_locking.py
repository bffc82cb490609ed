"""Files that one process at a time writes."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ragcontract.core.errors import OutputError
from ragcontract.files.locking import locked, turn

HOLDS = """
import sys, time
from pathlib import Path
from ragcontract.files.locking import turn
with turn(Path(sys.argv[1])):
    print("mine", flush=True)
    time.sleep(600)
"""


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


@contextmanager
def held(path: Path) -> Iterator[int]:
    """Have another process keep its turn, which it does not end; its number."""
    with subprocess.Popen([sys.executable, "-c", HOLDS, str(path)], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == b"mine\n"
            yield process.pid
        finally:
            process.kill()


def test_a_turn_ends_with_the_process_that_has_it_however_it_ends(tmp_path: Path) -> None:
    path = tmp_path / "one"
    with held(path):
        pass
    with turn(path):
        path.write_text("ours")
    assert [each.name for each in tmp_path.iterdir()] == ["one"]


def test_who_does_not_end_its_turn_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragcontract.core.bounds.TURN", 0)
    path = tmp_path / "one"
    with held(path) as number:
        named = rf"(the process {number}|another process) has been writing in this folder for 0 s; end it, or try"
        with pytest.raises(OutputError, match=rf"one: cannot be written now: {named}"), turn(path):
            pass


def test_files_of_another_folder_have_another_turn(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with turn(tmp_path / "one"), turn(tmp_path / "other" / "one"):
        pass
