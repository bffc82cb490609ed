"""Readers of runs: what they yield, and the side that comes of it."""

import gzip
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ragcontract import InputError, RunWriter, check
from ragcontract.core.run import row_type
from ragcontract.evaluation.observations import Versions
from ragcontract.evaluation.side import Side
from ragcontract.files.problems import Batch, Problem, Problems
from ragcontract.runs.readers import RunFiles, StoredFile, is_run, open_baseline, open_run, open_stored
from tests.builders import golden, run, write_baseline, write_jsonl
from tests.runs.sides import lines_of, pairs_of, read_run, side_of


def read(folder: Path, *rows: dict[str, Any], **options: Any) -> tuple[Side, list[str]]:
    """Return the side of a run of golden queries a, b, c and …, and the warnings."""
    ids = [str(row["query_id"]) for row in rows]
    side = side_of(write_jsonl(folder / "run.jsonl", rows), *ids, **options)
    assert not side.problems
    return side, [warning.replace(f"{folder}/", "") for warning in side.problems.warnings]


def test_rows_are_ids_and_document_ids_in_order(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "run.jsonl", [run("q1", "b", "a", "b"), {"query_id": 2, "results": [{"doc_id": 7}]}])
    assert read_run(path) == ([("q1", ["b", "a", "b"]), ("2", ["7"])], Problems())
    side = side_of(path, "q1", "2")
    assert [file.path for file in side.files] == [str(path)]
    assert (side.stored, side.rows.changed, side.problems) == (None, (), Problems())


def test_a_query_may_have_retrieved_nothing(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "run.jsonl", [{"query_id": "q", "results": []}])
    assert read_run(path)[0] == [("q", [])]


def test_versions_are_listed_once_each_in_the_order_they_come(tmp_path: Path) -> None:
    side, _ = read(
        tmp_path,
        run("a", embedding_model="v2", index_version=7),
        run("b", embedding_model="v1", index_version="7"),
        run("c", embedding_model="v2", retriever_version=None),
    )
    assert side.observed(Versions) == {"embedding_model": ["v2", "v1"], "index_version": ["7"]}


def scored(query_id: str, *scores: float | None) -> dict[str, Any]:
    return {"query_id": query_id, "results": [{"doc_id": str(n), "score": score} for n, score in enumerate(scores)]}


def test_scores_out_of_order_are_warned_about_once_and_reorder_nothing(tmp_path: Path) -> None:
    rows = [scored("good", 3, 3, None, 2), scored("bad", 1, None, 2), scored("worse", 1, 2, 3)]
    side, warnings = read(tmp_path, *rows, keep_ids=True)
    assert side.ids.doc_ids["bad"] == [["0", "1", "2"]]
    assert warnings == [
        (
            "run.jsonl:2: the scores are not in descending order (2 such rows); "
            "ranks are the order of the results, scores never reorder them"
        )
    ]


def test_one_row_out_of_order_is_counted_as_one(tmp_path: Path) -> None:
    assert "(1 such row);" in read(tmp_path, scored("bad", 1, 2))[1][0]


def test_document_ids_are_in_the_side_where_asked_for(tmp_path: Path) -> None:
    rows = [run("q1", "a", "b"), run("q2", "c")]
    assert read(tmp_path, *rows, keep_ids=True)[0].ids.doc_ids == {"q1": [["a", "b"]], "q2": [["c"]]}
    assert read(tmp_path, *rows)[0].ids.doc_ids == {}


def test_the_first_100_rows_are_spell_checked(tmp_path: Path) -> None:
    good = [run(f"q{n}") for n in range(99)]
    assert read(tmp_path, *good, run("last", latency_msec=3))[1] == [
        "run.jsonl:100: unknown field 'latency_msec' is not read; did you mean 'latency_ms'?"
    ]
    assert read(tmp_path, *good, run("99"), run("last", latency_msec=3))[1] == []


def test_misspelled_fields_of_results_are_warned_about(tmp_path: Path) -> None:
    row = {"query_id": "q", "results": [{"doc_id": "a", "scor": 1}]}
    assert read(tmp_path, row)[1] == ["run.jsonl:1: unknown field 'scor' is not read; did you mean 'score'?"]


