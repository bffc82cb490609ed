"""Which questions are asked about, and what is left out."""

from pathlib import Path
from typing import Any

from ragcontract.files.problems import Collector
from ragcontract.labelling.labels import GoldenRows, read_golden_rows
from ragcontract.labelling.sheet import Sheet, left_out, nothing_to_label, read_pool, sheet_of
from tests.builders import golden, run, write_jsonl


def sheet(folder: Path, rows: list[Any], asked: list[str] | None = None, **fields: list[Any]) -> Sheet:
    pool = read_pool([str(write_jsonl(folder / "run.jsonl", rows))], 10, Collector())
    golden_rows = GoldenRows("golden.jsonl", b"", {})
    if "golden" in fields:
        golden_rows, _ = read_golden_rows(str(write_jsonl(folder / "golden.jsonl", fields["golden"])))
    return sheet_of(golden_rows, asked or [], pool)


def test_questions_are_those_of_the_golden_file_then_the_new_ones_then_those_of_the_run(tmp_path: Path) -> None:
    rows = [run("q9", query="Nine?"), run("why", query="Why not?"), run("q1")]
    found = sheet(tmp_path, rows, ["what about  Q1", "Why?"], golden=[golden("q1")])
    assert found.texts == {"q1": "What about q1?", "why": "Why?", "q9": "Nine?"}


def test_new_questions_get_ids_as_init_makes_them_and_never_one_that_is_taken(tmp_path: Path) -> None:
    found = sheet(tmp_path, [run("why-2"), run("when")], ["Why?", "When?"], golden=[golden("why")])
    assert list(found.texts) == ["why-2", "when"]


def test_forbidden_documents_are_not_asked_about(tmp_path: Path) -> None:
    rows = [run("q1", "a", "b")]
    [question] = sheet(tmp_path, rows, golden=[golden("q1", "TODO", forbidden_doc_ids=["a"])]).questions
    assert [one.doc_id for one in question.candidates] == ["b"]


def test_what_has_no_results_or_no_question_is_left_out_with_a_warning(tmp_path: Path) -> None:
    found = sheet(tmp_path, [run("q1"), run("q3")], golden=[golden("q1"), golden("q2")])
    assert list(found.texts) == ["q1"]
    advice = "add the questions to golden.jsonl, or give them with --questions or as `query` in the run"
    assert left_out(found, "golden.jsonl") == [
        "1 query ('q2') without a result in the run: left out",
        f"1 query ('q3') in the run, and no question known for it: left out; {advice}",
    ]


def test_where_there_is_nothing_to_label_it_is_said_why(tmp_path: Path) -> None:
    assert nothing_to_label(sheet(tmp_path, [run("q1")], golden=[golden("q1")])) is None
    assert "no question is known for its rows; give --questions FILE" in str(nothing_to_label(sheet(tmp_path, [run()])))
    empty = sheet(tmp_path, [{"query_id": "q1", "results": []}], golden=[golden("q1")])
    assert nothing_to_label(empty) == "has no results in any row, so there is nothing to label"
    others = sheet(tmp_path, [run("r1")], golden=[golden("q1")])
    said = "has 1 query ('r1'), but the questions are 1 query ('q1'); give both the same ids"
    assert nothing_to_label(others) == said
