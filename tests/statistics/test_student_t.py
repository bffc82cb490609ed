import pytest

from ragcontract.statistics.significance import t_quantile

# From tables of the distribution, as in any textbook.
TABLED = {
    (0.05, 1): 6.313752,
    (0.025, 1): 12.706205,
    (0.05, 2): 2.919986,
    (0.025, 4): 2.776445,
    (0.05, 30): 1.697261,
    (0.025, 120): 1.979930,
    (0.05, 1_000): 1.646379,
    (0.05, 1e9): 1.644854,
}


@pytest.mark.parametrize(("tail", "freedom"), TABLED)
def test_quantiles_are_those_of_the_tables(tail: float, freedom: float) -> None:
    assert t_quantile(tail, freedom) == pytest.approx(TABLED[tail, freedom], rel=1e-6)


def test_degrees_of_freedom_may_be_fractions() -> None:
    # Between their neighbours; of 2.5 degrees, scipy.stats.t.isf says 2.558219.
    assert t_quantile(0.05, 2.5) == pytest.approx(2.558219, rel=1e-5)
    assert t_quantile(0.05, 3) < t_quantile(0.05, 2.5) < t_quantile(0.05, 2)


def test_fewer_degrees_than_one_count_as_one() -> None:
    assert t_quantile(0.05, 0.2) == t_quantile(0.05, 1)


def test_both_formulas_agree_where_they_meet() -> None:
    assert t_quantile(0.01, 999.9) == pytest.approx(t_quantile(0.01, 1_000), rel=1e-5)
