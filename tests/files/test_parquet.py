"""Parquet instead of JSON lines: the same rows, the same rules, the same sentences for what is wrong."""

import hashlib
import json
import re
import shutil
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ragcontract import InputError, check, load_golden, load_run
from ragcontract.core.run import RunRow, row_type
from ragcontract.evaluation.observations import Latencies, Versions
from ragcontract.files.opening import BUFFER
from ragcontract.files.problems import Batch, Problem
from ragcontract.runs.readers import open_run
from tests.builders import Row, golden, run, write_jsonl
from tests.process import Ended, files_in, rag_contract, spawn
from tests.runs.sides import problems_in, read_run, side_of

ROWS = 1_000  # that are read at once
ID_TYPES = [
    pa.string(),
    pa.large_string(),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.int64(), pa.large_string()),
    pa.int32(),
    pa.uint64(),
]


def write(path: Path, rows: list[dict[str, Any]], schema: pa.Schema | None = None, **options: Any) -> Path:
    """Write rows as Parquet and return the path; a row has nulls for what others have and it has not."""
    names = dict.fromkeys(name for row in rows for name in row)
    rows = [dict.fromkeys(names) | row for row in rows]
    pq.write_table(pa.Table.from_pylist(rows, schema), path, **options)
    return path


def column(path: Path, **columns: pa.Array) -> Path:
    """Write columns as Parquet; those of a good run of one row if they are not given."""
    good = {"query_id": pa.array(["q1"]), "results": pa.array([[{"doc_id": "a"}]])}
    pq.write_table(pa.table(good | columns), path)
    return path


@pytest.mark.parametrize("lists", [pa.list_, pa.large_list, lambda items: pa.list_(items, 2)])
@pytest.mark.parametrize("ids", ID_TYPES, ids=str)
def test_ids_are_text_whatever_type_the_columns_have(ids: pa.DataType, lists: Any, tmp_path: Path) -> None:
    result = pa.struct({"doc_id": ids, "score": pa.float32()})
    values: list[Any] = [1, 2] if pa.types.is_integer(ids) else ["1", "2"]
    results = [{"doc_id": value, "score": 1} for value in values]
    rows = [{"query_id": value, "results": results} for value in values]
    path = write(tmp_path / "run.parquet", rows, pa.schema({"query_id": ids, "results": lists(result)}))
    assert load_run(path) == {"1": ["1", "2"], "2": ["1", "2"]}


def test_nulls_are_what_is_absent(tmp_path: Path) -> None:
    rows = [
        run("q1", "a", latency_ms=None, index_version=None),
        {"query_id": "q2", "results": [{"doc_id": "b", "score": None}], "latency_ms": 2.0, "index_version": "i"},
        {"query_id": "q3", "results": []},
    ]
    path = write(tmp_path / "run.parquet", rows)
    assert read_run(path)[0] == [("q1", ["a"]), ("q2", ["b"]), ("q3", [])]
    side = side_of(path, "q1", "q2", "q3")
    assert (side.observed(Versions), side.observed(Latencies).unmeasured, bool(side.problems)) == (
        {"index_version": ["i"]},
        2,
        False,
    )
    assert side.latency
    assert (side.latency.rows, side.latency.max_ms) == (1, 2.0)


def test_numbers_of_any_width_and_columns_of_nothing_but_nulls(tmp_path: Path) -> None:
    path = column(
        tmp_path / "run.parquet",
        query_id=pa.array(["q1"], pa.string_view()),
        latency_ms=pa.array([41], pa.decimal128(5, 1)),
        embedding_model=pa.nulls(1),
        results=pa.array(
            [[{"doc_id": "a", "score": 3}]], pa.list_(pa.struct({"doc_id": pa.string(), "score": pa.int8()}))
        ),
    )
    assert read_run(path)[0] == [("q1", ["a"])]
    side = side_of(path, "q1")
    assert side.latency
    assert (side.latency.max_ms, side.observed(Versions), bool(side.problems)) == (41.0, {}, False)


def test_batches_and_row_groups_leave_no_seam(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"query_id": f"q{n}", "results": [{"doc_id": f"d{m}"} for m in range(n % 4)]} for n in range(2 * ROWS + 7)
    ]
    path = write(tmp_path / "run.parquet", rows, row_group_size=ROWS + 5)
    assert load_run(path) == {row["query_id"]: [one["doc_id"] for one in row["results"]] for row in rows}
    rows[-1]["query_id"] = "q0"
    found = problems_in(write(path, rows, row_group_size=ROWS + 5), "q0")
    assert found == [
        (
            f"run.parquet:{len(rows)}: query_id: duplicate id 'q0', first defined at run.parquet:1 "
            "(several rows per query are averaged with --repeats)"
        )
    ]


