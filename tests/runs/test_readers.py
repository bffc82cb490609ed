from pathlib import Path
from typing import Any

from ragcontract.files.problems import Diagnostics
from ragcontract.runs.run_file import RunRows
from tests.builders import run, write_jsonl


def read(folder: Path, *rows: dict[str, Any], **options: Any) -> tuple[RunRows, list[tuple[str, list[str]]], list[str]]:
    """Return an iterated run, its rows, and the warnings."""
    diagnostics = Diagnostics()
    reader = RunRows([str(write_jsonl(folder / "run.jsonl", rows))], diagnostics, **options)
    pairs = list(reader)
    diagnostics.raise_problems()
    return reader, pairs, [warning.replace(f"{folder}/", "") for warning in diagnostics.warnings]


def test_rows_are_ids_and_document_ids_in_order(tmp_path: Path) -> None:
    reader, pairs, warnings = read(tmp_path, run("q1", "b", "a", "b"), {"query_id": 2, "results": [{"doc_id": 7}]})
    assert pairs == [("q1", ["b", "a", "b"]), ("2", ["7"])]
    assert [file.path for file in reader.files] == [str(tmp_path / "run.jsonl")]
    assert (reader.created_at, reader.k, reader.questions, warnings) == (None, None, {}, [])


def test_a_query_may_have_retrieved_nothing(tmp_path: Path) -> None:
    _, pairs, _ = read(tmp_path, {"query_id": "q", "results": []})
    assert pairs == [("q", [])]


def test_versions_are_listed_once_each_in_the_order_they_come(tmp_path: Path) -> None:
    reader, _, _ = read(
        tmp_path,
        run("a", embedding_model="v2", index_version=7),
        run("b", embedding_model="v1", index_version="7"),
        run("c", embedding_model="v2", retriever_version=None),
    )
    assert reader.versions == {"embedding_model": ["v2", "v1"], "index_version": ["7"]}


def scored(query_id: str, *scores: float | None) -> dict[str, Any]:
    return {"query_id": query_id, "results": [{"doc_id": str(n), "score": score} for n, score in enumerate(scores)]}


def test_scores_out_of_order_are_warned_about_once_and_reorder_nothing(tmp_path: Path) -> None:
    _, pairs, warnings = read(
        tmp_path, scored("good", 3, 3, None, 2), scored("bad", 1, None, 2), scored("worse", 1, 2, 3)
    )
    assert pairs[1] == ("bad", ["0", "1", "2"])
    assert warnings == [
        (
            "run.jsonl:2: the scores are not in descending order (2 such rows); "
            "ranks are the order of the results, scores never reorder them"
        )
    ]


def test_one_row_out_of_order_is_counted_as_one(tmp_path: Path) -> None:
    assert "(1 such row);" in read(tmp_path, scored("bad", 1, 2))[2][0]


def test_document_ids_are_in_the_side_where_asked_for(tmp_path: Path) -> None:
    kept: dict[str, list[list[str]]] = {}
    read(tmp_path, run("q1", "a", "b"), run("q2", "c"), keep=kept)
    assert kept == {"q1": [["a", "b"]], "q2": [["c"]]}


def test_the_first_100_rows_are_spell_checked(tmp_path: Path) -> None:
    good = [run(f"q{n}") for n in range(99)]
    assert read(tmp_path, *good, run("last", latency_msec=3))[2] == [
        "run.jsonl:100: unknown field 'latency_msec' is not read; did you mean 'latency_ms'?"
    ]
    assert read(tmp_path, *good, run("99"), run("last", latency_msec=3))[2] == []


def test_misspelled_fields_of_results_are_warned_about(tmp_path: Path) -> None:
    row = {"query_id": "q", "results": [{"doc_id": "a", "scor": 1}]}
    assert read(tmp_path, row)[2] == ["run.jsonl:1: unknown field 'scor' is not read; did you mean 'score'?"]
