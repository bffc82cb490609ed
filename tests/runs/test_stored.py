"""``baseline.json``: however it is laid out, it says the same."""

import gzip
import hashlib
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.ids import as_id, as_ids
from ragcontract.core.run import SourceFile
from ragcontract.files.opening import BUFFER, read_whole
from ragcontract.files.problems import Collector, FileRead, MoreProblems, Problem, Problems
from ragcontract.runs.baseline_file import (
    BATCH,
    ComparedQuery,
    MeasuredQuery,
    StoredBatch,
    StoredHead,
    read_stored,
    stored_events,
)
from ragcontract.runs.readers import open_stored
from tests.builders import baseline, stored_query, write_baseline
from tests.runs.sides import lines_of, side_of


class Stored(Struct):
    """What a baseline file yields, by what it is."""

    head: StoredHead | None = None
    rows: list[ComparedQuery] = []
    files: list[SourceFile] = []
    problems: Problems = Problems()

    @property
    def pairs(self) -> list[tuple[str, list[str]]]:
        return [(as_id(row.id), as_ids(ids)) for row in self.rows for ids in [row.doc_ids, *row.repeats]]


def read(path: Path, **options: Any) -> Stored:
    found = Stored()
    problems = Collector()
    for event in stored_events(str(path), **options):
        match event:
            case StoredHead():
                assert found.head is None
                assert found.rows == []
                found.head = event
            case StoredBatch():
                assert len(event.queries) <= BATCH
                found.rows += event.queries
            case FileRead(file=file):
                found.files.append(file)
            case Problem() | MoreProblems():
                problems.add(event)
    found.problems = problems.collected()
    return found


def test_a_stored_baseline_gives_its_rows_and_questions(tmp_path: Path) -> None:
    path = write_baseline(
        tmp_path / "b.json",
        stored_query("q1", "a", "b"),
        stored_query("7", id=7, doc_ids=[1, "x", 2], query="Seven?"),
        versions={"index_version": ["3"]},
        k=[3, 5],
    )
    found = read(path)
    assert found.pairs == [("q1", ["a", "b"]), ("7", ["1", "x", "2"])]
    assert [row.query for row in found.rows] == ["What about q1?", "Seven?"]
    assert found.head
    assert (found.head.created_at, found.head.k) == ("2026-01-02T03:04:05+00:00", [3, 5])
    assert found.head.versions == {"index_version": ["3"]}
    assert [file.path for file in found.files] == [str(path)]
    assert found.problems == Problems()


def test_further_rows_of_a_query_are_rows_of_it(tmp_path: Path) -> None:
    path = write_baseline(tmp_path / "b.json", stored_query("q1", "a", repeats=[["b"], [7]]), stored_query("q2"))
    assert read(path).pairs == [("q1", ["a"]), ("q1", ["b"]), ("q1", ["7"]), ("q2", ["doc1"])]


def test_metrics_are_read_where_they_are_asked_for(tmp_path: Path) -> None:
    path = write_baseline(tmp_path / "b.json", stored_query("q1", metrics={"mrr_at_5": 0.5, "own": None}))
    assert not any(isinstance(row, MeasuredQuery) for row in read(path).rows)
    (measured,) = read(path, with_metrics=True).rows
    assert isinstance(measured, MeasuredQuery)
    assert measured.metrics == {"mrr_at_5": 0.5, "own": None}


def test_it_is_read_behind_a_byte_order_mark_and_out_of_gzip(tmp_path: Path) -> None:
    data = json.dumps(baseline()).encode()
    for stored in (
        b"\xef\xbb\xbf" + data,
        gzip.compress(data),
        json.dumps(baseline(), indent=1).replace("\n", "\r\n").encode(),
    ):
        (tmp_path / "b.json").write_bytes(stored)
        assert read(tmp_path / "b.json").pairs == [("q1", ["doc1"])]


def test_fields_of_a_later_minor_format_are_left_alone(tmp_path: Path) -> None:
    path = write_baseline(tmp_path / "b.json", stored_query(extra=1), more={"a": [1]})
    assert read(path).problems == Problems()
    assert len(read(path).rows) == 1


def test_a_file_that_is_gone_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "gone.json"
    assert list(read(path).problems.problems) == [f"{path}: cannot be read (No such file or directory)"]
    assert lines_of(side_of(open_stored(str(path))).problems, f"{tmp_path}/") == ["gone.json: no such file"]
    with pytest.raises(InputError, match="No such file"):
        read_stored(str(path))


