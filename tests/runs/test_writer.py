import gzip
import json
import math
import os
import re
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragcontract import InputError, OutputError, RunWriter, check, load_run
from ragcontract.core import bounds
from ragcontract.core.run import RunRow
from ragcontract.evaluation.observations import Versions
from ragcontract.files import json_text
from ragcontract.files.problems import Batch, Problems
from ragcontract.runs.readers import RunFiles
from tests.builders import golden, write_jsonl
from tests.process import files_in, spawn
from tests.runs.sides import read_run, side_of

ON_PATH = {"PYTHONPATH": str(Path(json_text.__file__).parents[2])}


def rows_in(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_rows_are_written_as_the_format_has_them(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with RunWriter(path, embedding_model="e", index_version=3, chunking_version="c", retriever_version="r") as run:
        run.write("q1", ["a", 7])
        run.write(2, [{"doc_id": "b", "score": 0.5, "chunk_id": 1, "metadata": {"x": None}}], latency_ms=3)
    versions = {"embedding_model": "e", "index_version": 3, "chunking_version": "c", "retriever_version": "r"}
    assert rows_in(path) == [
        {"query_id": "q1", "results": [{"doc_id": "a"}, {"doc_id": 7}], **versions},
        {
            "query_id": 2,
            "results": [{"doc_id": "b", "score": 0.5, "chunk_id": 1, "metadata": {"x": None}}],
            "latency_ms": 3,
            **versions,
        },
    ]
    assert read_run(path) == ([("q1", ["a", "7"]), ("2", ["b"])], Problems())
    side = side_of(path, "q1", "2")
    assert side.observed(Versions) == {name: [str(value)] for name, value in versions.items()}
    assert side.problems == Problems()


ANSWERED: dict[str, Any] = {
    "response": "30 days.",
    "retrieved_contexts": ["Returns: 30 days."],
    "tool_calls": [{"name": "get_order", "arguments": {"id": "1"}}],
    "messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "30 days."}],
    "mode": "trustworthy",
    "label": "billing",
    "refusal": "no",
    "finish_reason": "stop",
    "scores": {"faithfulness": 0.5, "rating": None},
    "checks": {"polite": True, "short": {"passed": False, "reason": "long"}},
}


def test_an_answer_is_written_with_all_that_is_known_of_it(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with RunWriter(path, llm_model="m", prompt_version=7) as run:
        run.write("q1", ["a"], **ANSWERED)
        run.write("q2", **ANSWERED, latency_ms=3)
        run.write("q3", response=None, error="timeout", mode=None)
    versions = {"llm_model": "m", "prompt_version": 7}
    assert rows_in(path) == [
        {"query_id": "q1", "results": [{"doc_id": "a"}], **ANSWERED, **versions},
        {"query_id": "q2", "latency_ms": 3, **ANSWERED, **versions},
        {"query_id": "q3", "response": None, "error": "timeout", **versions},
    ]
    rows = [
        row for batch in RunFiles(paths=[str(path)]).events(RunRow) if isinstance(batch, Batch) for row in batch.rows
    ]
    assert [row.response for row in rows] == ["30 days.", "30 days.", None]
    assert rows[0].checks == ANSWERED["checks"]


WRONG_ANSWERS: dict[str, tuple[dict[str, Any], str]] = {
    "no text": ({"response": 1}, "response: expected text of at most 1,048,576 characters"),
    "bytes": ({"response": b"30 days"}, "response: is bytes"),
    "bytes in a list": ({"retrieved_contexts": ["a", b"b"]}, "retrieved_contexts[1]: is bytes"),
    "a set of texts": (
        {"retrieved_contexts": {"a", "b"}},
        "retrieved_contexts: is a set, which has no order of its own",
    ),
    "a set in an argument": (
        {"tool_calls": [{"name": "f", "arguments": {"ids": {1, 2}}}]},
        "tool_calls[0].arguments.ids: is a set, which has no order of its own; give a list",
    ),
    "one text for a list": ({"retrieved_contexts": "a"}, "retrieved_contexts: expected a list"),
    "no number": ({"scores": {"rating": math.nan}}, "scores.rating: expected a number, found nan"),
    "an infinite argument": (
        {"tool_calls": [{"name": "f", "arguments": {"x": [math.inf]}}]},
        "tool_calls[0].arguments.x[0]: expected a number, found inf",
    ),
    "a name that other tools have": ({"answer": "a"}, "answer: unknown field; did you mean 'response'?"),
    "a misspelling": ({"respones": "a"}, "respones: unknown field; did you mean 'response'?"),
    "neither results nor an answer": ({}, "results: expected a list of document ids or results"),
}


@pytest.mark.parametrize(("fields", "message"), WRONG_ANSWERS.values(), ids=WRONG_ANSWERS.keys())
def test_an_answer_that_could_not_be_read_back_is_refused(fields: Any, message: str, tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run.jsonl") as run:
        run.write("q1", ["a"])
        with pytest.raises(InputError) as refused:
            run.write("q2", **fields)
    assert refused.value.problems[0].startswith(f'{tmp_path / "run.jsonl"}: query "q2": {message}')
    assert [row["query_id"] for row in rows_in(tmp_path / "run.jsonl")] == ["q1"]


def test_versions_that_are_not_given_are_left_out(tmp_path: Path) -> None:
    with RunWriter(str(tmp_path / "run.jsonl")) as run:
        run.write("q1", [])
    assert rows_in(tmp_path / "run.jsonl") == [{"query_id": "q1", "results": []}]


def test_what_retrievers_return_is_taken_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with RunWriter(path) as run:
        run.write("generator", (name for name in "ab"))
        run.write("array", np.array(["a", "b"]))
        run.write(np.int64(5), [{"doc_id": np.int64(6), "score": np.float32(0.5)}], np.float64(1.5))  # type: ignore[arg-type]
    assert load_run(path) == {"generator": ["a", "b"], "array": ["a", "b"], "5": ["6"]}
    assert rows_in(path)[2] == {"query_id": 5, "results": [{"doc_id": 6, "score": 0.5}], "latency_ms": 1.5}


@pytest.mark.parametrize("name", ["run.jsonl.gz", "RUN.JSONL.GZ"])
def test_a_name_that_ends_in_gz_is_packed_the_same_each_time(name: str, tmp_path: Path) -> None:
    written = []
    for folder in ("a", "b"):
        with RunWriter(tmp_path / folder / name) as run:
            run.write("q1", ["a"])
        written.append((tmp_path / folder / name).read_bytes())
    assert gzip.decompress(written[0]) == b'{"query_id":"q1","results":[{"doc_id":"a"}]}\n'
    assert written[0] == written[1]
    assert written[0][4:8] == bytes(4)  # where gzip keeps the time
    assert load_run(tmp_path / "a" / name) == {"q1": ["a"]}


@pytest.mark.parametrize("name", ["run.jsonl", "run.jsonl.gz", "run.parquet", "new/folder/run.jsonl"])
def test_nothing_is_there_until_the_end(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    with RunWriter(path) as run:
        run.write("q1", ["a"])
        assert not path.exists()
    assert list(files_in(tmp_path)) == [name]


def interrupted(error: type[BaseException]) -> Iterator[str]:
    yield "a"
    raise error


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("name", ["run.jsonl", "run.jsonl.gz", "run.parquet"])
def test_a_block_that_raises_changes_nothing(name: str, error: type[BaseException], tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"the run of yesterday")
    before = files_in(tmp_path)
    for path in (tmp_path / name, tmp_path / "none" / name):
        with pytest.raises(error), RunWriter(path) as run:
            run.write("q1", interrupted(error))
    assert files_in(tmp_path) == before


def test_a_good_end_replaces_what_was_there_and_keeps_its_mode_and_its_link(tmp_path: Path) -> None:
    (tmp_path / "real.jsonl").write_text("old")
    (tmp_path / "real.jsonl").chmod(0o640)
    (tmp_path / "run.jsonl").symlink_to("real.jsonl")
    with RunWriter(tmp_path / "run.jsonl") as run:
        run.write("q1", ["a"])
    assert (tmp_path / "run.jsonl").is_symlink()
    assert load_run(tmp_path / "real.jsonl") == {"q1": ["a"]}
    assert (tmp_path / "real.jsonl").stat().st_mode & 0o777 == 0o640
    assert sorted(files_in(tmp_path)) == ["real.jsonl", "run.jsonl"]


ID = "expected text of 1 to 2,000 characters, or a whole number"
REFUSED: dict[str, tuple[Any, str]] = {
    "an empty query id": (("", []), f'query "": query_id: {ID}, found "" (text)'),
    "no query id": ((None, []), f"query None: query_id: {ID}, found null"),
    "a truth for an id": ((True, []), f"query true: query_id: {ID}, found true"),
    "an empty document id": (("q", ["a", ""]), f'query "q": results[1].doc_id: {ID}, found "" (text)'),
    "a number for an id": (("q", [1.5]), f'query "q": results[0].doc_id: {ID}, found 1.5'),
    "a pair": (("q", [("a", 0.5)]), f'query "q": results[0].doc_id: {ID}, found ["a", 0.5]'),
    "no document id": (("q", [{"doc": 1}]), "query \"q\": results[0].doc_id: is missing; found instead: 'doc'"),
    "a text for a list": (
        ("q", "doc1"),
        "query \"q\": results: expected a list of document ids or results, found 'doc1'",
    ),
    "a mapping for a list": (("q", {"doc_id": 1}), "found {'doc_id': 1}"),
    "no list": (("q", None), "found None"),
    "a score in letters": (
        ("q", [{"doc_id": 1, "score": "x"}]),
        'results[0].score: expected a number, found "x" (text)',
    ),
    "a score that is no number": (
        ("q", [{"doc_id": 1}, {"doc_id": 2, "score": math.nan}]),
        "results[1].score: expected a number, found nan",
    ),
    "an infinite time": (("q", [], math.inf), "latency_ms: expected a number, found inf"),
    "a time before the start": (("q", [], -1), "latency_ms: expected a number from 0 to a billion, found -1"),
    "metadata that is none": (("q", [{"doc_id": 1, "metadata": "x"}]), "results[0].metadata: expected"),
    "half a character": (("q", ["\ud800"]), "cannot be written as JSON"),
    "an object": (("q", [object()]), "a value of type object is not a JSON value"),
    "a query id of bytes": ((b"q", []), "query_id: is bytes, which is neither an id nor text; decode it first"),
    "document ids of bytes": (("q", ["a", b"b"]), "results[1].doc_id: is bytes, which is neither"),
    "numpy's bytes": (("q", np.array([b"a"])), "results[0].doc_id: is bytes"),
    "one of numpy's bytes": (("q", [np.array(b"a")]), "cannot be written as JSON"),
    "a chunk id of bytes": (("q", [{"doc_id": 1, "chunk_id": bytearray(b"c")}]), "results[0].chunk_id: is bytes"),
    "a set of documents": (
        ("q", {"a", "b"}),
        "results: is a set, which has no order of its own; give a list, the best",
    ),
    "a frozen set": (("q", frozenset({"a"})), "results: is a set, which has no order of its own; give a list"),
    "a query twice": (("7", []), 'query "7": is written already; a run has one row a query, unless `repeats=True`'),
}


@pytest.mark.parametrize(("row", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_could_not_be_read_back_is_refused_and_not_written(row: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with RunWriter(path) as run:
        run.write(7, ["a"])
        with pytest.raises(InputError) as refused:
            run.write(*row)
        run.write("q", ["b"])
    assert message in str(refused.value)
    assert str(refused.value).startswith(f"{path}: query ")
    assert load_run(path) == {"7": ["a"], "q": ["b"]}


def test_a_query_may_be_written_several_times_where_repeats_are_allowed(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with RunWriter(path, repeats=True) as run:
        for retrieved in (["a", "b"], ["b", "a"], ["a", "b"]):
            run.write("q1", retrieved)
    golden_file = write_jsonl(tmp_path / "golden.jsonl", [golden("q1", "a")])
    report = check(golden=golden_file, run=path, repeats=True)
    assert report.repeats is not None
    assert report.repeats.fewest == 3
    assert report.metrics["mrr_at_5"].current == pytest.approx(2.5 / 3)
    with pytest.raises(InputError, match="duplicate id 'q1', first defined at"):
        check(golden=golden_file, run=path)


def test_a_row_longer_than_a_line_may_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="64 MiB"), RunWriter(tmp_path / "run.jsonl") as run:
        run.write("q", [{"doc_id": "a", "metadata": {"text": "x" * bounds.LINE}}])
    assert files_in(tmp_path) == {}


def test_versions_are_looked_at_before_any_work_is_done(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"index_version: expected text of 1 to 2,000 characters"):
        RunWriter(tmp_path / "run.jsonl", index_version="")
    version: Any = b"1"
    with pytest.raises(InputError, match=r"index_version: is bytes"):
        RunWriter(tmp_path / "run.jsonl", index_version=version)


def test_a_run_without_a_row_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").write_text("the run of yesterday")
    with pytest.raises(InputError, match="no row was written"), RunWriter(tmp_path / "run.jsonl"):
        pass
    assert files_in(tmp_path) == {"run.jsonl": b"the run of yesterday"}


def test_an_open_one_is_not_opened_again(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run.jsonl") as run:
        run.write("q1", ["a"])
        with pytest.raises(RuntimeError, match="is being written already"), run:
            pass
        run.write("q2", ["b"])
    assert load_run(tmp_path / "run.jsonl") == {"q1": ["a"], "q2": ["b"]}
    assert list(files_in(tmp_path)) == ["run.jsonl"]


def test_writing_belongs_in_the_block(tmp_path: Path) -> None:
    run = RunWriter(tmp_path / "run.jsonl")
    with pytest.raises(RuntimeError, match="belongs in the block"):
        run.write("q1", [])
    with run:
        run.write("q1", [])
    with pytest.raises(RuntimeError, match="belongs in the block"):
        run.write("q2", [])
    with run:  # again: the same file is written once more
        run.write("q1", ["a"])
    assert load_run(tmp_path / "run.jsonl") == {"q1": ["a"]}


def test_a_path_that_cannot_be_written_to_is_reported_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    locations = {
        "": "is an empty path",
        str(tmp_path): "is a folder",
        f"{tmp_path}/file/run": "is a file, not a folder",
    }
    for location, message in {**locations, os.devnull: "is not a regular file"}.items():
        with pytest.raises(OutputError, match=message), RunWriter(location):
            pytest.fail("the block is not entered")
    assert files_in(tmp_path) == {"file": b""}


FULL_DISK = """
import os, resource, sys
from ragcontract import OutputError, RunWriter
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    with RunWriter(sys.argv[1]) as run:
        for number in range(int(sys.argv[2])):
            run.write(number, [os.urandom(50).hex()])
except OutputError as error:
    print(error)
"""


@pytest.mark.parametrize("rows", [20, 10_000], ids=["at the end", "in the middle"])
@pytest.mark.parametrize("name", ["run.jsonl", "run.jsonl.gz", "run.parquet"])
def test_a_full_disk_is_reported_and_changes_nothing(name: str, rows: int, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"the run of yesterday")
    ended = spawn(name, str(rows), cwd=tmp_path, command=(sys.executable, "-c", FULL_DISK), environ=ON_PATH)
    assert (ended.code, ended.out, ended.err) == (0, f"{name}: cannot be written (File too large)\n", "")
    assert files_in(tmp_path) == {name: b"the run of yesterday"}


def test_no_rows_are_held(tmp_path: Path) -> None:
    text = {"text": "x" * 100_000}
    with RunWriter(tmp_path / "run.jsonl.gz") as run:
        run.write("warm", [])
        tracemalloc.start()
        try:
            for number in range(200):
                run.write(number, [{"doc_id": 1, "metadata": text}])
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 4_000_000  # of 20 million written


class Table(dict[str, list[str]]):
    """A table as pandas and polars have it: its items are the names of its columns."""

    columns = ("doc_id", "score")

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)


class Frame:
    """A table that is no mapping."""

    columns = ("doc_id", "score")

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)


@pytest.mark.parametrize("table", [Table(), Frame()], ids=["mapping", "frame"])
def test_the_names_of_columns_are_no_documents(tmp_path: Path, table: Any) -> None:
    problem = f"results: is a table ({type(table).__name__}); give the column with the ids, as a list"
    with pytest.raises(InputError, match=re.escape(problem)), RunWriter(tmp_path / "run.jsonl") as writer:
        writer.write("q", table)
    write_jsonl(tmp_path / "golden.jsonl", [golden("q", "doc_id")])
    with pytest.raises(InputError, match=re.escape(problem)):
        check(golden=tmp_path / "golden.jsonl", run={"q": {"results": table}})
