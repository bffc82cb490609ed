"""Events of readers, as those see them who want rows with their locations."""

from ragcontract.core.phrase import Location
from ragcontract.core.run import SourceFile
from ragcontract.files.problems import (
    Batch,
    Collector,
    Event,
    FileRead,
    MoreProblems,
    Problem,
    Problems,
    Warned,
    located,
)

EVENTS: list[Event[str]] = [
    Batch("a.jsonl", 3, ["first", "second"]),
    Problem(Location("a.jsonl", 5, ("id",)), "is missing"),
    Warned("odd"),
    Batch("a.jsonl", 7, ["third"]),
    MoreProblems(4),
    FileRead(SourceFile(path="a.jsonl", sha256="ab")),
    Batch("b.jsonl", 1, ["fourth"]),
]


def test_rows_come_in_order_with_their_locations_and_the_rest_is_collected() -> None:
    problems = Collector()
    assert list(located(EVENTS, problems)) == [
        (Location("a.jsonl", 3), "first"),
        (Location("a.jsonl", 4), "second"),
        (Location("a.jsonl", 7), "third"),
        (Location("b.jsonl", 1), "fourth"),
    ]
    assert problems.collected() == Problems(problems=("a.jsonl:5: id: is missing",), more=4, warnings=("odd",))


def test_a_problem_is_collected_when_it_comes_and_not_before() -> None:
    problems = Collector()
    rows = located(EVENTS, problems)
    assert [next(rows), next(rows)] == [(Location("a.jsonl", 3), "first"), (Location("a.jsonl", 4), "second")]
    assert not problems.collected()
    next(rows)
    assert problems.collected()
