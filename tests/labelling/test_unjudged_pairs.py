"""What to judge first: what each pair moves is what a check measures once it is labelled."""

import random
from collections.abc import Mapping, Sequence
from itertools import chain, combinations
from typing import Any

import pytest
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.gate import Gate
from ragcontract.core.golden import PLACEHOLDER, GoldenQuery
from ragcontract.core.ids import packed
from ragcontract.decision.decide import decide
from ragcontract.decision.evaluated import Evaluation
from ragcontract.labelling.sheet import FirstResults
from ragcontract.labelling.unjudged import Effects, UnjudgedPair, UnjudgedPairs, least, rises, unjudged_pairs
from tests.records import NOW, evaluate, query

Docs = Mapping[str, Sequence[str]]
CLOSE = 1e-9


def found(evaluation: Evaluation, run: Docs, top: int = 10_000) -> UnjudgedPairs:
    first = FirstResults(evaluation)
    for query_id, doc_ids in run.items():
        first.note(query_id, list(doc_ids))
    return unjudged_pairs(evaluation, decide(evaluation, NOW).gates, first.result(), top)


def pairs(
    queries: Sequence[GoldenQuery], run: Docs, baseline: Docs | None = None, config: Mapping[str, Any] | None = None
) -> list[UnjudgedPair]:
    return found(evaluate(queries, run, baseline, config), run).pairs


def named(listed: Sequence[UnjudgedPair]) -> list[str]:
    return [f"{pair.query_id} {pair.doc_id}" for pair in listed]


def margin(gate: Gate, evaluation: Evaluation) -> float:
    """Return by how much a limit is kept, in points of its metric; negative if it is broken."""
    means = evaluation.aggregates.comparison(gate.quantity.key, gate.tag)
    if not gate.compares:
        return (means.current or 0.0) - gate.limit
    before, now = means.baseline or 0.0, means.current_shared or 0.0
    return gate.limit * (before if gate.relative else 1) - (before - now)


def sample(seed: int) -> tuple[list[GoldenQuery], dict[str, list[str]], dict[str, list[str]]]:
    """Make up queries with weights, tags and grades, and a run and a baseline over them."""
    dice = random.Random(seed)
    queries, run, baseline = [], {}, {}
    for number in range(12):
        documents = [f"d{one}" for one in range(14)]
        relevant = dice.sample(documents, dice.choice([0, 1, 1, 3]))
        graded = dice.random() < 0.5
        grades = {doc_id: dice.choice([1.0, 2.0]) for doc_id in relevant} | {"d0": 0.0} if graded else None
        if grades:
            relevant = [doc_id for doc_id, grade in grades.items() if grade]
        name = f"q{number}"
        tags = ("a", "b")[: dice.randint(0, 2)]
        weight = dice.choice([0.5, 1.0, 4.0])
        queries.append(query(name, *relevant, weight=weight, tags=tags, relevance=grades))
        run[name] = dice.sample(documents, 7)
        if dice.random() < 0.8:
            baseline[name] = dice.sample(documents, 7)
    return queries, run, baseline


LIMITS = (
    {"minimums": {"mrr_at_k": 0.9}},
    {"minimums": {"ndcg_at_k": 0.2}},
    {"fail_on": {"mrr_drop_gt": 0.0}},
    {"fail_on": {"ndcg_drop_gt": "1%"}},
    {"fail_on": {"map_drop_gt": "50%", "recall_drop_gt": 0.01}},
    {"tags": {"a": {"minimums": {"map_at_k": 0.8}}, "b": {"fail_on": {"ndcg_drop_gt": 0.01}}}},
    {"fail_on": {"ndcg_drop_gt": 0.0}, "rank_by": "documents", "gain": "exponential"},
    {"fail_on": {"ndcg_drop_gt": 0.0, "map_drop_gt": 0.0}, "unjudged": "skip", "k": 3},
)


