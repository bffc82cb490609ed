"""Where the rows of a run are."""

import pytest

from ragcontract.core.run import Result, RunRow
from ragcontract.evaluation.side import evaluate_side
from ragcontract.files.problems import Batch
from tests.evaluation.test_evaluate import plan_of
from tests.records import query


def test_a_query_has_the_location_of_its_row_in_any_of_the_files() -> None:
    batches = [("one", 1, "ab"), ("one", 3, "cd"), ("two", 2_000_000_000, "ef"), ("again", 1, "adf")]
    events = [Batch(path, line, [RunRow(query_id=name, results=[]) for name in names]) for path, line, names in batches]
    problems = evaluate_side(plan_of(*map(query, "abcdef")), events).problems.problems
    assert [problem.partition("first defined at ")[2].partition(" ")[0] for problem in problems] == [
        "one:1",
        "one:4",
        "two:2000000001",
    ]


@pytest.mark.parametrize(("line", "location"), [(7, "run.jsonl:8: "), (0, 'run.jsonl: query "b": ')])
def test_a_row_in_memory_is_named_by_its_query(line: int, location: str) -> None:
    results = [Result(doc_id="Secret")]
    rows = [RunRow(query_id="a", results=[]), RunRow(query_id="b", results=results)]
    plan = plan_of(query("a"), query("b", forbidden_doc_ids=("secret.md",)))
    (problem,) = evaluate_side(plan, [Batch("run.jsonl", line, rows)]).problems.problems
    assert problem.startswith(location)
