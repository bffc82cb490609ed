import hashlib
from datetime import datetime
from pathlib import Path

import pytest
from msgspec import Struct

from ragcontract.core.errors import InputError
from ragcontract.files.jsonl import JsonLines
from ragcontract.files.problems import Diagnostics


class Inner(Struct, frozen=True, kw_only=True):
    name: str


class Row(Struct, frozen=True, kw_only=True):
    number: int
    parts: list[Inner] = []


def test_rows_come_with_their_places_and_files_with_their_digests(tmp_path: Path) -> None:
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    first.write_bytes(b'\xef\xbb\xbf\r\n{"number": 1}\r\n\r\n')
    second.write_bytes(b'{"number": 2}\n{"number": 3, "parts": [{"name": "x"}]}')
    diagnostics = Diagnostics()
    rows = JsonLines([str(first), str(second)], Row, diagnostics)
    assert [(rows.path, rows.number, row) for row in rows] == [
        (str(first), 2, Row(number=1)),
        (str(second), 1, Row(number=2)),
        (str(second), 2, Row(number=3, parts=[Inner(name="x")])),
    ]
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (first, second)]
    assert [file.sha256 for file in rows.files] == digests
    assert [file.path for file in rows.files] == [str(first), str(second)]
    assert rows.location == f"{second}:2"
    diagnostics.raise_problems()


def test_bad_rows_are_left_out_and_the_others_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"number": 1}\n{"number": "2"}\n{"number": 3}\nx\n')
    diagnostics = Diagnostics()
    rows = JsonLines([str(path)], Row, diagnostics)
    assert [rows.number for _ in rows] == [1, 3]
    with pytest.raises(InputError) as caught:
        diagnostics.raise_problems()
    assert [problem.split(": ")[0] for problem in caught.value.problems] == [f"{path}:2", f"{path}:4"]


def test_what_no_schema_can_say_is_told_in_the_decoders_words(tmp_path: Path) -> None:
    class Timed(Struct):
        when: datetime

    path = tmp_path / "a.jsonl"
    path.write_text('{"when": "yesterday"}\n')
    diagnostics = Diagnostics()
    assert list(JsonLines([str(path)], Timed, diagnostics)) == []
    with pytest.raises(InputError, match=r"a\.jsonl:1: is not what was expected: Invalid RFC3339 encoded datetime"):
        diagnostics.raise_problems()


def test_a_file_that_is_gone_is_a_problem_and_the_next_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"number": 1}\n')
    diagnostics = Diagnostics()
    assert len(list(JsonLines([str(tmp_path / "gone"), str(path)], Row, diagnostics))) == 1
    with pytest.raises(InputError, match=r"gone: cannot be read \(No such file or directory\)"):
        diagnostics.raise_problems()


def test_misspelled_fields_are_warned_about_once_through_lists(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(
        '{"number": 1, "part": []}\n'
        '{"number": 2, "part": [], "comment": "of the user\'s own"}\n'
        '{"number": 3, "parts": [{"name": "x", "nmae": "y"}]}\n'
    )
    diagnostics = Diagnostics()
    list(JsonLines([str(path)], Row, diagnostics))
    assert diagnostics.warnings == [
        f"{path}:1: unknown field 'part' is not read; did you mean 'parts'?",
        f"{path}:3: unknown field 'nmae' is not read; did you mean 'name'?",
    ]


def test_only_as_many_rows_are_spell_checked_as_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('\n{"number": 1}\n{"number": 2}\n{"number": 3, "numbr": 3}\n')
    for rows, warned in ((2, 0), (3, 1)):
        diagnostics = Diagnostics()
        list(JsonLines([str(path)], Row, diagnostics, spell_check=rows))
        assert len(diagnostics.warnings) == warned


def test_once_enough_is_known_bad_rows_are_counted_only(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"number": "1"}\n' * 60)
    diagnostics = Diagnostics()
    list(JsonLines([str(path)], Row, diagnostics))
    with pytest.raises(InputError) as caught:
        diagnostics.raise_problems()
    assert (len(caught.value.problems), caught.value.more) == (50, 10)


def test_progress_is_told_in_bytes_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"number": 1}\n' * 1000)
    told: list[int] = []
    list(JsonLines([str(path)], Row, Diagnostics(), progress=told.append))
    assert sum(told) == path.stat().st_size
