"""Where the rows of a run are."""

from ragcontract.core.run import RunRow
from ragcontract.evaluation.fold import fold, location_of
from ragcontract.files.problems import Batch
from tests.evaluation.test_fold import plan_of
from tests.records import query

ROWS = [RunRow(query_id=query_id, results=[]) for query_id in ("a", "b")]


def test_a_query_has_the_location_of_its_row_in_any_of_the_files() -> None:
    batches = [("one", 1, "ab"), ("one", 3, "cd"), ("two", 2_000_000_000, "ef"), ("again", 1, "adf")]
    events = [Batch(path, line, [RunRow(query_id=name, results=[]) for name in names]) for path, line, names in batches]
    problems = fold(plan_of(*map(query, "abcdef")), events).problems.problems
    assert [problem.partition("first defined at ")[2].partition(" ")[0] for problem in problems] == [
        "one:1",
        "one:4",
        "two:2000000001",
    ]


def test_a_row_in_memory_is_named_by_its_query() -> None:
    assert str(location_of(Batch("run.jsonl", 7, ROWS), 1)) == "run.jsonl:8"
    assert str(location_of(Batch("the run", 0, ROWS), 1)) == 'the run: query "b"'