def test_golden_queries_have_all_their_fields(tmp_path: Path) -> None:
    rows = [
        golden("q1", "a", tags=["t"], weight=2, must_rank_at_most=3, severity="warn", forbidden_doc_ids=["x"]),
        golden("q2", "a", "b", must_include_any=True, relevance={"a": 3, "b": 1, "c": 0.5}),
        golden("7") | {"relevant_doc_ids": []},
    ]
    listed = write_jsonl(tmp_path / "golden.jsonl", rows)
    as_struct = write(tmp_path / "golden.parquet", rows)
    mapped = pa.schema([field for field in pq.read_schema(as_struct) if field.name != "relevance"])
    grades = pa.map_(pa.string(), pa.float64())
    as_map = write(tmp_path / "map.parquet", rows, mapped.append(pa.field("relevance", grades)))
    texts = [row | ({"relevance": json.dumps(row["relevance"])} if "relevance" in row else {}) for row in rows]
    as_text = write(tmp_path / "text.parquet", texts)
    wanted = load_golden(listed)
    for path in (as_struct, as_map, as_text):
        found = load_golden(path)
        assert [str(query.location) for query in found.values()] == [f"{path}:{number}" for number in (1, 2, 3)]
        assert [fields(query) for query in found.values()] == [fields(query) for query in wanted.values()]


@pytest.mark.parametrize(
    "others", [[], [{"id": "z", "query": "Q?", "relevant_doc_ids": ["a"]}]], ids=["alone", "mixed"]
)
@pytest.mark.parametrize("form", ["map", "text"])
def test_a_grade_that_is_null_is_refused_as_in_json_lines(form: str, others: list[Row], tmp_path: Path) -> None:
    grades: dict[str, float | None] = {"a": None, "b": 1.0}
    schema = pa.schema({"id": pa.string(), "query": pa.string(), "relevant_doc_ids": pa.list_(pa.string())})
    kind = pa.map_(pa.string(), pa.float64()) if form == "map" else pa.string()
    written = json.dumps(grades) if form == "text" else list(grades.items())
    rows = [{"id": "q", "query": "Q?", "relevance": written}, *others]
    path = write(tmp_path / "golden.parquet", rows, schema.append(pa.field("relevance", kind)))
    with pytest.raises(InputError) as raised:
        load_golden(path)
    [problem] = raised.value.problems
    assert f"{path}:1: relevance.a: expected a number" in problem, problem
    assert "found null" in problem


def test_claims_and_elements_in_columns_are_texts(tmp_path: Path) -> None:
    rows = [{"id": "q", "query": "Q?", "forbidden_claims": ["a|b"], "required_elements": ["c"], "min_required": 1}]
    listed = load_golden(write_jsonl(tmp_path / "golden.jsonl", rows))
    assert load_golden(write(tmp_path / "golden.parquet", rows))["q"].rules == listed["q"].rules != ()


def fields(query: Any) -> dict[str, Any]:
    return {name: getattr(query, name) for name in query.__struct_fields__ if name != "location"}


def test_formats_mix_in_one_set_and_keep_its_rules(tmp_path: Path) -> None:
    asked = [
        write_jsonl(tmp_path / "1.jsonl", [golden("b")]),
        write(tmp_path / "2.parquet", [golden("a")]),
        write_jsonl(tmp_path / "3.jsonl", [golden("c")]),
    ]
    assert list(load_golden(*asked)) == ["b", "a", "c"]
    returned = [
        write(tmp_path / "r1.PARQUET", [run("b")]),
        write(tmp_path / "r2.parquet", [run("a", notes="x" * (2 * BUFFER))], compression="none"),
        write_jsonl(tmp_path / "r3.jsonl", [run("c")]),
    ]
    before = [shutil.copy(path, path.with_name(f"before_{path.name}")) for path in returned]
    report = check(golden=asked, run=returned, baseline=before)
    assert report.verdict == "pass"
    assert [(file.path, file.sha256) for file in report.inputs.run.files] == [
        (str(path), hashlib.sha256(path.read_bytes()).hexdigest()) for path in returned
    ]
    assert report.inputs.baseline
    assert report.inputs.baseline.shared == 3
    write_jsonl(returned[2], [run("c"), run("a")])
    with pytest.raises(InputError, match=rf"r3.jsonl:2: query_id: duplicate id 'a', first defined at {returned[1]}:1"):
        check(golden=asked, run=returned)


