"""Append-only files of lines: whole lines count, whoever wrote them, and nobody writes one file with somebody else."""

from pathlib import Path

import pytest

from ragcontract.core.errors import InputError, OutputError
from ragcontract.net.journal import Lines, opened, temporary, to_read


def lines_of(path: Path) -> list[bytes]:
    lines = to_read(path)
    try:
        return [line for _, line in lines.following()]
    finally:
        lines.close(remove=True)


def test_a_line_that_was_written_in_part_does_not_count_and_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_bytes(b"first\nsecond\nhal")
    assert lines_of(path) == [b"first\n", b"second\n"]
    lines = opened(path, "recording")
    assert [offset for offset, _ in lines.following()] == [0, 6]
    lines.cut(lines.end)
    assert lines.at(lines.append(b"third\n")) == b"third\n"
    lines.close(remove=False)
    assert path.read_bytes() == b"first\nsecond\nthird\n"


def test_a_line_counts_unless_its_reader_goes_back(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_bytes(b"ours\ntheirs\n")
    lines = opened(path, "judging")
    for offset, line in lines.following():
        if line == b"theirs\n":
            lines.end = offset
            break
    lines.cut(lines.end)
    lines.close(remove=False)
    assert path.read_bytes() == b"ours\n"


def test_who_only_reads_deletes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_bytes(b"first\n")
    lines_of(path)
    assert path.exists()


def test_a_file_that_somebody_writes_is_refused_with_the_option_that_names_another(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "journal"
    lines = opened(path, "recording")
    with pytest.raises(InputError, match="another judging writes it; wait for its end, or give another --out"):
        opened(path, "judging", option="--out")
    lines.close(remove=True)
    assert not path.exists()


def test_a_disk_that_is_full_is_reported(tmp_path: Path) -> None:
    lines = Lines(Path("/dev/full").open("r+b"), tmp_path / "journal", read_only=True)  # noqa: SIM115 (closed below)
    with pytest.raises(OutputError, match=r"journal: cannot be written \(No space left on device\)"):
        lines.append(b"first\n")
    lines.close(remove=False)


def test_a_temporary_journal_is_gone_when_it_is_closed() -> None:
    lines = temporary()
    assert lines.at(lines.append(b"first\n")) == b"first\n"
    lines.sync()
    lines.close(remove=True)