@pytest.mark.parametrize("config", LIMITS)
@pytest.mark.parametrize("seed", range(2))
def test_a_pair_moves_its_limit_as_far_as_a_check_says_once_it_is_labelled(
    seed: int, config: Mapping[str, Any]
) -> None:
    queries, run, baseline = sample(seed)
    before = evaluate(queries, run, baseline, config)
    gates = {gate.id: gate for gate in before.contract.gates}
    effects = Effects(lambda *_row: (), 1)
    listed = found(before, run).pairs
    assert len(listed) > 10
    for pair in listed:
        labelled = [effects.with_relevant(one, [pair.doc_id]) if one.id == pair.query_id else one for one in queries]
        after = evaluate(labelled, run, baseline, config)
        gate = gates[pair.limit]
        assert pair.move == pytest.approx(margin(gate, after) - margin(gate, before), abs=CLOSE)
        if pair.share:
            assert pair.share == pytest.approx(pair.move / -margin(gate, before))


@pytest.mark.parametrize("config", LIMITS[:5])
@pytest.mark.parametrize("seed", range(2))
def test_no_fewer_labels_than_said_bring_a_broken_limit_within_it(seed: int, config: Mapping[str, Any]) -> None:
    queries, run, baseline = sample(seed)
    queries = [one for one in queries if one.answerable][:3]
    run, baseline = ({one.id: docs[one.id][:3] for one in queries if one.id in docs} for docs in (run, baseline))
    config = {**config, "k": 3}
    evaluation = evaluate(queries, run, baseline, config)
    listed = found(evaluation, run)
    effects = Effects(lambda *_row: (), 1)
    gates = {gate.id: gate for gate in evaluation.contract.gates}
    for outlook in listed.outlooks:
        gate = gates[outlook.report.id]
        assert outlook.lacking == pytest.approx(-margin(gate, evaluation))
        fewest = None
        for chosen in chain.from_iterable(combinations(listed.pairs, size) for size in range(1, len(listed.pairs) + 1)):
            by_query = {one.id: [pair.doc_id for pair in chosen if pair.query_id == one.id] for one in queries}
            labelled = [effects.with_relevant(one, ids) if (ids := by_query[one.id]) else one for one in queries]
            if margin(gate, evaluate(labelled, run, baseline, config)) >= -CLOSE:
                fewest = len(chosen)
                break
        if fewest is not None:
            assert outlook.least is not None
            assert outlook.least <= fewest


def test_what_brings_a_broken_limit_closest_comes_first() -> None:
    queries = [query("q1", "a", weight=1.0), query("q2", "a", weight=5.0), query("q3", "a")]
    run = {"q1": ["x", "y"], "q2": ["x", "y"], "q3": ["a", "y"]}
    listed = pairs(queries, run, config={"minimums": {"mrr_at_k": 0.9}})
    assert named(listed) == ["q2 x", "q2 y", "q1 x", "q1 y", "q3 y"]
    assert [pair.rank for pair in listed] == [1, 2, 1, 2, 2]


def test_of_equal_moves_the_golden_order_decides_then_the_rank() -> None:
    run = {"q1": ["x", "y"], "q2": ["x", "y"]}
    listed = pairs([query("q2", "a"), query("q1", "a")], run, config={"minimums": {"hitrate_at_k": 1}})
    assert named(listed) == ["q2 x", "q2 y", "q1 x", "q1 y"]


def test_without_limits_the_metric_that_moves_most_decides() -> None:
    listed = pairs([query("q1", "a")], {"q1": ["x", "a"]})
    assert [(pair.label, pair.rank, pair.share) for pair in listed] == [("MRR@5", 1, 0)]
    assert listed[0].move == pytest.approx(0.5)


def test_what_is_labelled_forbidden_graded_or_in_the_baselines_top_k_is_judged() -> None:
    asked = query("q1", "a", forbidden_doc_ids=("f",), relevance={"a": 1, "n": 0})
    run = {"q1": ["f", "n", "old", "a", "new"]}
    assert named(pairs([asked], run, {"q1": ["old"]})) == ["q1 new"]


def test_queries_without_relevant_documents_have_nothing_to_judge() -> None:
    assert pairs([query("q1")], {"q1": ["x"]}) == []


def test_documents_below_k_are_not_listed() -> None:
    assert named(pairs([query("q1", "a")], {"q1": ["x", "y", "z"]}, config={"k": 2})) == ["q1 x", "q1 y"]


def test_a_placeholder_makes_room_for_what_is_relevant() -> None:
    queries, run = [query("q1", PLACEHOLDER), query("q2", "a")], {"q1": ["x"], "q2": ["a"]}
    (pair,) = pairs(queries, run, config={"minimums": {"recall_at_k": 1}})
    assert (pair.move, pair.share) == (0.5, 1.0)