def test_every_command_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("golden.parquet"), [golden("q1"), golden("q2")])
    write(Path("run.parquet"), [run("q1"), run("q2", "x", "doc1", latency_ms=3.0)])
    inputs = ("--golden", "golden.parquet", "--run", "run.parquet")
    assert rag_contract("baseline", *inputs).code == 0
    assert rag_contract("check", *inputs).code == 0
    assert rag_contract("diff", *inputs, "--baseline", "run.parquet").code == 0
    for command in ("score", "validate", "lint"):
        assert rag_contract(command, *inputs).code == 0, command
    assert (
        "called something.json" in (refused := rag_contract("baseline", *inputs, "--out", "b.parquet").err) or refused
    )
    assert not Path("b.parquet").exists()


def test_scores_that_do_not_descend_are_warned_about(tmp_path: Path) -> None:
    rows = [run("q1"), {"query_id": "q2", "results": [{"doc_id": "a", "score": 1.0}, {"doc_id": "b", "score": 2.0}]}]
    with pytest.warns(UserWarning, match=r"run.parquet:2: the scores are not in descending order \(1 such row\)"):
        load_run(write(tmp_path / "run.parquet", rows))


def test_a_misspelled_column_is_named(tmp_path: Path) -> None:
    rows = [{"query_id": "q1", "latencyms": 3, "results": [{"doc_id": "a", "scores": 0.5, "text": "long"}]}]
    path = write(tmp_path / "run.parquet", rows)
    with pytest.warns(UserWarning, match="unknown field") as warned:
        load_run(path)
    assert sorted(str(one.message) for one in warned) == [
        f"{path}: unknown field 'latencyms' is not read; did you mean 'latency_ms'?",
        f"{path}: unknown field 'scores' is not read; did you mean 'score'?",
    ]


BAD_COLUMNS: list[tuple[dict[str, pa.Array], str]] = [
    ({"query_id": pa.array([1.5])}, "query_id: expected text or whole numbers, found a column of type double; cast it"),
    (
        {"query_id": pa.array([b"q"])},
        "query_id: expected text or whole numbers, found a column of type binary; cast it",
    ),
    ({"query_id": pa.array([True])}, "query_id: expected text or whole numbers, found a column of type bool; cast it"),
    ({"latency_ms": pa.array(["3"])}, "latency_ms: expected numbers, found a column of type string; cast it"),
    (
        {"results": pa.array([["a"]])},
        "results: expected lists of structs with doc_id, found a column of type list<element: string>",
    ),
    ({"results": pa.array(["a"])}, "results: expected lists of structs with doc_id, found a column of type string"),
    ({"results": pa.array([[{"document": "a"}]])}, "results.doc_id: is missing; found instead: 'document'"),
    ({"results": pa.array([[{"docid": "a"}]])}, "results.doc_id: is missing; is 'docid' a misspelling of it?"),
    (
        {"results": pa.array([[{"doc_id": "a", "score": "1"}]])},
        "results.score: expected numbers, found a column of type string; cast it",
    ),
]


@pytest.mark.parametrize(("columns", "sentence"), BAD_COLUMNS, ids=[sentence for _, sentence in BAD_COLUMNS])
def test_a_column_that_cannot_be_it_is_reported_once(
    columns: dict[str, pa.Array], sentence: str, tmp_path: Path
) -> None:
    assert problems_in(column(tmp_path / "run.parquet", **columns)) == [f"run.parquet: {sentence}"]


def test_columns_that_are_missing_or_there_twice(tmp_path: Path) -> None:
    assert problems_in(write(tmp_path / "run.parquet", [{"qid": "q1"}])) == [
        "run.parquet: query_id: is missing; found instead: 'qid'",
        "run.parquet: results: is missing; found instead: 'qid'",
    ]
    twice = pa.table([["q1"], ["q1"], [[{"doc_id": "a"}]]], names=["query_id", "query_id", "results"])
    pq.write_table(twice, tmp_path / "run.parquet")
    assert problems_in(tmp_path / "run.parquet") == [
        "run.parquet: query_id: occurs more than once; rename one of the columns"
    ]


