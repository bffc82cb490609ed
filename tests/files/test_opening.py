import gzip
import hashlib
import random
from pathlib import Path

import msgspec
import pytest

from ragcontract.files.json_lines import read_jsonl
from ragcontract.files.opening import BUFFER, InputFile, TooLargeError, read_whole, read_within
from ragcontract.files.problems import Batch, FileRead

SIZES = (0, 1, BUFFER - 1, BUFFER, BUFFER + 1, 40 * BUFFER + 3)


@pytest.mark.parametrize("size", SIZES)
def test_a_digest_is_of_all_bytes_in_their_order(size: int, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(random.Random(size).randbytes(size))
    expected = hashlib.sha256(path.read_bytes()).hexdigest()
    assert read_whole(str(path))[1].sha256 == expected
    with InputFile(str(path)) as file:
        while file.stream.read1(BUFFER):
            pass
        assert file.source().sha256 == expected


class Named(msgspec.Struct):
    id: str


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_rows_come_with_the_digest_of_their_file(pack: type[bytes], tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    dice = random.Random(1)
    path.write_bytes(pack(b"".join(b'{"id": "%x"}\n' % dice.getrandbits(400) for _ in range(30_000))))
    events = list(read_jsonl([str(path)], Named, spell_check=0))
    assert sum(len(event.rows) for event in events if isinstance(event, Batch)) == 30_000
    digests = [event.file.sha256 for event in events if isinstance(event, FileRead)]
    assert digests == [hashlib.sha256(path.read_bytes()).hexdigest()]


def test_a_digest_is_of_the_bytes_on_disk(tmp_path: Path) -> None:
    packed = gzip.compress(b"content\n" * 1000)
    (tmp_path / "a").write_bytes(packed)
    reported: list[int] = []
    with InputFile(str(tmp_path / "a"), reported.append) as file:
        assert file.stream.read() == b"content\n" * 1000
        assert file.source().sha256 == hashlib.sha256(packed).hexdigest()
    assert sum(reported) == len(packed)


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_whole_file_is_read_without_its_byte_order_mark_and_within_a_limit(mark: bytes, tmp_path: Path) -> None:
    path = str(tmp_path / "a")
    (tmp_path / "a").write_bytes(mark + b"x" * 1000)
    data, source = read_whole(path)
    assert (data, source.path) == (b"x" * 1000, path)
    assert read_within(1000, path) == (data, source)
    with pytest.raises(TooLargeError, match=r"is larger than 0 MiB; cut it$"):
        read_within(999, path, beyond="; cut it")


def test_little_is_read_of_a_file_that_is_too_large(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 20 * BUFFER)
    reported: list[int] = []
    with pytest.raises(TooLargeError):
        read_within(10, str(tmp_path / "a"), reported.append)
    assert sum(reported) <= BUFFER


def test_a_file_whose_bytes_cannot_be_had_cannot_be_opened() -> None:
    with pytest.raises(OSError, match="Input/output error"):
        InputFile("/proc/self/mem")


def test_a_folder_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        InputFile(str(tmp_path))


def test_a_small_gzip_file_unpacks_to_at_most_64_mib(tmp_path: Path) -> None:
    """A blank line costs little to read, but a gzip file of 200 KB could hold 200 million of them."""
    mebibyte, path = gzip.compress(b"\n" * (1 << 20)), tmp_path / "small.gz"

    def unpacked() -> int:
        with InputFile(str(path)) as file:
            return sum(map(len, iter(lambda: file.stream.read1(1 << 20), b"")))

    path.write_bytes(mebibyte * 64)
    assert path.stat().st_size < 100_000
    assert unpacked() == 64 << 20
    path.write_bytes(mebibyte * 64 + gzip.compress(b"\n"))
    with pytest.raises(TooLargeError, match="unpacks to more than 64 MiB"):
        unpacked()