def test_rows_come_in_batches(tmp_path: Path) -> None:
    path = write_baseline(tmp_path / "b.json", *(stored_query(f"q{n}") for n in range(2 * BATCH + 1)))
    batches = [event for event in stored_events(str(path)) if isinstance(event, StoredBatch)]
    assert [len(batch.queries) for batch in batches] == [BATCH, BATCH, 1]
    assert len(read(path).rows) == 2 * BATCH + 1


def test_a_duplicate_query_is_found_in_another_batch_too(tmp_path: Path) -> None:
    queries = [stored_query(f"q{n}") for n in range(2 * BATCH)]
    path = write_baseline(tmp_path / "b.json", *queries, stored_query("q0"))
    (line,) = lines_of(read(path).problems, f"{tmp_path}/")
    assert line.endswith(f": queries[{2 * BATCH}].id: duplicate id 'q0', first defined at queries[0]")


QUERIES = [stored_query(f"q{number}", f"doc{number}") for number in range(4)]
EXPECTED = [(f"q{number}", [f"doc{number}"]) for number in range(4)]
HEAD = json.dumps(baseline() | {"queries": []}, indent=2).removesuffix("[]\n}")


def lines(rows: list[str], *, between: str = ",\n    ", end: str = "\n  ]\n}\n") -> str:
    return f"{HEAD}[\n    {between.join(rows)}{end}"


