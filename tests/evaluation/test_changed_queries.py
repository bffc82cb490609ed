"""Which queries changed, and what each metric's change is made of."""

from ragcontract.core.metric import Metric
from ragcontract.evaluation.aggregates import changes, find_changed_queries, queries_by_tag
from ragcontract.statistics.means import Row, group
from ragcontract.statistics.sign_flips import Weights

METRICS = {0: Metric(key="mrr", label="MRR"), 1: Metric(key="seconds", label="Seconds", better="lower")}
ROWS: list[Row] = [
    (("a",), 1.0, (0.5, 2.0), (1.0, 2.0)),
    (("a", "b"), 2.0, (0.5, 3.0), (0.5, 2.0)),
    (("b",), 3.0, (0.5, 2.0), (0.5, 2.0)),
    ((), 1.0, (0.5, 2.0), None),
    ((), 1.0, (), (0.5, 2.0)),
    ((), 1.0, (1 / 3, 2.0), (1 - 2 / 3, 2.0)),
]


def test_only_queries_that_have_another_value_on_both_sides_changed() -> None:
    found = find_changed_queries(ROWS)
    assert [(one.number, one.weight, one.differences) for one in found] == [(0, 1.0, (-0.5, 0.0)), (1, 2.0, (0.0, 1.0))]
    assert {tag: [one.number for one in of] for tag, of in queries_by_tag(found).items()} == {"a": [0, 1], "b": [1]}


def test_a_metrics_change_has_the_queries_that_changed_and_the_weights_of_all_that_both_sides_have() -> None:
    found = dict(changes(METRICS, find_changed_queries(ROWS), group(ROWS), identical=False))
    assert found["mrr"].changed == {0: (1.0, -0.5)}
    assert found["seconds"].changed == {1: (2.0, 1.0)}
    assert found["mrr"].weights == Weights(4, 7.0, 15.0, 37.0)
    assert [(one.wins, one.ties, one.losses) for one in found.values()] == [(0, 3, 1), (0, 3, 1)]
    assert [one.amount for one in found.values()] == [0.5 / 7, 2 / 7]
