import os
import stat
import threading
from pathlib import Path

import pytest

from ragcontract.core.errors import OutputError
from ragcontract.files.writing import check_outputs, goes_to_stdout, write_files
from tests.process import NOBODY, files_in


def test_files_are_written_and_their_paths_returned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written = write_files({"a.md": b"one", "deep/er/b.json": b"two", str(tmp_path / "c.xml"): b""})
    assert written == [tmp_path / "a.md", tmp_path / "deep/er/b.json", tmp_path / "c.xml"]
    assert files_in(tmp_path) == {"a.md": b"one", "deep/er/b.json": b"two", "c.xml": b""}


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    path = tmp_path / "report.md"
    path.write_bytes(b"old")
    with path.open("rb") as reader:
        write_files({str(path): b"new"})
        assert reader.read() == b"old"
    assert path.read_bytes() == b"new"


def test_a_link_is_followed_and_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there/report.md")
    assert write_files({str(tmp_path / "link"): b"new"}) == [tmp_path / "there" / "report.md"]
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there" / "report.md").read_bytes() == b"new"


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664])
def test_a_file_keeps_its_mode(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "report.md"
    path.touch()
    path.chmod(mode)
    write_files({str(path): b"new"})
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_new_file_has_the_mode_that_the_user_gives_new_files(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        write_files({str(tmp_path / "report.md"): b"new"})
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "report.md").stat().st_mode) == 0o640


def test_a_file_keeps_its_owner_where_that_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "report.md"
    path.touch()
    owner = NOBODY if os.getuid() == 0 else os.getuid()
    os.chown(path, owner, -1)
    write_files({str(path): b"new"})
    assert path.stat().st_uid == owner


def test_a_name_can_be_as_long_as_names_are(tmp_path: Path) -> None:
    name = str(tmp_path / ("n" * 255))
    assert check_outputs([name], []) == []
    write_files({name: b"new"})
    write_files({name: b"newer"})
    assert files_in(tmp_path) == {"n" * 255: b"newer"}


def test_when_one_cannot_be_written_all_are_as_they_were(tmp_path: Path) -> None:
    (tmp_path / "old.md").write_bytes(b"old")
    (tmp_path / "folder" / "full").mkdir(parents=True)
    before = files_in(tmp_path)
    names = [str(tmp_path / name) for name in ("old.md", "new.md", "folder", "never.md")]
    with pytest.raises(OutputError) as caught:
        write_files(dict.fromkeys(names, b"new"))
    assert caught.value.problems == [f"{tmp_path}/folder: cannot be written (Is a directory)"]
    assert files_in(tmp_path) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "old.md"]


def test_whatever_else_goes_wrong_leaves_all_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "old.md").write_bytes(b"old")
    with pytest.raises(TypeError):
        write_files({str(tmp_path / "old.md"): b"new", str(tmp_path / "b.md"): "text"})  # type: ignore[dict-item]
    assert files_in(tmp_path) == {"old.md": b"old"}


def test_a_pipe_is_written_into(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    assert check_outputs([str(pipe)], []) == []
    assert write_files({str(pipe): b"through"}) == []
    reader.join()
    assert read == [b"through"]
    assert pipe.is_fifo()


def test_a_descriptor_is_written_to_where_it_stands(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as file:
        file.write(b"before, ")
        file.flush()
        write_files({f"/dev/fd/{file.fileno()}": b"report, "})
        file.write(b"after")
    assert (tmp_path / "log").read_bytes() == b"before, report, after"


def test_standard_output_is_known_by_its_names() -> None:
    assert [
        name
        for name in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/dev/stderr", "/dev/fd/11", "stdout")
        if goes_to_stdout(name)
    ] == [
        "/dev/stdout",
        "/dev/fd/1",
        "/proc/self/fd/1",
    ]


def test_paths_that_can_be_written_have_no_problems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("input").touch()
    assert check_outputs(["new", "deep/new", "../beside", "/dev/stdout", "/dev/stderr"], ["input"]) == []


def test_a_name_with_a_nul_is_refused() -> None:
    assert check_outputs(["a\0b"], []) == ["a\0b: cannot be written (embedded null byte)"]


def test_a_file_is_replaced_where_files_have_no_owners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows."""
    monkeypatch.delattr("os.chown")
    (tmp_path / "f").write_text("old")
    write_files({tmp_path / "f": b"new"})
    assert (tmp_path / "f").read_text() == "new"
