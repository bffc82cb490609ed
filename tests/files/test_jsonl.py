import hashlib
import tracemalloc
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from ragcontract.core.phrase import Location
from ragcontract.core.run import RunRow, row_type
from ragcontract.files.json_lines import read_jsonl
from ragcontract.files.problems import Batch, Collector, FileRead, MoreProblems, Problem, Problems, located
from tests.runs.sides import lines_of


class Inner(Struct, frozen=True, kw_only=True):
    name: str


class Row(Struct, frozen=True, kw_only=True):
    number: int
    parts: list[Inner] = []


def read(*paths: Path, row: type[Struct] = Row, **options: Any) -> tuple[list[tuple[str, Any]], Problems]:
    """Return the good rows with their locations, and what is wrong with others."""
    problems = Collector()
    rows = list(located(read_jsonl([str(path) for path in paths], row, **options), problems))
    return [(str(location), row) for location, row in rows], problems.collected()


def test_rows_come_with_their_lines_and_files_with_their_digests(tmp_path: Path) -> None:
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    first.write_bytes(b'\xef\xbb\xbf\r\n{"number": 1}\r\n\r\n')
    second.write_bytes(b'{"number": 2}\n{"number": 3, "parts": [{"name": "x"}]}')
    rows, problems = read(first, second)
    assert rows == [
        (f"{first}:2", Row(number=1)),
        (f"{second}:1", Row(number=2)),
        (f"{second}:2", Row(number=3, parts=[Inner(name="x")])),
    ]
    files = [event.file for event in read_jsonl([str(first), str(second)], Row) if isinstance(event, FileRead)]
    assert [file.sha256 for file in files] == [
        hashlib.sha256(path.read_bytes()).hexdigest() for path in (first, second)
    ]
    assert [file.path for file in files] == [str(first), str(second)]
    assert problems == Problems()


def test_a_file_is_read_after_its_rows_and_before_those_of_the_next(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text('{"number": 1}\n' * 3)
    events = list(read_jsonl([str(tmp_path / "a"), str(tmp_path / "b")], Row, spell_check=0))
    assert [(type(event).__name__, getattr(event, "path", "")) for event in events] == [
        ("Batch", str(tmp_path / "a")),
        ("FileRead", ""),
        ("Batch", str(tmp_path / "b")),
        ("FileRead", ""),
    ]


def test_rows_of_good_lines_come_in_one_batch(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"number": 1}\n' * 100)
    batch, _ = read_jsonl([str(path)], Row, spell_check=0)
    assert isinstance(batch, Batch)
    assert (batch.line, len(batch.rows), str(batch.location(99))) == (1, 100, f"{path}:100")


def test_bad_rows_are_left_out_and_the_others_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"number": 1}\n{"number": "2"}\n{"number": 3}\nx\n')
    rows, problems = read(path)
    assert [row.number for _, row in rows] == [1, 3]
    assert [location for location, _ in rows] == [f"{path}:1", f"{path}:3"]
    assert [problem.split(": ")[0] for problem in problems.problems] == [f"{path}:2", f"{path}:4"]


def test_what_no_schema_can_say_is_reported_as_the_decoder_says_it(tmp_path: Path) -> None:
    class Timed(Struct):
        when: datetime

    path = tmp_path / "a.jsonl"
    path.write_text('{"when": "yesterday"}\n')
    rows, problems = read(path, row=Timed)
    assert rows == []
    (line,) = lines_of(problems, f"{tmp_path}/")
    assert line.startswith("a.jsonl:1: is not what was expected: Invalid RFC3339 encoded datetime")


def test_a_file_that_is_gone_is_a_problem_and_the_next_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"number": 1}\n')
    rows, problems = read(tmp_path / "gone", path)
    assert len(rows) == 1
    assert lines_of(problems, f"{tmp_path}/") == ["gone: cannot be read (No such file or directory)"]


