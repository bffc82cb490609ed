"""Digests of files of any size, whatever reads them, with threads or without."""

import gzip
import hashlib
import random
import sys
from pathlib import Path

import pytest

from ragcontract.files.hashing import LARGE
from ragcontract.files.jsonl import JsonLines
from ragcontract.files.opening import BUFFER, InputFile, read_whole
from ragcontract.files.problems import Diagnostics
from tests.process import spawn
from tests.test_imports import unmeasured

SIZES = (0, 1, LARGE - 1, LARGE, BUFFER, BUFFER + LARGE, 40 * BUFFER + 3)


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


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_rows_come_with_the_digest_of_their_file(pack: type[bytes], tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    dice = random.Random(1)
    path.write_bytes(pack(b"".join(b'{"id": "%x"}\n' % dice.getrandbits(400) for _ in range(30_000))))
    rows = JsonLines([str(path)], dict, Diagnostics(), spell_check=0)  # type: ignore[type-var]
    assert sum(1 for _ in rows) == 30_000
    assert [file.sha256 for file in rows.files] == [hashlib.sha256(path.read_bytes()).hexdigest()]


PROGRAM = """
import sys, threading
from ragcontract.files.opening import read_whole
threading.stack_size(1 << 46)  # no system has room for such a thread
print(read_whole(sys.argv[1])[1].sha256)
"""


def test_where_no_thread_can_be_started_the_digest_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 3 * BUFFER)
    ended = spawn(str(path), cwd=tmp_path, command=(sys.executable, "-c", PROGRAM), environ=unmeasured())
    assert (ended.code, ended.out.strip()) == (0, hashlib.sha256(path.read_bytes()).hexdigest())