BAD_ROWS: list[tuple[dict[str, Any], str]] = [
    ({"query_id": ""}, 'query_id: expected text of 1 to 2,000 characters, or a whole number, found "" (text)'),
    ({"query_id": None}, "query_id: is missing"),
    ({"results": None}, "results: is missing"),
    ({"results": [None]}, "results[0]: expected an object, found null"),
    ({"results": [{"doc_id": "a"}, {"doc_id": None}]}, "results[1].doc_id: is missing"),
    (
        {"results": [{"doc_id": ""}]},
        'results[0].doc_id: expected text of 1 to 2,000 characters, or a whole number, found "" (text)',
    ),
    (
        {"results": [{"doc_id": "a", "score": float("nan")}]},
        "results[0].score: expected a number, found nan; write null where there is none",
    ),
    ({"latency_ms": float("inf")}, "latency_ms: expected a number, found inf; write null where there is none"),
    ({"latency_ms": -1.0}, "latency_ms: expected a number from 0 to a billion, found -1.0"),
]


@pytest.mark.parametrize(("bad", "sentence"), BAD_ROWS, ids=[sentence for _, sentence in BAD_ROWS])
def test_a_bad_row_is_reported_by_its_number_and_the_others_are_read(
    bad: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    good = {"query_id": "q", "results": [{"doc_id": "a", "score": 1.0}], "latency_ms": 2.0}
    rows = [good | {"query_id": f"q{n}"} for n in range(17)]
    rows[6] |= bad
    path = write(tmp_path / "run.parquet", rows)
    found = problems_in(path)
    assert [problem.split(" (", 1)[0] for problem in found] == [f"run.parquet:7: {sentence}".split(" (", 1)[0]]
    assert len(read_run(path)[0]) == 16


def test_rows_after_a_bad_one_keep_their_numbers(tmp_path: Path) -> None:
    rows = [run("a"), run(""), run("b"), run("c"), run("b"), run(""), run("c")]
    found = problems_in(write(tmp_path / "run.parquet", rows), "a", "b", "c")
    assert [problem.partition(": ")[0] for problem in found] == [f"run.parquet:{n}" for n in (2, 5, 6, 7)]
    first = [problem.partition("first defined at ")[2][:13] for problem in found]
    assert first == ["", "run.parquet:3", "", "run.parquet:4"]


def test_what_is_wrong_with_all_rows_is_reported_once(tmp_path: Path) -> None:
    found = problems_in(write(tmp_path / "run.parquet", [run("", "a") for _ in range(ROWS + 60)]))
    assert len(found) == 1
    assert found[0].endswith(f"(and {ROWS + 59:,} more like this, in lines 1 to {ROWS + 60})")


def test_text_that_is_no_utf8_is_reported_by_row(tmp_path: Path) -> None:
    ids = pa.array([b"q1", b"q\xff", b"q3"]).view(pa.string())
    results = pa.array([[{"doc_id": "a"}], [], [{"doc_id": "b"}, {"doc_id": "c"}]])
    path = column(tmp_path / "run.parquet", query_id=ids, results=results)
    assert problems_in(path) == ["run.parquet:2: is not UTF-8 (byte 0xff in a text)"]
    assert read_run(path)[0] == [("q1", ["a"]), ("q3", ["b", "c"])]


def test_grades_that_are_no_object_are_reported(tmp_path: Path) -> None:
    path = write(tmp_path / "golden.parquet", [golden("q1", relevance="doc1")])
    with pytest.raises(InputError, match=r'golden.parquet:1: relevance: expected an object, found "doc1" \(text\)'):
        load_golden(path)


def damaged(path: Path) -> Path:
    """Turn over one byte in the middle of a good file's first page, which only its checksum can tell."""
    rows = [run(f"q{n}", f"document-{n}") for n in range(3 * ROWS)]
    write(path, rows, compression="none", write_page_checksum=True, use_dictionary=False, row_group_size=ROWS)
    data = bytearray(path.read_bytes())
    data[data.index(b"q2500") + 1] ^= 1
    path.write_bytes(data)
    return path


def test_a_file_that_is_damaged_or_none_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    (line,) = problems_in(damaged(path))
    assert line.startswith(f"run.parquet:{2 * ROWS + 1}: cannot be read as Parquet; the file is damaged (")
    path.write_bytes(path.read_bytes()[:1000])
    (line,) = problems_in(path)
    assert line.startswith("run.parquet: cannot be read as Parquet; the file is damaged (")
    path.write_text('{"query_id": 1}')
    assert problems_in(path) == [
        "run.parquet: is not a Parquet file, although its name ends in .parquet; name JSON lines something.jsonl"
    ]
    path.write_bytes(b"")
    assert problems_in(path) == ["run.parquet: is empty; expected Parquet"]
    assert problems_in(write(path, [], pq.read_schema(write(tmp_path / "good.parquet", [run()])))) == [
        "run.parquet: has no rows"
    ]
    (tmp_path / "folder.parquet").mkdir()
    with pytest.raises(InputError, match=r"is a folder; name the files in it, as in 'folder/\*.parquet'"):
        load_run(tmp_path / "folder.parquet")


def test_bad_parquet_exits_with_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("golden.parquet"), [golden("q1")])
    damaged(Path("run.parquet"))
    ended = rag_contract("check", "--golden", "golden.parquet", "--run", "run.parquet")
    assert (ended.code, ended.err.count("error: ")) == (2, 1)


