"""Run and baseline, scored under the same golden set."""

import msgspec

from ragcontract.contract.config import Config
from ragcontract.model import GoldenQuery
from ragcontract.statistics.aggregate import Comparison, compare
from tests.records import Rows, query, score


def test_both_sides_are_scored_and_told_apart() -> None:
    queries = [query("same", "A"), query("new", "A"), query("reworded", "A"), query("missing", "A")]
    run = {"same": ["A"], "new": ["A"], "reworded": ["A"], "unknown": ["A"]}
    before = Rows(
        {"same": ["x", "A"], "reworded": ["A"], "gone": ["A"]},
        name="baseline.json",
        questions={"same": "What about same?", "reworded": "Another question?", "gone": "?"},
    )
    scored = score(queries, run, before)
    assert scored.run.missing == ["missing"]
    assert scored.run.scores["missing"].values == (0.0,) * 6
    assert scored.run.unknown == ["unknown"]
    assert scored.baseline is not None
    assert (scored.baseline.new, scored.baseline.changed, scored.baseline.gone) == (
        ["new", "missing"],
        ["reworded"],
        ["gone"],
    )
    assert scored.baseline.queries == 3


def test_either_side_is_averaged_over_the_queries_that_both_have() -> None:
    queries = [query("same", "A"), query("new", "A"), query("reworded", "A"), query("apart", "A")]
    run = {"same": ["x", "A"], "new": ["A"], "reworded": ["A"], "apart": ["A"]}
    before = Rows(
        {"same": ["A"], "reworded": ["A"], "apart": ["x"]}, name="b", questions={"reworded": "Another question?"}
    )

    def mrr(*some: GoldenQuery) -> Comparison:
        scored = score(some, {one.id: run[one.id] for one in some}, before)
        return compare(scored.groups, scored.metrics)["mrr_at_5"]

    assert mrr(*queries[:3]) == Comparison(current=2.5 / 3, current_shared=0.5, baseline=1.0)
    assert mrr(*queries).baseline == 0.5
    assert mrr(queries[1]) == Comparison(current=1.0)
    alone = score(queries[:1], run)
    assert compare(alone.groups, alone.metrics)["mrr_at_5"] == Comparison(current=0.5)


def test_the_cut_off_is_the_configs() -> None:
    scored = score([query("q1", "A")], {"q1": ["x", "A"]}, {"q1": ["A"]}, Config(k=1))
    assert scored.k == 1
    assert scored.run.scores["q1"].values == (0.0,) * 6
    assert scored.baseline is not None
    assert scored.baseline.scores["q1"].values == (1.0,) * 6


def test_both_sides_are_counted_the_same_way() -> None:
    config = msgspec.structs.replace(Config(k=2), rank_by="documents")
    scored = score([query("q1", "A")], {"q1": ["x", "x", "A"]}, {"q1": ["x", "x", "x", "A"]}, config)
    assert scored.baseline is not None
    assert scored.run.scores["q1"].ranks == scored.baseline.scores["q1"].ranks == (2,)