def test_labels_that_cannot_turn_a_limit_are_said_not_to() -> None:
    queries = [query("q1", "a", "b", "c"), query("q2", "a")]
    run = {"q1": ["x"], "q2": ["a"]}
    (outlook,) = found(evaluate(queries, run, None, {"minimums": {"recall_at_k": 0.9}}), run).outlooks
    assert outlook.least is None


def test_a_baseline_that_was_updated_may_have_documents_that_nobody_judged_for_the_labels() -> None:
    queries, run = [query("q1", "a")], {"q1": ["a", "old"]}
    evaluation = evaluate(queries, run, {"q1": ["new", "a"]}, {"fail_on": {"mrr_drop_gt": 0.1}})
    baseline = evaluation.baseline
    assert baseline is not None
    ids = replace(baseline.ids, pools={"q1": packed([["a", "old"]])})
    with_pool = replace(evaluation, baseline=replace(baseline, ids=ids))
    (pair,) = found(with_pool, run).pairs
    assert (pair.doc_id, pair.rank, pair.baseline_rank) == ("new", None, 1)
    assert pair.move == pytest.approx(-0.5)  # the baseline gets better by it


def test_of_very_many_documents_of_a_query_the_first_ones_are_measured() -> None:
    doc_ids = [f"x{number}" for number in range(bounds.UNJUDGED + 1)]
    config = {"k": 2 * bounds.UNJUDGED, "minimums": {"precision_at_k": 0.9}}
    listed = pairs([query("q1", "a")], {"q1": doc_ids}, config=config)
    assert [bool(pair.move) for pair in listed] == [*[True] * bounds.UNJUDGED, False]


@pytest.mark.parametrize(
    ("sums", "steps"),
    [
        ([3.0, 5.0, 6.0], [3.0, 2.0, 1.0]),
        ([1.0, 4.0, 5.0], [2.0, 2.0, 1.0]),
        ([2.0, 1.0, -1.0], [2.0]),
        ([-1.0, -2.0], []),
        ([0.0, 0.0, 3.0], [1.0, 1.0, 1.0]),
    ],
)
def test_the_rises_of_a_curve_are_those_of_the_smallest_concave_one_above_it(
    sums: list[float], steps: list[float]
) -> None:
    assert rises(sums) == pytest.approx(steps)


def test_the_largest_gains_make_up_first() -> None:
    assert least([0.1, 0.5, 0.2], 0.7) == 2
    assert least([0.1, 0.5, 0.2], 0.8) == 3
    assert least([0.1], 0.2) is None
    assert least([0.1] * 10, 1.0) == 10


def test_what_if_is_about_documents_as_good_as_the_best_of_their_query_and_at_least_of_the_level() -> None:
    effects = Effects(lambda *_row: (), 2)
    ungraded = effects.with_relevant(query("q1", "a", "TODO"), ["x"])
    assert (ungraded.relevant_doc_ids, ungraded.relevance) == (("a", "x"), None)
    graded = query("q1", "a", relevance={"a": 3, "b": 0, "TODO": 9})
    assert effects.with_relevant(graded, ["x"]).relevance == {"a": 3, "b": 0, "x": 3}
    assert effects.with_relevant(query("q1", relevance={"b": 0, "c": 1}), ["x"]).relevance == {"b": 0, "c": 1, "x": 2}


def test_of_equal_moves_documents_that_are_more_likely_relevant_come_first() -> None:
    queries = [query(f"q{number}", "a", relevance={"a": 1, "n": 0, "m": 0}) for number in range(1, 9)]
    queries += [query("poor", "a", relevance={"a": 1, **dict.fromkeys("bcdefghi", 0)}), query("rich", "a")]
    run = {f"q{number}": ["n", "a"] for number in range(1, 9)} | {"poor": ["x", "y"], "rich": ["x", "y"]}
    listed = pairs(queries, run, config={"minimums": {"hitrate_at_k": 1}})
    assert [pair.move for pair in listed] == pytest.approx([0.1] * 4)
    assert named(listed) == ["rich y", "poor y", "rich x", "poor x"]  # rank 2 is where relevant ones are
    assert all(0 < pair.chance <= 1 for pair in listed)