ROWS = [json.dumps(query) for query in QUERIES]
PRETTY = json.dumps(QUERIES[2], indent=2)
LAYOUTS = {
    "as it is made": lines(ROWS),
    "without a line break at the end": lines(ROWS).rstrip(),
    "with the line breaks of another system": lines(ROWS).replace("\n", "\r\n"),
    "one query over several lines": lines([*ROWS[:2], PRETTY, ROWS[3]]),
    "two queries in a line": lines([ROWS[0], f"{ROWS[1]}, {ROWS[2]}", ROWS[3]]),
    "with empty lines": lines(ROWS, between=",\n\n    "),
    "with a field behind the queries": lines(ROWS, end='\n  ],\n  "more": 1\n}'),
    "sorted by name": json.dumps(json.loads(lines(ROWS)), indent=2, sort_keys=True),
    "another field of that name": lines(ROWS).replace("{\n", '{\n "x": {\n  "queries": [\n  ]\n },\n', 1),
    "in one line": json.dumps(baseline(*QUERIES)),
    "all indented": json.dumps(baseline(*QUERIES), indent=2),
}
BROKEN = {
    "no comma between two": (lines(ROWS, between="\n    "), 17),
    "a comma behind the last": (lines(ROWS, end=",\n  ]\n}\n"), 20),
    "a comma and an empty line behind the last": (lines(ROWS, end=",\n\n  ]\n}\n"), 21),
    "cut off between queries": (lines(ROWS[:2], end=",\n"), 17),
    "cut off in a query": (lines(ROWS)[: -len(ROWS[-1])], 19),
    "a conflict of git": (lines([ROWS[0], f"<<<<<<< HEAD\n    {ROWS[1]}"]), 17),
    "two commas": (lines([*ROWS[:2], "", *ROWS[2:]]), 18),
    "something behind the end": (lines(ROWS) + "{}", 22),
    "not a query": (lines([*ROWS[:3], '{"id": "q3"}']), 19),
}


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_rows_and_the_digest_of_the_file(
    layout: str, pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    path = tmp_path / "b.json"
    path.write_bytes(pack(LAYOUTS[layout].encode()))
    found = read(path)
    assert found.pairs == EXPECTED
    assert [file.sha256 for file in found.files] == [hashlib.sha256(path.read_bytes()).hexdigest()]
    assert found.problems == Problems()
    assert [str(query.id) for query in read_stored(str(path)).queries] == [query_id for query_id, _ in EXPECTED]


@pytest.mark.parametrize("layout", BROKEN)
def test_what_is_wrong_is_reported_with_its_line(layout: str, tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    text, line = BROKEN[layout]
    path.write_text(text)
    problems = lines_of(read(path).problems)
    assert {problem.partition(": ")[0] for problem in problems} == {f"{path}:{line}"}
    with pytest.raises(InputError) as refused:
        read_stored(str(path))
    assert refused.value.lines() == problems


def test_a_file_that_was_changed_meanwhile_is_not_taken_for_the_one_that_was_read(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    path.write_text(lines([*ROWS, ROWS[0]]))
    _, source = read_whole(str(path))
    path.write_text(lines(ROWS))
    with pytest.raises(InputError, match="it changed while it was read; run again"):
        read_stored(str(path), source)
    _, source = read_whole(str(path))
    assert len(read_stored(str(path), source).queries) == len(ROWS)


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=(LAYOUTS["as it is made"],))
    writer.start()
    found = read(path)
    writer.join()
    assert found.pairs == EXPECTED


LONG = stored_query("q2", *(f"doc{number}" for number in range(40_000)))


@pytest.mark.parametrize("indent", [None, 2])
def test_a_query_of_many_documents_is_whole_and_progress_is_that_of_the_file(
    indent: int | None, tmp_path: Path
) -> None:
    path = tmp_path / "b.json"
    path.write_text(lines([*ROWS[:2], json.dumps(LONG, indent=indent), ROWS[3]]))
    assert path.stat().st_size > BUFFER
    reported: list[int] = []
    assert read(path, progress=reported.append).pairs == [*EXPECTED[:2], ("q2", LONG["doc_ids"]), EXPECTED[3]]
    assert sum(reported) == path.stat().st_size


@pytest.mark.parametrize("between", ["\n  ],\n", "\n  ]\n,"])
def test_what_follows_the_queries_is_not_dropped(between: str, tmp_path: Path) -> None:
    """A file may end as if its queries came last, so that it is read line by line."""
    path = tmp_path / "b.json"
    path.write_text(lines(ROWS, end=f'{between}"golden_files": [\n"0"\n  ]\n}}\n'))
    assert lines_of(read(path).problems, f"{tmp_path}/") == [
        "b.json: has fields after its queries, or was changed while it was read; make it anew"
    ]
    path.write_text(lines(ROWS, end='\n  ],\n  "more": [\n    "0"\n  ]\n}\n'))
    assert read(path).pairs == EXPECTED


MANY = [json.dumps(stored_query(f"q{number}", f"doc{number}")) for number in range(2 * BATCH)]
EXPECTED_MANY = [(f"q{number}", [f"doc{number}"]) for number in range(2 * BATCH)]


@pytest.mark.parametrize("at", [0, BATCH - 1, BATCH, 2 * BATCH - 1])
def test_another_layout_from_any_query_on_gives_each_query_once(at: int, tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    path.write_text(lines([*MANY[:at], json.dumps(json.loads(MANY[at]), indent=2), *MANY[at + 1 :]]))
    assert read(path).pairs == EXPECTED_MANY


@pytest.mark.parametrize("at", [0, BATCH - 1, BATCH])
def test_a_comma_is_missed_after_any_query(at: int, tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    path.write_text(lines(MANY).replace(f"{MANY[at]},", f"{MANY[at]} "))
    (problem,) = lines_of(read(path).problems, f"{tmp_path}/")
    assert "expected" in problem


@pytest.mark.parametrize("end", ['\n  ],\n  "golden_files": ["0"]\n}\n', '\n  ], "golden_files": [\n"0"\n  ]}\n'])
def test_a_field_after_the_queries_is_read(end: str, tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    path.write_text(lines(ROWS, end=end))
    (head,) = [event for event in stored_events(str(path)) if isinstance(event, StoredHead)]
    assert head.golden_files == ["0"]
    assert read(path).pairs == EXPECTED


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (ROWS[3][:-1] + f', "more": {"[" * 99}{"]" * 99}}}', "nested too deeply"),
        (ROWS[3][:-1] + ', "id": "q9"}', "duplicate key"),
    ],
    ids=["nesting", "a key twice"],
)
def test_each_line_is_searched_for_what_a_whole_file_is(row: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    path.write_text(lines([*ROWS[:3], row]))
    assert problem in str(read(path).problems.problems)


def test_another_format_version_is_refused_in_any_layout(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    path.write_text(lines(ROWS).replace('"format_version": 1', '"format_version": 2'))
    assert "has format version 2" in str(read(path).problems.problems)


def test_the_last_query_of_a_large_file_is_searched_for_a_key_twice(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    rows = [json.dumps(stored_query(f"q{number}", query="x" * 2000)) for number in range(2 * BATCH)]
    assert sum(map(len, rows)) > bounds.RUN_KEYS_COMPARED
    path.write_text(lines([*rows, ROWS[3][:-1] + ', "id": "last"}']))
    assert "duplicate key" in str(read(path).problems.problems)
