"""How many queries a limit takes, and that so many are enough and one less is not."""

from math import inf

import pytest
from msgspec.structs import replace

from ragcontract.core.metric import Scale
from ragcontract.statistics.significance import assess, queries_needed
from tests.statistics.paired_runs import change_of, paired


@pytest.mark.parametrize("limit", [0.02, 0.05, 0.1, 0.3, 1.0])
def test_a_lost_share_of_the_limits_size_can_be_proven_with_so_many_queries(limit: float) -> None:
    needed = queries_needed(limit, "significant")
    assert needed is not None
    for queries, proven in ((needed, True), (needed - 1, False)):
        lost = int(limit * queries + 1e-9)
        found = paired([1.0] * queries, [0.0] * lost + [1.0] * (queries - lost))
        assert ((found.p_value or 1) <= 0.05) is proven


@pytest.mark.parametrize("limit", [0.02, 0.05, 0.1, 0.3])
def test_one_better_and_one_worse_leave_the_bound_within_the_limit(limit: float) -> None:
    needed = queries_needed(limit, "noninferiority")
    assert needed is not None
    for queries, within in ((needed, True), (needed - 1, False)):
        found = paired([0.0, 1.0, *[0.5] * (queries - 2)], [1.0, 0.0, *[0.5] * (queries - 2)])
        assert (found.bounds[1] <= limit) is within


def test_the_more_tags_have_limits_the_more_queries_each_takes() -> None:
    assert [queries_needed(0.05, "significant", tests=tests) for tests in (1, 10)] == [80, 140]
    assert [queries_needed(0.05, "noninferiority", tests=tests) for tests in (1, 10)] == [64, 64]


def test_a_larger_scale_takes_more_and_a_smaller_alpha_too() -> None:
    assert queries_needed(0.5, "significant", span=10.0) == 80
    assert queries_needed(0.5, "noninferiority", span=10.0) == queries_needed(0.05, "noninferiority")
    assert queries_needed(0.05, "significant", alpha=0.01) == 120
    assert (queries_needed(0.05, "noninferiority", alpha=0.01) or 0) > 64


def test_no_number_is_enough_for_a_limit_of_0_or_on_a_scale_without_ends() -> None:
    assert queries_needed(0.0, "significant") is queries_needed(0.0, "noninferiority") is None
    assert queries_needed(0.1, "significant", span=inf) is queries_needed(0.1, "noninferiority", span=inf) is None


def test_an_unchanged_metric_is_within_a_limit_that_has_its_queries() -> None:
    change = replace(change_of([0.5] * 64, [0.5] * 64), identical=False, scale=Scale())
    assert assess([change])[0].bounds[1] < 0.05
