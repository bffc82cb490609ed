"""Metrics of one query: worked examples, and what must hold for any run."""

from collections.abc import Sequence
from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcontract.core.metric import Gain
from ragcontract.metrics.formulas import FORMULAS, Formula, Found, gain_of
from tests.records import query, score_query

DOCS = [f"d{number}" for number in range(12)]
results = st.lists(st.sampled_from(DOCS), max_size=20)
relevant_docs = st.lists(st.sampled_from(DOCS), min_size=1, max_size=8, unique=True)
cutoffs = st.integers(min_value=1, max_value=25)


def values(relevant: Sequence[str], found: Sequence[str], k: int) -> dict[str, float]:
    score = score_query(query("q", *relevant), found, k)
    return {formula.name: value for formula, value in zip(FORMULAS, score.values, strict=True)}


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
        # A document that comes twice is credited once, but its second result takes a rank.
        ("AB", "AAB", 2, {"mrr": 1.0, "recall": 1 / 2, "precision": 1 / 2, "hitrate": 1.0}),
        ("AB", "AAB", 3, {"mrr": 1.0, "recall": 1.0, "precision": 2 / 3, "hitrate": 1.0}),
        ("A", "", 5, {"mrr": 0.0, "recall": 0.0, "precision": 0.0, "hitrate": 0.0}),
    ],
)
def test_worked_examples(relevant: str, found: str, k: int, expected: dict[str, float]) -> None:
    got = values(relevant, found, k)
    assert {name: got[name] for name in expected} == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("found", "k", "ndcg", "average_precision"),
    [
        ("xAyBz", 5, (1 / log2(3) + 1 / log2(5)) / (1 + 1 / log2(3) + 1 / log2(4)), (1 / 2 + 2 / 4) / 3),
        ("xAyBz", 3, 1 / log2(3) / (1 + 1 / log2(3) + 1 / log2(4)), 1 / 2 / 3),
        # The best that fits into the top 2 is two relevant documents, yet average precision is out of all three.
        ("CAB", 2, 1.0, 2 / 3),
        ("xyzABC", 3, 0.0, 0.0),
        ("AAB", 3, (1 + 1 / log2(4)) / (1 + 1 / log2(3) + 1 / log2(4)), (1 + 2 / 3) / 3),
    ],
)
def test_what_counts_the_order_without_grades(found: str, k: int, ndcg: float, average_precision: float) -> None:
    got = values("ABC", found, k)
    assert got["ndcg"] == pytest.approx(ndcg)
    assert got["map"] == pytest.approx(average_precision)


GRADES = {"A": 3.0, "B": 1.0, "C": 0.5, "D": 0.0}  # C and D are not relevant, and C is worth something


@pytest.mark.parametrize(
    ("found", "k", "gain", "expected"),
    [
        ("ABC", 3, "linear", 1.0),
        ("BAC", 3, "linear", (1 + 3 / log2(3) + 0.5 / 2) / (3 + 1 / log2(3) + 0.5 / 2)),
        ("BAC", 3, "exponential", (1 + 7 / log2(3) + (2**0.5 - 1) / 2) / (7 + 1 / log2(3) + (2**0.5 - 1) / 2)),
        # The ideal is cut at k too, and what is found below it does not count.
        ("BAC", 1, "linear", 1 / 3),
        ("BAC", 1, "exponential", 1 / 7),
        ("DxCAB", 3, "linear", 0.5 / 2 / (3 + 1 / log2(3) + 0.5 / 2)),
        ("CCA", 3, "linear", (0.5 + 3 / 2) / (3 + 1 / log2(3) + 0.5 / 2)),
        ("", 3, "linear", 0.0),
    ],
)
def test_worked_examples_with_grades(found: str, k: int, gain: Gain, expected: float) -> None:
    asked = query("q", "A", "B", relevance=GRADES)
    _, recall, _, _, ndcg, average_precision = score_query(asked, found, k, gain=gain).values
    assert ndcg == pytest.approx(expected, abs=1e-12)
    # The others know no grades.
    plain = values("AB", found, k)
    assert (recall, average_precision) == (plain["recall"], plain["map"])


def test_a_query_without_relevant_documents_has_no_ndcg_whatever_its_grades() -> None:
    assert score_query(query("q", relevance={"C": 0.5}), "C", 3).values == ()


def test_what_a_grade_is_worth() -> None:
    assert [gain_of(grade, "linear") for grade in (0, 0.5, 3, 64)] == [0, 0.5, 3, 64]
    assert [gain_of(grade, "exponential") for grade in (0, 1, 3, 64)] == [0, 1, 7, 2.0**64]


@given(
    st.dictionaries(st.sampled_from(DOCS), st.integers(1, 64), min_size=1),
    results,
    cutoffs,
    st.sampled_from(["linear", "exponential"]),
)
def test_graded_values_are_from_0_to_1_and_best_by_grade(
    relevance: dict[str, float], found: list[str], k: int, gain: Gain
) -> None:
    asked = query("q", *relevance, relevance=relevance)
    ndcg = [formula.name for formula in FORMULAS].index("ndcg")
    assert 0 <= score_query(asked, found, k, gain=gain).values[ndcg] <= 1
    best = sorted(relevance, key=relevance.__getitem__, reverse=True)
    assert score_query(asked, best, k, gain=gain).values[ndcg] == pytest.approx(1)


@pytest.mark.parametrize("formula", FORMULAS, ids=lambda formula: formula.name)
def test_a_metric_is_computed_by_its_own_function(formula: Formula) -> None:
    best = 1 + 1 / log2(3) + 1 / log2(4)
    expected = {"mrr": 1 / 2, "recall": 1 / 4, "precision": 1 / 3, "hitrate": 1.0}
    expected |= {"ndcg": 1 / log2(3) / best, "map": 1 / 2 / 4}
    assert formula.value(Found([2, 4], 4), 3) == pytest.approx(expected[formula.name])


@given(relevant_docs, results, cutoffs)
def test_every_value_is_from_0_to_1(relevant: list[str], found: list[str], k: int) -> None:
    assert all(0 <= value <= 1 for value in values(relevant, found, k).values())


@given(relevant_docs, results, cutoffs)
def test_a_perfect_run_scores_1(relevant: list[str], rest: list[str], k: int) -> None:
    found = values(relevant, relevant + rest, k)
    assert found["mrr"] == found["hitrate"] == 1
    assert found["ndcg"] == pytest.approx(1)
    assert found["map"] == pytest.approx(found["recall"])
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