def test_fields_that_no_metric_needs_are_known_and_spell_checked_all_the_same(tmp_path: Path) -> None:
    assert read(tmp_path, run("q", response="yes", retrieved_contexts=[], llm_model="m"))[1] == []
    assert read(tmp_path, run("q", respnse="yes"))[1] == [
        "run.jsonl:1: unknown field 'respnse' is not read; did you mean 'response'?"
    ]


def test_rows_have_the_fields_that_are_asked_for_and_no_others(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "run.jsonl", [run("q", response="yes", mode="chat")])
    rows = [
        row
        for event in open_run([str(path)]).events(row_type(frozenset({"response"})))
        if isinstance(event, Batch)
        for row in event.rows
    ]
    assert [row.response for row in rows] == ["yes"]
    with pytest.raises(AttributeError):
        _ = rows[0].mode


def test_what_a_pattern_does_not_find_is_a_problem_and_the_other_files_are_read(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "a.jsonl", [run("q1")])
    reader = open_run([str(tmp_path / "gone.jsonl"), str(tmp_path / "[ab].jsonl")])
    pairs, problems = pairs_of(reader.events(row_type()))  # type: ignore[arg-type]
    assert pairs == [("q1", ["doc1"])]
    assert lines_of(problems, f"{tmp_path}/") == ["gone.jsonl: no such file"]


RUNS = ["b.jsonl", "b.jsonl.gz", "B.JSONL", "b.ndjson", "b.ndjson.gz", "b.parquet"]


@pytest.mark.parametrize("name", RUNS)
def test_json_lines_and_parquet_are_a_run_by_their_names(name: str) -> None:
    assert is_run(name)
    assert open_baseline([name]) == RunFiles(paths=[name])
    assert open_baseline(["b.jsonl", name]) == RunFiles(paths=["b.jsonl", name])


@pytest.mark.parametrize("name", ["b.json", "baseline", "b.jsonl.bak", "b.json.gz", "parquet", "jsonl"])
def test_all_else_must_be_a_stored_baseline(name: str) -> None:
    assert not is_run(name)
    assert open_baseline([name]) == open_stored(name) == StoredFile(paths=[name])


def test_a_baseline_of_json_lines_is_read_as_a_run(tmp_path: Path) -> None:
    path = tmp_path / "b.jsonl.gz"
    path.write_bytes(gzip.compress(write_jsonl(tmp_path / "plain", [run("q1", "a")]).read_bytes()))
    side = side_of(open_baseline([str(path)]), "q1", keep_ids=True)
    assert (side.ids.doc_ids, side.stored, side.problems) == ({"q1": [["a"]]}, None, Problems())


def test_several_files_are_one_run(tmp_path: Path) -> None:
    paths = [str(write_jsonl(tmp_path / f"{n}.jsonl", [run(f"q{n}")])) for n in range(3)]
    side = side_of(open_baseline(paths), "q0", "q1", "q2")
    assert (list(side.scores), side.problems) == (["q0", "q1", "q2"], Problems())
    assert [file.path for file in side.files] == paths


def test_one_of_several_baselines_may_not_be_a_stored_one(tmp_path: Path) -> None:
    paths = [str(write_baseline(tmp_path / "b.json")), str(write_jsonl(tmp_path / "run.jsonl", [run("q1")]))]
    assert lines_of(side_of(open_baseline(paths), "q1").problems, f"{tmp_path}/") == [
        "b.json: is one of several baselines; give one baseline.json, or run files (.jsonl)"
    ]


GIVEN: dict[str, Sequence[Any]] = {"q1": ["a", 7], "q2": [{"doc_id": "b", "score": 0.5, "text": "long"}], "q3": []}


def test_a_run_in_memory_has_the_rows_and_the_digest_of_the_file_that_it_would_be(tmp_path: Path) -> None:
    path, asked = tmp_path / "run.jsonl", [golden(query_id, "a", "b", "7") for query_id in GIVEN]
    with RunWriter(path) as file:
        for query_id, results in GIVEN.items():
            file.write(query_id, results)
    reports = [check(golden=write_jsonl(tmp_path / "golden.jsonl", asked), run=given) for given in (GIVEN, path)]
    assert reports[0].queries == reports[1].queries
    assert reports[0].metrics == reports[1].metrics
    (source,) = reports[0].inputs.run.files
    assert source.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_run_in_memory_may_have_all_fields_of_a_row(tmp_path: Path) -> None:
    given: dict[str, Any] = {
        "q1": {"results": ["a"], "response": None, "latency_ms": 3, "llm_model": "m"},
        "q2": {"response": "x"},
    }
    says = {"rules": [{"type": "must_contain", "value": "x"}]}
    asked = write_jsonl(tmp_path / "golden.jsonl", [golden("q1", "a"), {"id": "q2", "query": "?", **says}])
    report = check(golden=asked, run=given)
    assert (report.verdict, report.metrics["recall_at_5"].current) == ("pass", 1.0)
    assert report.latency
    assert report.latency.current.p50_ms == 3
    assert report.inputs.run.versions == {"llm_model": ["m"]}


