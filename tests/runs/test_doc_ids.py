"""The documents that runs returned, for those who have no contract."""

import gzip
from pathlib import Path

from ragcontract.core.phrase import Location
from ragcontract.files.problems import Collector, Problems
from ragcontract.runs.readers import doc_id_rows, read_doc_ids
from tests.builders import as_jsonl, run, write_jsonl


def test_several_files_are_one_run(tmp_path: Path) -> None:
    first = write_jsonl(tmp_path / "a.jsonl", [run("q1", "b", "a"), {"query_id": 2, "results": []}])
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(as_jsonl(run("q3", "c")).encode()))
    rows, problems = read_doc_ids([str(first), str(tmp_path / "*.gz")])
    assert (rows, problems) == ({"q1": ["b", "a"], "2": [], "q3": ["c"]}, Problems())


def test_everything_that_is_wrong_is_reported_and_the_rest_is_read(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "a.jsonl", [run("q1"), run("q2", latency_ms=-1), run("q1", "x")])
    rows, problems = read_doc_ids([str(tmp_path / "gone.jsonl"), str(tmp_path / "a.jsonl")])
    assert rows == {"q1": ["doc1"]}
    assert [line.replace(f"{tmp_path}/", "") for line in problems.problems] == [
        "gone.jsonl: no such file",
        "a.jsonl:2: latency_ms: expected a number from 0 to a billion, found -1",
        "a.jsonl:3: query_id: duplicate id 'q1', first defined at a.jsonl:1",
    ]


def test_what_is_odd_is_warned_about(tmp_path: Path) -> None:
    ascending = [{"doc_id": "a", "score": 1}, {"doc_id": "b", "score": 2}]
    rows = [
        run("q1", latency=3),
        {"query_id": "q2", "results": ascending[::-1]},
        *({"query_id": f"q{n}", "results": ascending} for n in (3, 4)),
    ]
    path = write_jsonl(tmp_path / "a.jsonl", rows)
    assert read_doc_ids([str(path)])[1] == Problems(
        warnings=(
            f"{path}:1: unknown field 'latency' is not read; did you mean 'latency_ms'?",
            (
                f"{path}:3: the scores are not in descending order (2 such rows); "
                "ranks are the order of the results, scores never reorder them"
            ),
        )
    )


def test_rows_come_one_by_one_several_of_a_query_too(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", [run("q1", "a"), run("q1", "b")])
    problems = Collector()
    reported: list[int] = []
    rows = doc_id_rows([str(path)], problems, reported.append)
    assert next(rows) == ("q1", ["a"], Location(str(path), 1))
    assert list(rows) == [("q1", ["b"], Location(str(path), 2))]
    assert problems.collected() == Problems()
    assert sum(reported) == path.stat().st_size
