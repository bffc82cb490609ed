"""The overlap of what is retrieved with what was retrieved before."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcontract.core.ids import packed
from ragcontract.core.metric import MetricSettings
from ragcontract.core.run import RunRow
from ragcontract.metrics.overlap import SHORT, Overlap, jaccard, overlap, rank_biased_overlap, remembered
from tests.records import query

LISTS = st.lists(st.integers(0, 9), unique=True, max_size=8)


def extrapolated(one: list[int], other: list[int]) -> float:
    """Return RBO as equation 32 of Webber, Moffat and Zobel has it, term by term, in exact numbers."""
    p = Fraction(9, 10)
    shorter, longer = sorted((one, other), key=len)
    s, long = len(shorter), len(longer)

    def common(depth: int) -> int:
        return len({*shorter[:depth]} & {*longer[:depth]})

    first = sum((Fraction(common(d), d) * p**d for d in range(1, long + 1)), Fraction())
    second = sum((Fraction(common(s) * (d - s), s * d) * p**d for d in range(s + 1, long + 1)), Fraction())
    tail = (Fraction(common(long) - common(s), long) + Fraction(common(s), s)) * p**long
    return float((1 - p) / p * (first + second) + tail)


@given(one=LISTS.filter(bool), other=LISTS.filter(bool))
def test_rank_biased_overlap_is_that_of_the_paper(one: list[int], other: list[int]) -> None:
    assert rank_biased_overlap(one, other) == pytest.approx(extrapolated(one, other), abs=1e-12)
    assert rank_biased_overlap(one, other) == pytest.approx(rank_biased_overlap(other, one), abs=1e-12)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        # As the package rbo 0.1.3 computes them, with rbo_ext(p=0.9).
        ("abcde", "abcde", 1.0),
        ("abcde", "edcba", 0.7377750000000001),
        ("abcde", "vwxyz", 0.0),
        ("abc", "abcde", 1.0),
        ("abcdefghij", "bacdxfyhzj", 0.7193199952285715),
        ("a", "bca", 0.27),
    ],
)
def test_rank_biased_overlap_is_that_of_another_program(one: str, other: str, expected: float) -> None:
    assert rank_biased_overlap([*map(ord, one)], [*map(ord, other)]) == pytest.approx(expected, abs=1e-12)


@given(LISTS)
def test_identical_lists_have_one_and_an_empty_one_nothing_in_common(ids: list[int]) -> None:
    assert (jaccard(ids, ids), rank_biased_overlap(ids, ids)) == (1.0, 1.0)
    if ids:
        assert (jaccard(ids, []), rank_biased_overlap(ids, [])) == (0.0, 0.0)


def test_the_order_matters_to_rank_biased_overlap_only() -> None:
    swapped, moved = Overlap([2]).against("BA", packed([["A", "B"]])), Overlap([2]).against("AB", packed([["A", "B"]]))
    assert (swapped[0], moved) == (1.0, (1.0, 1.0))
    assert swapped[1] < 1


def test_each_cut_off_has_both_the_largest_first() -> None:
    family = Overlap([1, 3])
    assert [metric.key for metric in family.metrics] == ["overlap_at_3", "rbo_at_3", "overlap_at_1", "rbo_at_1"]
    assert family.metrics[0].aliases == ("overlap_at_k",)
    assert family.against(["A", "x", "B"], packed([["A", "B", "C"]]))[::2] == (0.5, 1.0)


def test_further_results_of_a_document_do_not_count() -> None:
    assert Overlap([4]).against(["A", "A", "B"], packed([["A", "B", "B"]])) == (1.0, 1.0)
    assert Overlap([2], by_document=True).against(["A", "A", "B"], packed([["A", "B"]])) == (1.0, 1.0)
    assert Overlap([2]).against(["A", "A", "B"], packed([["A", "B"]]))[0] == 0.5


def test_of_several_rows_of_the_baseline_the_mean_counts() -> None:
    assert Overlap([1]).against(["A"], packed([["A"], ["x"]])) == (0.5, 0.5)


def test_pairs_of_long_lists_are_not_remembered() -> None:
    remembered.cache_clear()
    for k in (SHORT, 10_000):
        ids = [str(number) for number in range(k)]
        assert Overlap([k]).against(ids[::-1], packed([ids]))[0] == 1
    assert remembered.cache_info().currsize == 1


def test_nothing_has_no_overlap_with_nothing() -> None:
    assert Overlap([1]).against([], packed([[]])) == ()
    assert Overlap([1]).against([], packed([["A"]])) == (0.0, 0.0)
    assert Overlap([1]).against(["A"], packed([[]])) == (0.0, 0.0)


def test_a_row_alone_has_none() -> None:
    (family,) = overlap(MetricSettings(cutoffs=(5,)))
    assert family.values(query("q", "A"), RunRow(query_id="q", results=[])) == ()
