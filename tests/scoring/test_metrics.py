"""Metrics of one query: worked examples, and what must hold for any run."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcontract.scoring.metrics import METRICS, MetricAtK, metrics_at
from ragcontract.scoring.ranking import score_query
from tests.records import query

DOCS = [f"d{number}" for number in range(12)]
results = st.lists(st.sampled_from(DOCS), max_size=20)
relevant_docs = st.lists(st.sampled_from(DOCS), min_size=1, max_size=8, unique=True)
cutoffs = st.integers(min_value=1, max_value=25)


def values(relevant: Sequence[str], found: Sequence[str], k: int) -> dict[str, float]:
    metrics = metrics_at(k)
    score = score_query(query("q", *relevant), found, metrics)
    return {metric.metric.name: value for metric, value in zip(metrics, score.values, strict=True)}


@pytest.mark.parametrize(
    ("relevant", "found", "k", "expected"),
    [
        # Relevant at ranks 2 and 4 of five: 1/2, 2/3 of the relevant, 2/5 of the results.
        ("ABC", "xAyBz", 5, {"mrr": 1 / 2, "recall": 2 / 3, "precision": 2 / 5, "hitrate": 1.0}),
        # The same list cut in front of the second one.
        ("ABC", "xAyBz", 3, {"mrr": 1 / 2, "recall": 1 / 3, "precision": 1 / 3, "hitrate": 1.0}),
        # Exactly at the cut-off counts, one behind it does not.
        ("A", "xyA", 3, {"mrr": 1 / 3, "recall": 1.0, "precision": 1 / 3, "hitrate": 1.0}),
        ("A", "xyA", 2, {"mrr": 0.0, "recall": 0.0, "precision": 0.0, "hitrate": 0.0}),
        # A list that is shorter than k: precision still divides by k.
        ("AB", "A", 10, {"mrr": 1.0, "recall": 1 / 2, "precision": 1 / 10, "hitrate": 1.0}),
        # More relevant documents than fit into the top k: recall cannot be 1.
        ("ABCD", "ABCD", 2, {"mrr": 1.0, "recall": 1 / 2, "precision": 1.0, "hitrate": 1.0}),
        # A document that comes twice is credited once, but its second result takes a place.
        ("AB", "AAB", 2, {"mrr": 1.0, "recall": 1 / 2, "precision": 1 / 2, "hitrate": 1.0}),
        ("AB", "AAB", 3, {"mrr": 1.0, "recall": 1.0, "precision": 2 / 3, "hitrate": 1.0}),
        ("A", "", 5, {"mrr": 0.0, "recall": 0.0, "precision": 0.0, "hitrate": 0.0}),
    ],
)
def test_worked_examples(relevant: str, found: str, k: int, expected: dict[str, float]) -> None:
    assert values(relevant, found, k) == pytest.approx(expected, abs=1e-12)


def test_names_for_files_and_for_people() -> None:
    assert [(metric.key, metric.label) for metric in metrics_at(5)] == [
        ("mrr_at_5", "MRR@5"),
        ("recall_at_5", "Recall@5"),
        ("precision_at_5", "Precision@5"),
        ("hitrate_at_5", "HitRate@5"),
    ]


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_metric_is_computed_by_its_own_function(metric: object) -> None:
    found = next(at for at in metrics_at(3) if at.metric is metric)
    expected = {"mrr": 1 / 2, "recall": 1 / 4, "precision": 1 / 3, "hitrate": 1.0}
    assert found.of_query([2, 4], 4) == pytest.approx(expected[found.metric.name])
    assert isinstance(found, MetricAtK)


@given(relevant_docs, results, cutoffs)
def test_every_value_is_from_0_to_1(relevant: list[str], found: list[str], k: int) -> None:
    assert all(0 <= value <= 1 for value in values(relevant, found, k).values())


@given(relevant_docs, results, cutoffs)
def test_a_perfect_run_scores_1(relevant: list[str], rest: list[str], k: int) -> None:
    found = values(relevant, relevant + rest, k)
    assert found["mrr"] == found["hitrate"] == 1
    assert found["recall"] == (1 if k >= len(relevant) else k / len(relevant))
    assert found["precision"] == (1 if k <= len(relevant) else len(relevant) / k)


@given(relevant_docs, results, results, cutoffs)
def test_what_comes_below_k_changes_nothing(relevant: list[str], top: list[str], below: list[str], k: int) -> None:
    top = (top + ["x"] * k)[:k]
    assert values(relevant, top + below, k) == values(relevant, top, k)


@given(relevant_docs, results, cutoffs)
def test_the_order_of_the_relevant_documents_means_nothing(relevant: list[str], found: list[str], k: int) -> None:
    assert values(relevant[::-1], found, k) == values(relevant, found, k)


@given(relevant_docs, results, cutoffs)
def test_a_duplicate_is_never_credited(relevant: list[str], found: list[str], k: int) -> None:
    first_only = [doc if doc not in found[:rank] else f"duplicate {rank}" for rank, doc in enumerate(found)]
    assert values(relevant, found, k) == values(relevant, first_only, k)


@given(relevant_docs, results, cutoffs)
def test_a_larger_cut_off_never_finds_less(relevant: list[str], found: list[str], k: int) -> None:
    near, far = values(relevant, found, k), values(relevant, found, k + 1)
    assert all(far[name] >= near[name] for name in ("mrr", "recall", "hitrate"))
    assert far["precision"] * (k + 1) >= near["precision"] * k - 1e-12


@given(relevant_docs, results, cutoffs)
def test_how_the_metrics_hang_together(relevant: list[str], found: list[str], k: int) -> None:
    got = values(relevant, found, k)
    assert got["precision"] * k == pytest.approx(got["recall"] * len(relevant))
    assert got["hitrate"] == (got["mrr"] > 0) == (got["recall"] > 0)
    assert got["mrr"] in {0, *(1 / rank for rank in range(1, k + 1))}
