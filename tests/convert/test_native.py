import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given

from ragcontract.contract.golden_row import golden_record
from ragcontract.convert.collection import Collection
from ragcontract.files.problems import Problems
from ragcontract.registry import BUILT_IN
from tests.builders import as_jsonl, golden, run
from tests.convert.builders import ANY_TEXT, collection, collections, lines_of, read, read_all, rows, written


def test_golden_rows_with_and_without_grades_are_read(tmp_path: Path) -> None:
    graded = {"id": 2, "query": "Who?", "relevance": {"a": 2, "b": 0.5}}
    found, problems = read(
        "rag-contract", tmp_path, golden=as_jsonl(golden("q1", "x", "y"), graded), run=as_jsonl(run())
    )
    assert {query.id: query.grades for query in (found.queries or {}).values()} == {
        "q1": {"x": 1, "y": 1},
        "2": {"a": 2, "b": 0.5},
    }
    assert problems == Problems()


def test_what_no_other_format_has_is_said_to_be_lost(tmp_path: Path) -> None:
    questions = [golden("q1"), golden("q2", weight=2, tags=["t"]), golden("q3", tags=["t"], must_rank_at_most=1)]
    results = [{"doc_id": "d", "chunk_id": "c"}, {"doc_id": "e"}]
    ranked = [run("q1"), {"query_id": "q2", "results": results, "latency_ms": 0, "index_version": 3}]
    _, problems = read("rag-contract", tmp_path, golden=as_jsonl(*questions), run=as_jsonl(*ranked))
    lost = "not in the other format, and left out:"
    assert list(problems.warnings) == [
        f"{tmp_path}/golden:2: {lost} weight, tags, must_rank_at_most",
        f"{tmp_path}/run:2: {lost} latency_ms, index_version, results.chunk_id",
    ]


CARRIED = {"id", "query", "relevant_doc_ids", "relevance"}
USED: dict[str, Any] = {
    "must_rank_at_most": 1,
    "must_include_any": True,
    "forbidden_doc_ids": ["x"],
    "weight": 2,
    "tags": ["t"],
    "severity": "warn",
    "metadata": {"owner": "docs"},
    "answer_must_include": ["30 days"],
    "forbidden_claims": ["free"],
    "required_elements": ["30 days"],
    "forbidden_elements": ["free"],
    "expected_mode": "abstain",
    "expected_label": "billing",
    "reference": "30 days.",
    "reference_claims": ["30 days."],
    "reference_contexts": ["30 days."],
    "reference_tool_calls": [],
    "criteria": ["Says that returns are free.", {"id": "tone", "text": "Is polite."}],
    "tier": "core",
    "as_evaluated": "fitz-gov-4.1.0",
    "rules": [{"type": "max_chars", "value": 100}],
    "turns": [{"query": "?", "answer_must_include": ["30 days"]}],
}
OPTIONS = {"allowed_phrases": "forbidden_claims", "min_required": "required_elements"}  # the field each belongs to


@pytest.mark.parametrize(
    "field", [name for name in golden_record(BUILT_IN).__struct_fields__ if name not in {*CARRIED, *OPTIONS}]
)
def test_every_field_of_a_golden_row_is_carried_or_said_to_be_lost_where_it_is_first(
    field: str, tmp_path: Path
) -> None:
    rows = as_jsonl(golden("q1"), golden("q2", **{field: USED[field]}), golden("q3", **{field: USED[field]}))
    _, problems = read("rag-contract", tmp_path, golden=rows, run=as_jsonl(run()))
    assert list(problems.warnings) == [f"{tmp_path}/golden:2: not in the other format, and left out: {field}"]


@pytest.mark.parametrize(("field", "value"), [("allowed_phrases", ["not free"]), ("min_required", 1)])
def test_an_option_is_said_to_be_lost_as_the_field_is(field: str, value: object, tmp_path: Path) -> None:
    belongs_to = OPTIONS[field]
    rows = as_jsonl(golden("q1", **{field: value, belongs_to: USED[belongs_to]}))
    _, problems = read("rag-contract", tmp_path, golden=rows, run=as_jsonl(run()))
    lost = f"{tmp_path}/golden:1: not in the other format, and left out: {belongs_to}, {field}"
    assert list(problems.warnings) == [lost]


def test_defaults_that_are_written_out_are_not_lost(tmp_path: Path) -> None:
    row = golden(forbidden_doc_ids=[], weight=1, tags=[], severity="error", metadata={})
    _, problems = read("rag-contract", tmp_path, golden=as_jsonl(row), run=as_jsonl(run()))
    assert problems.warnings == ()


def test_a_duplicate_query_is_reported(tmp_path: Path) -> None:
    _, problems = read("rag-contract", tmp_path, golden=as_jsonl(golden(), golden()), run=as_jsonl(run(), run()))
    assert [problem.replace(f"{tmp_path}/", "") for problem in lines_of(problems, tmp_path)] == [
        "golden:2: id: duplicate id 'q1', first defined at golden:1",
        "run:2: query_id: duplicate 'q1', first defined at run:1",
    ]


def test_queries_that_are_not_in_the_run_are_said_to_be_missing() -> None:
    text, problems = written("rag-contract", "run", collection({"q1": {}, "q2": {}}, {"q2": [("d", None)]}))
    assert rows(text) == [{"query_id": "q2", "results": [{"doc_id": "d"}]}]
    assert list(problems.warnings) == [
        "1 query ('q1') not in the run: if nothing was found for them, say so with `missing_queries: zero`"
    ]


def test_whole_grades_are_written_as_people_write_them() -> None:
    text, _ = written("rag-contract", "golden", collection({"q": {"a": 1.0, "b": 0.5}}))
    assert json.loads(text)["relevance"] == {"a": 1, "b": 0.5}
    assert '"a":1,' in text


@given(collections(ANY_TEXT))
def test_what_is_written_reads_back_as_it_was(before: Collection) -> None:
    texts = {name: written("rag-contract", name, before)[0] for name in ("golden", "run")}
    with TemporaryDirectory() as folder:
        after = read_all("rag-contract", Path(folder), texts)
    assert {one.id: (one.text, one.grades) for one in (after.queries or {}).values()} == {
        one.id: (one.text, one.grades) for one in (before.queries or {}).values()
    }
    assert {one.query_id: one.results for one in (after.rankings or {}).values()} == {
        one.query_id: one.results for one in (before.rankings or {}).values()
    }
