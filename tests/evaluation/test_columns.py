"""The values of families beside the ranking metrics, by query."""

import pytest

from ragcontract.evaluation.side import Column
from tests.work import work


def column() -> Column:
    return Column(2, {"q1": 0, "q2": 1, "q3": 2})


def test_each_query_has_the_values_that_were_noted_for_it() -> None:
    values = column()
    values.note("q3", (0.5, 2.0))
    values.note("q1", (0.0, -1.0))
    assert [values[query_id] for query_id in ("q1", "q2", "q3")] == [(0.0, -1.0), (), (0.5, 2.0)]


def test_a_query_without_a_part_in_the_metrics_has_none() -> None:
    values = column()
    values.note("q1", ())
    assert values["q1"] == ()
    assert values.rows("q1") == [()]


def test_of_several_rows_the_values_are_means_and_each_is_there() -> None:
    values = column()
    values.note("q2", (0.0, 1.0))
    values.repeat("q2", (1.0, 4.0))
    values.repeat("q2", (0.5, 4.0))
    assert values["q2"] == (0.5, 3.0)
    assert values.rows("q2") == [(0.0, 1.0), (1.0, 4.0), (0.5, 4.0)]
    assert values.rows("q1") == [()]


@pytest.mark.parametrize("without", [0, 1, 2])
def test_a_row_without_values_has_no_part_in_the_means(without: int) -> None:
    values, rows = column(), [(0.0, 1.0), (1.0, 3.0)]
    rows_with_a_gap: list[tuple[float, ...]] = [*rows[:without], (), *rows[without:]]
    values.note("q1", rows_with_a_gap[0])
    for row in rows_with_a_gap[1:]:
        values.repeat("q1", row)
    assert values["q1"] == (0.5, 2.0)
    assert values.rows("q1") == rows


def test_many_rows_of_a_query_are_averaged_once() -> None:
    def fill(rows: int) -> None:
        values = column()
        values.note("q1", (0.0, 1.0))
        for number in range(rows):
            values.repeat("q1", (number / rows, 1.0))
        assert values["q1"][1] == 1.0

    assert work(lambda: fill(400)) < 3 * work(lambda: fill(200))
