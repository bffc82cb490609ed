"""How many results the rows of a run have."""

from ragcontract.evaluation.observations import Depth, Depths
from ragcontract.evaluation.side import evaluate_side
from tests.evaluation.test_evaluate import plan_of, rows
from tests.records import query


def depth(*batches: list[int]) -> Depth | None:
    plan = plan_of(query("q"), repeats=True)
    return evaluate_side(plan, [rows(*(("q", ["d"] * length) for length in lengths)) for lengths in batches]).observed(
        Depths
    )


def test_the_longest_row_and_the_median_count() -> None:
    assert depth([3, 3, 3]) == Depth(most=3, typical=3)
    assert depth([1, 2], [10]) == Depth(most=10, typical=2)
    assert depth([0, 0]) == Depth(most=0, typical=0)
    assert depth([], []) is None