IN_MEMORY: list[tuple[dict[Any, Any], list[str]]] = [
    ({}, ["(in memory): the run is empty"]),
    ({"7": ["a"], 7: ["b"]}, ["(in memory): query 7: occurs twice, as text and as a number"]),
    (
        {"q1": [{"doc_id": ""}], "q2": "doc1"},
        [
            (
                '(in memory): query "q1": results[0].doc_id: '
                'expected text of 1 to 2,000 characters, or a whole number, found "" (text)'
            ),
            "(in memory): query \"q2\": results: expected a list of document ids or results, found 'doc1'",
        ],
    ),
    (
        {"q1": {"results": ["a"], "answer": "x"}, "q2": {"results": None, "response": "x"}, "q3": {}},
        [
            "(in memory): query \"q1\": answer: unknown field; did you mean 'response'?",
            '(in memory): query "q2": results: expected a list of document ids or results, found None',
            '(in memory): query "q3": results: expected a list of document ids or results, found nothing',
        ],
    ),
]


@pytest.mark.parametrize(("given", "expected"), IN_MEMORY, ids=["empty", "twice", "bad rows", "bad fields"])
def test_what_is_wrong_with_a_run_in_memory_is_reported_by_query(
    given: dict[Any, Any], expected: list[str], tmp_path: Path
) -> None:
    asked = write_jsonl(tmp_path / "golden.jsonl", [golden("7"), golden("q1")])
    with pytest.raises(InputError) as caught:
        check(golden=asked, run=given)
    assert [problem for problem in caught.value.problems if problem.startswith("(in memory): ")] == expected


def parquet_of(path: Path, rows: list[dict[str, Any]]) -> Path:
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def test_texts_of_answers_are_read_from_parquet_too(tmp_path: Path) -> None:
    results = [{"doc_id": "a", "text": "Returns: 30 days."}]
    rows: list[dict[str, Any]] = [
        {"query_id": "q1", "results": results, "response": "30 days.", "retrieved_contexts": ["Returns."]},
        {"query_id": "q2", "results": results, "response": None, "retrieved_contexts": None},
    ]
    path = parquet_of(tmp_path / "run.parquet", rows)
    wanted = row_type(frozenset({"response", "retrieved_contexts", "results.text"}))
    batches = [event for event in RunFiles(paths=[str(path)]).events(wanted) if isinstance(event, Batch)]
    first, second = (row for batch in batches for row in batch.rows)
    assert (first.response, first.retrieved_contexts, first.results[0].text) == (
        "30 days.",
        ["Returns."],
        results[0]["text"],
    )
    assert (second.response, second.retrieved_contexts) == (None, None)


@pytest.mark.parametrize("field", ["tool_calls", "messages", "checks"])
def test_objects_of_answers_are_not_read_from_parquet(field: str, tmp_path: Path) -> None:
    path = parquet_of(tmp_path / "run.parquet", [{"query_id": "q1", "results": [{"doc_id": "a"}], field: None}])
    found = [*RunFiles(paths=[str(path)]).events(row_type(frozenset({field})))]
    assert found == [Problem(str(path), f"is Parquet, from which {field} are not read; export the run as JSON lines")]


def test_answers_are_read_from_parquet_although_messages_could_contradict_them(tmp_path: Path) -> None:
    path = parquet_of(
        tmp_path / "run.parquet", [{"query_id": "q1", "results": [{"doc_id": "a"}], "response": "30 days."}]
    )
    wanted = row_type(frozenset({"response", "messages"}))
    [batch] = [event for event in RunFiles(paths=[str(path)]).events(wanted) if isinstance(event, Batch)]
    assert [row.response for row in batch.rows] == ["30 days."]
