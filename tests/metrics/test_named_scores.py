"""Scores that other tools computed, each a metric of its own name."""

import math

import pytest

from ragcontract.core.metric import Direction, Invalid, MetricSettings, Missing, Scale
from ragcontract.core.run import RunRow, Values
from ragcontract.metrics.named_scores import DeclaredScore, Score, scores
from tests.records import query


def value(declared: DeclaredScore, number: float | None, *tags: str) -> Values | Missing | Invalid:
    """Return what a score family makes of a row."""
    row = RunRow(query_id="q1", results=[], scores={"rating": number})
    return Score("rating", declared).values(query("q1", "d", tags=tags), row)


RATING = DeclaredScore(source="scores", scale=(1, 5))


def test_a_score_is_a_metric_in_its_own_unit_and_direction() -> None:
    declared = {"rating": RATING, "toxicity": DeclaredScore(source="scores", better="lower")}
    rating, toxicity = (family.metrics[0] for family in scores(MetricSettings(cutoffs=(5,), declared=declared)))
    assert (rating.key, rating.label, rating.better, rating.scale, rating.worst) == (
        "rating",
        "rating",
        "higher",
        Scale(1, 5),
        1,
    )
    assert (toxicity.better, toxicity.worst) == ("lower", 1)


def test_without_a_declaration_there_is_no_score() -> None:
    assert list(scores(MetricSettings(cutoffs=(5,)))) == []


@pytest.mark.parametrize("number", [1, 3.5, 5])
def test_a_number_within_the_scale_is_the_value(number: float) -> None:
    assert value(RATING, number) == (number,)


@pytest.mark.parametrize(
    ("number", "found"),
    [(0.99, "0.99"), (6, "6"), (math.nan, "nan"), (math.inf, "inf"), (5.0000000001, "5.0000000001")],
)
def test_any_other_number_is_refused(number: float, found: str) -> None:
    why = f"expected a number from 1 to 5, found {found}; say its scale under metrics in ragcontract.yml"
    assert value(RATING, number) == Invalid("scores.rating", why)


def test_null_and_no_scores_at_all_are_missing() -> None:
    missing = Missing("has no score 'rating'", "rating")
    assert value(RATING, None) == missing
    bare = RunRow(query_id="q1", results=[])
    assert Score("rating", RATING).values(query("q1", "d"), bare) == missing


def test_only_queries_with_one_of_its_tags_have_a_score() -> None:
    declared = DeclaredScore(source="scores", tags=["chat", "agent"])
    assert value(declared, 0.5, "agent", "x") == (0.5,)
    assert value(declared, None, "agent") == Missing("has no score 'rating'", "rating")
    assert value(declared, None, "x") == ()


def test_numbers_of_another_scale_or_direction_have_another_fingerprint() -> None:
    directions: tuple[Direction, ...] = ("higher", "lower")
    prints = [
        Score("f", DeclaredScore(source="scores", scale=scale, better=better)).metrics[0].fingerprint
        for scale in ((0, 1), (1, 5))
        for better in directions
    ]
    assert prints[0] == ""
    assert len(set(prints)) == 4
    assert Score("f", DeclaredScore(source="scores", tags=["t"])).metrics[0].fingerprint == ""
