import gzip
import json
from pathlib import Path

import pytest

from ragcontract.core.errors import InputError
from ragcontract.files.problems import Diagnostics
from ragcontract.runs.run_file import RunRows
from ragcontract.runs.stored import StoredBaseline, read_baseline
from tests.builders import baseline, run, stored_query, write_baseline, write_jsonl


def test_a_stored_baseline_gives_its_rows_and_questions(tmp_path: Path) -> None:
    path = write_baseline(
        tmp_path / "b.json",
        stored_query("q1", "a", "b"),
        stored_query("7", id=7, doc_ids=[1, "x", 2], query="Seven?"),
        versions={"index_version": ["3"]},
        k=[3, 5],
    )
    found = read_baseline([str(path)], Diagnostics())
    assert isinstance(found, StoredBaseline)
    assert list(found) == [("q1", ["a", "b"]), ("7", ["1", "x", "2"])]
    assert found.questions == {"q1": "What about q1?", "7": "Seven?"}
    assert (found.created_at, found.k) == ("2026-01-02T03:04:05+00:00", [3, 5])
    assert found.versions == {"index_version": ["3"]}
    assert [file.path for file in found.files] == [str(path)]


def test_it_is_read_behind_a_byte_order_mark_and_out_of_gzip(tmp_path: Path) -> None:
    data = json.dumps(baseline()).encode()
    for stored in (
        b"\xef\xbb\xbf" + data,
        gzip.compress(data),
        json.dumps(baseline(), indent=1).replace("\n", "\r\n").encode(),
    ):
        (tmp_path / "b.json").write_bytes(stored)
        found = read_baseline([str(tmp_path / "b.json")], Diagnostics())
        assert found is not None
        assert list(found) == [("q1", ["doc1"])]


def test_fields_of_a_later_minor_format_are_left_alone(tmp_path: Path) -> None:
    path = write_baseline(tmp_path / "b.json", stored_query(extra=1), more={"a": [1]})
    found = read_baseline([str(path)], Diagnostics())
    assert found is not None


@pytest.mark.parametrize("name", ["b.jsonl", "b.jsonl.gz", "B.JSONL", "b.ndjson", "b.ndjson.gz"])
def test_json_lines_are_a_run_by_their_names(name: str, tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / name, [run("q1", "a")])
    diagnostics = Diagnostics()
    found = read_baseline([str(path)], diagnostics)
    assert isinstance(found, RunRows)
    assert list(found) == [("q1", ["a"])]
    diagnostics.raise_problems()


def test_several_files_are_one_run(tmp_path: Path) -> None:
    paths = [str(write_jsonl(tmp_path / f"{n}.jsonl", [run(f"q{n}")])) for n in range(3)]
    found = read_baseline(paths, Diagnostics())
    assert isinstance(found, RunRows)
    assert [query_id for query_id, _ in found] == ["q0", "q1", "q2"]


def test_a_file_that_is_gone_is_a_problem(tmp_path: Path) -> None:
    diagnostics = Diagnostics()
    assert read_baseline([str(tmp_path / "gone.json")], diagnostics) is None
    with pytest.raises(InputError, match="No such file"):
        diagnostics.raise_problems()
