"""What runs returned becomes candidates."""

from pathlib import Path
from typing import Any

from ragcontract.files.problems import Collector, Problems
from ragcontract.labelling.sheet import Pool, read_pool
from ragcontract.runs.readers import read_doc_ids
from tests.builders import run, write_jsonl


def pooled(folder: Path, *rows: dict[str, Any], top: int = 10) -> Pool:
    problems = Collector()
    pool = read_pool([str(write_jsonl(folder / "run.jsonl", rows))], top, problems)
    assert not problems.collected().warnings
    assert not problems.collected()
    return pool


def test_the_first_documents_of_a_row_are_its_candidates(tmp_path: Path) -> None:
    pool = pooled(tmp_path, run("q1", "a", "b", "a", "c", "d"), top=3)
    assert [(one.doc_id, one.rank) for one in pool.candidates["q1"]] == [("a", 1), ("b", 2), ("c", 4)]


def test_texts_of_the_chunks_of_one_document_are_joined_with_their_lines(tmp_path: Path) -> None:
    texts = ["one\n two", "three", "three", "", None]
    results = [{"doc_id": "a", "score": 0.5, "text": text} for text in texts]
    [candidate] = pooled(tmp_path, {"query_id": "q1", "results": results}).candidates["q1"]
    assert (candidate.text, candidate.score) == ("one\n two\n…\nthree", 0.5)


def test_several_rows_of_a_query_are_pooled_at_their_best_ranks(tmp_path: Path) -> None:
    second = {"query_id": "q1", "results": [{"doc_id": "c", "text": "of c"}, {"doc_id": "a", "text": "of a"}]}
    pool = pooled(tmp_path, run("q1", "a", "b", "d"), second, top=2)
    found = [(one.doc_id, one.rank, one.text) for one in pool.candidates["q1"]]
    assert found == [("a", 1, "of a"), ("c", 1, "of c"), ("b", 2, "")]


def test_a_row_may_have_its_question_and_no_check_warns_of_it(tmp_path: Path) -> None:
    pool = pooled(tmp_path, run("q1", query="Why?"), run("q2"), run("q3", query=""))
    assert pool.questions == {"q1": "Why?"}
    assert read_doc_ids([str(tmp_path / "run.jsonl")])[1] == Problems()


def test_a_megabyte_of_text_is_cut(tmp_path: Path) -> None:
    results = [{"doc_id": "a", "text": "x " * 1_000_000}]
    [candidate] = pooled(tmp_path, {"query_id": "q1", "results": results}).candidates["q1"]
    assert len(candidate.text) == 2_000
    assert candidate.text.endswith("…")
