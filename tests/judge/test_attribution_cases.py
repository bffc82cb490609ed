"""What is judged for context recall."""

from pathlib import Path

import pytest

from ragcontract.core.errors import InputError
from ragcontract.judge.attribution_cases import Cases, read_cases
from tests.builders import Row, golden, write_jsonl

CLAIMS: Row = {"reference_claims": ["Refunds take five days.", "Returns are free."]}


def read(folder: Path, queries: list[Row], rows: list[Row], k: int = 5, *tags: str) -> Cases:
    write_jsonl(folder / "golden.jsonl", queries)
    write_jsonl(folder / "run.jsonl", rows)
    return read_cases([str(folder / "golden.jsonl")], [str(folder / "run.jsonl")], k, tags=tags)


def texts(*found: str | None) -> list[Row]:
    return [{"doc_id": f"d{at}", **({} if text is None else {"text": text})} for at, text in enumerate(found)]


def test_the_claims_are_judged_by_the_texts_of_the_first_results(tmp_path: Path) -> None:
    (case,) = read(tmp_path, [golden(**CLAIMS)], [{"query_id": "q1", "results": texts("a", "b", "c", None)}], 3).cases
    assert [item.name for item in case.items] == ["claim:1", "claim:2"]
    assert (case.task, case.query_id, case.contexts) == ("attribution", "q1", ("a", "b", "c"))


def test_what_the_model_saw_counts_more_than_what_was_retrieved(tmp_path: Path) -> None:
    row = {"query_id": "q1", "results": texts(None), "retrieved_contexts": ["x"] * 9}
    assert read(tmp_path, [golden(**CLAIMS)], [row]).cases[0].contexts == ("x",) * 9


def test_queries_without_claims_are_not_judged(tmp_path: Path) -> None:
    found = read(tmp_path, [golden(), golden("q2", reference="A good answer.")], [{"query_id": "q2", "results": []}])
    assert found.cases == ()
    assert "not judged, because there are no reference_claims: 1 golden query ('q2')" in found.warnings[0]


def test_a_query_without_a_row_is_a_warning(tmp_path: Path) -> None:
    found = read(tmp_path, [golden(**CLAIMS), golden("q2")], [{"query_id": "q2", "results": []}])
    assert "not judged, because there is no row in the run: 1 golden query ('q1')" in found.warnings


def test_nothing_retrieved_is_a_case_without_contexts(tmp_path: Path) -> None:
    assert read(tmp_path, [golden(**CLAIMS)], [{"query_id": "q1", "results": []}]).cases[0].contexts == ()


def test_only_queries_with_a_tag_are_judged_if_one_is_given(tmp_path: Path) -> None:
    queries = [golden("q1", tags=["a"], **CLAIMS), golden("q2", tags=["b"], **CLAIMS)]
    rows = [{"query_id": one["id"], "results": []} for one in queries]
    assert [case.query_id for case in read(tmp_path, queries, rows, 5, "b").cases] == ["q2"]


def test_all_that_is_wrong_is_said_with_its_line(tmp_path: Path) -> None:
    queries = [golden(f"q{at}", **CLAIMS) for at in range(3)]
    rows: list[Row] = [
        {"query_id": "q0", "results": texts("a", None)},
        {"query_id": "q1"},
        {"query_id": "q2", "results": []},
        {"query_id": "q2", "results": []},
    ]
    with pytest.raises(InputError) as raised:
        read(tmp_path, queries, rows)
    assert [problem.removeprefix(f"{tmp_path}/run.jsonl:") for problem in raised.value.problems] == [
        "1: has no text in results[1]; a judge needs it, or retrieved_contexts",
        "2: has neither retrieved_contexts nor results; a judge needs what was retrieved",
        f"4: query_id: 'q2' has a row already, at {tmp_path}/run.jsonl:3",
    ]
