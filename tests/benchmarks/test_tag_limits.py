import random
from functools import partial

from benchmarks import tag_limits
from benchmarks.tag_limits import QUERIES, TAGS
from tests.benchmarks import real_runs


def test_the_table_has_the_share_of_red_checks_of_each_mode() -> None:
    outcomes = [(frozenset(["strict", "noninferiority"]), True), (frozenset(["noninferiority"]), False)]
    assert "".join(tag_limits.content({"nothing": outcomes})).splitlines()[2] == "| nothing | 50% | 0.0% | 100% | 50% |"


def test_a_change_of_the_model_keeps_the_share_of_queries_that_do_not_change() -> None:
    same = tag_limits.of_model(0.0, random.Random(1))
    assert (same.baseline, len(same.relevant)) == (same.change, TAGS * QUERIES)
    other = tag_limits.of_model(1.0, random.Random(1))
    assert other.baseline == same.baseline
    assert sum(other.baseline[query] != other.change[query] for query in other.relevant) > TAGS * QUERIES / 4


def test_real_systems_are_shuffled_topic_by_topic() -> None:
    change = tag_limits.of_systems(real_runs.robust(), random.Random(1))
    assert all(change.baseline[topic] != change.change[topic] for topic in change.relevant)
    assert len({tuple(ranking) for ranking in change.baseline.values()}) == 2


def test_a_check_without_changes_fails_in_no_mode() -> None:
    assert tag_limits.outcome(partial(tag_limits.of_model, 0.0), 7) == (frozenset(), False)


def test_a_check_of_changes_fails_where_no_change_is_tested() -> None:
    assert "strict" in tag_limits.outcome(partial(tag_limits.of_model, 1.0), 7)[0]