def without_pyarrow(*argv: str, cwd: Path) -> Ended:
    """Run a command where pyarrow is not installed."""
    program = "import sys; sys.modules['pyarrow'] = None; from ragcontract.guard import entry_point; entry_point()"
    return spawn(*argv, cwd=cwd, command=(sys.executable, "-c", program))


def test_without_pyarrow_it_is_said_what_to_install(tmp_path: Path) -> None:
    write(tmp_path / "run.parquet", [run("q1")])
    write_jsonl(tmp_path / "golden.jsonl", [golden("q1")])
    write_jsonl(tmp_path / "run.jsonl", [run("q1")])
    before = files_in(tmp_path)
    for command in (
        ("check", "--run", "run.parquet"),
        ("convert", "--from", "trec", "--run", "run.trec", "--run-out", "o.parquet"),
    ):
        (tmp_path / "run.trec").write_text("q1 Q0 doc1 1 0.5 x\n")
        ended = without_pyarrow(*command, cwd=tmp_path)
        assert (ended.code, "pip install 'rag-contract[parquet]'" in ended.err) == (2, True), ended.err
    assert files_in(tmp_path) == before | {"run.trec": b"q1 Q0 doc1 1 0.5 x\n"}
    assert without_pyarrow("check", "--run", "run.jsonl", cwd=tmp_path).code == 0


def test_texts_and_metadata_are_never_read(tmp_path: Path) -> None:
    """They are damaged here, and nobody notices."""
    results = [{"doc_id": "a", "chunk_id": "lorem-1", "text": "lorem-2", "metadata": {"text": "lorem-3"}}]
    row = {"query_id": "q1", "notes": "lorem-4", "results": results}
    path = write(tmp_path / "run.parquet", [row], compression="none", write_page_checksum=True, use_dictionary=False)
    data = path.read_bytes()
    end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")  # the file's end says how long its directory is
    pages, directory = data[:end], data[end:]
    assert len(set(re.findall(rb"lorem-\d", pages))) == 4
    path.write_bytes(re.sub(rb"lorem-\d", b"ipsum-0", pages) + directory)
    assert load_run(path) == {"q1": ["a"]}
    with pytest.raises(OSError, match="CRC"):
        pq.ParquetFile(path, page_checksum_verification=True).read()


def test_metadata_and_chunks_are_reported_where_a_conversion_leaves_them_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    results = [{"doc_id": "a", "chunk_id": "c", "metadata": {"page": 1}}]
    write(Path("run.parquet"), [run("q0"), {"query_id": "q1", "results": results, "latency_ms": 3}])
    ended = rag_contract("convert", "--to", "trec", "--run", "run.parquet", "--run-out", "run.trec")
    assert ended.code == 0
    assert (
        "run.parquet:2: not in the other format, and left out: latency_ms, results.chunk_id, results.metadata"
        in ended.err
    )


@pytest.mark.parametrize("name", sorted({*RunRow.__struct_fields__} - {"error"}))
def test_every_field_of_a_row_is_read_or_refused_where_something_needs_it(name: str, tmp_path: Path) -> None:
    """A field that is added to the rows later is read from Parquet as well, or left out on purpose."""
    path = column(tmp_path / "run.parquet", **{name: pa.array([date(2026, 1, 2)])})
    problem = next(iter(open_run([str(path)]).events(row_type(frozenset({name})))))
    assert isinstance(problem, Problem)
    assert (
        f"{name}: expected" in str(problem)
        or f"{name} are not read" in str(problem)
        or f"{name} is not" in str(problem)
    )


def test_a_column_is_read_where_something_needs_it_and_only_there(tmp_path: Path) -> None:
    results = [{"doc_id": "a", "text": "of the document"}]
    path = write(tmp_path / "run.parquet", [{"query_id": "q1", "results": results, "response": "an answer"}])
    for needs, answer, text in (((), None, None), (("response", "results.text"), "an answer", "of the document")):
        (row,) = [
            row
            for event in open_run([str(path)]).events(row_type(frozenset(needs)))
            if isinstance(event, Batch)
            for row in event.rows
        ]
        assert getattr(row, "response", None) == answer
        assert getattr(row.results[0], "text", None) == text
