"""When scores contradict the ranking."""

import pytest

from ragcontract.core.phrase import Location
from ragcontract.runs.readers import OrderCheck, descending, out_of_order


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([], True),
        ([None, None], True),
        ([3, 3, 2], True),
        ([3, None, 2, None], True),
        ([1, 2], False),
        ([1, None, 2], False),
        ([0.0, -0.0, -1], True),
    ],
)
def test_equal_and_missing_scores_are_in_order(scores: list[float | None], *, expected: bool) -> None:
    assert descending(scores) is expected


def test_the_warning_counts_the_rows() -> None:
    assert out_of_order("run.jsonl:7", 1).startswith(
        "run.jsonl:7: the scores are not in descending order (1 such row);"
    )
    assert "(1,200 such rows)" in out_of_order("x", 1_200)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([[1, 2], [0.1, 0.5]], True),
        ([[1, 2], [1, None, 3], [2, 2], [], [None]], True),
        ([[1, 2]], False),  # one row may rise by chance
        ([[1, 2], [1, 2], [2, 1]], False),
        ([[1, 2], [1, 2], [2, None, 1]], False),
        ([[1, 2], [1, 3, 2]], False),
        ([[2, 1], [2, 1]], False),
    ],
)
def test_scores_that_rise_in_every_row_look_like_distances(rows: list[list[float | None]], *, expected: bool) -> None:
    check = OrderCheck()
    for scores in rows:
        check.note(scores, Location("run.jsonl", 1))
    assert check.distances is expected
    assert (check.warning() is None) is (expected or not any(not descending(scores) for scores in rows))
