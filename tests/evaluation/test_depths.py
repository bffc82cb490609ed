"""How many results the rows of a run have."""

from ragcontract.evaluation.observations import Depth, DepthCounter


def depth(*batches: list[int]) -> Depth | None:
    counter = DepthCounter()
    for lengths in batches:
        counter.note([["d"] * length for length in lengths])
    return counter.result()


def test_the_longest_row_and_the_median_count() -> None:
    assert depth([3, 3, 3]) == Depth(most=3, typical=3)
    assert depth([1, 2], [10]) == Depth(most=10, typical=2)
    assert depth([0, 0]) == Depth(most=0, typical=0)
    assert depth([], []) is None