def test_misspelled_fields_are_warned_about_once_through_lists(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(
        '{"number": 1, "part": []}\n'
        '{"number": 2, "part": [], "comment": "of the user\'s own"}\n'
        '{"number": 3, "parts": [{"name": "x", "nmae": "y"}]}\n'
    )
    assert read(path)[1] == Problems(
        warnings=(
            f"{path}:1: unknown field 'part' is not read; did you mean 'parts'?",
            f"{path}:3: unknown field 'nmae' is not read; did you mean 'name'?",
        )
    )


def test_fields_of_the_known_record_are_no_misspelled_ones_of_a_narrower_row(tmp_path: Path) -> None:
    class Narrow(Struct, frozen=True, kw_only=True):
        number: int

    class Known(Struct, frozen=True, kw_only=True):
        number: int
        numbers: list[int] = []

    path = tmp_path / "a.jsonl"
    path.write_text('{"number": 1, "numbers": [2]}\n{"number": 2, "nubmers": []}\n')
    rows, problems = read(path, row=Narrow, known=Known)
    assert [row for _, row in rows] == [Narrow(number=1), Narrow(number=2)]
    assert problems.warnings == (f"{path}:2: unknown field 'nubmers' is not read; did you mean 'numbers'?",)


def test_only_as_many_rows_are_spell_checked_as_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('\n{"number": 1}\n{"number": 2}\n{"number": 3, "numbr": 3}\n')
    for rows, warned in ((2, 0), (3, 1)):
        assert len(read(path, spell_check=rows)[1].warnings) == warned


def test_once_enough_is_known_bad_rows_are_counted_only(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"number": "1"}\n' * 60)
    problems = read(path)[1]
    assert (len(problems.problems), problems.more) == (1, 0)
    assert problems.problems[0].endswith("(and 59 more like this, in lines 1 to 50, …)")


@pytest.mark.parametrize(("faulty", "counted", "good"), [(10_000, 10_000, 1), (10_001, 10_001, 0)])
def test_a_file_with_more_faulty_rows_than_are_counted_is_not_read_to_its_end(
    faulty: int, counted: int, good: int, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("{}\n" + "x\n" * 49 + "x\n" * faulty + '{"number": 1}\n')
    rows, problems = read(path)
    assert (len(rows), problems.problems[1].endswith("(and 48 more like this, in lines 2 to 50)")) == (good, True)
    assert problems.more == counted - (not good)
    assert ("were not read" in problems.problems[-1]) is not bool(good)


def test_where_reading_ends_for_faulty_rows_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("x\n" * 20_000)
    *_, last, _file = read_jsonl([str(path)], Row)
    message = "more than 10,000 rows are faulty; the rows from here on were not read"
    assert last == Problem(Location(str(path), 10051), message)


def test_no_more_is_explained_than_is_shown_whatever_a_row_has_of_it(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"number": "1", "parts": [1, 2, 3, 4]}\n' * 60)
    events = list(read_jsonl([str(path)], Row))
    assert sum(isinstance(event, Problem) for event in events) == 50
    assert sum(event.count for event in events if isinstance(event, MoreProblems)) == 50


def test_progress_is_reported_in_bytes_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"number": 1}\n' * 1000)
    reported: list[int] = []
    read(path, progress=reported.append)
    assert sum(reported) == path.stat().st_size


MEGABYTE = 1 << 20


@pytest.mark.parametrize(
    ("needs", "holds"), [((), False), (("error",), False), (("response",), True), (("results.text",), True)]
)
def test_a_megabyte_of_text_is_decoded_only_where_something_needs_it(
    needs: tuple[str, ...], holds: bool, tmp_path: Path
) -> None:
    path = tmp_path / "run.jsonl"
    long = "x" * MEGABYTE
    row = {"query_id": "q1", "results": [{"doc_id": "a", "text": long}], "response": long}
    path.write_bytes(b"".join(msgspec.json.encode(row | {"query_id": f"q{n}"}) + b"\n" for n in range(8)))
    batches = read_jsonl([str(path)], row_type(frozenset(needs)), known=RunRow, spell_check=0)
    tracemalloc.start()
    try:
        held = [one for event in batches if isinstance(event, Batch) for one in event.rows]
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(held) == 8
    assert (size > 8 * MEGABYTE) == holds
    assert size > 8 * MEGABYTE or size < MEGABYTE // 2
