"""Rules on the values of metrics for one query."""

import pytest

from ragcontract.core.metric import Metric, Scale
from ragcontract.core.rule import RowContext, RuleSettings
from ragcontract.core.run import RunRow
from ragcontract.rules.scores import CompositeMinimum, MaxHallucinationRisk, MaxScore, MinScore, ScoreRule, quality
from tests.records import query

METRICS = {
    "faithfulness": Metric(key="faithfulness", label="Faithfulness"),
    "rating": Metric(key="rating", label="Rating", scale=Scale(1.0, 5.0)),
    "toxicity": Metric(key="toxicity", label="Toxicity", better="lower", scale=Scale(0.0, 10.0)),
}
ASKED, ROW = query("q1"), RunRow(query_id="q1")


def judged(rule: ScoreRule, **values: float) -> tuple[str, str] | None:
    """Return what was expected and found; None if the rule holds."""
    context = RowContext(settings=RuleSettings(k=5, metrics=METRICS), metrics=values)
    assert rule.lacking(ASKED, ROW, context) is None
    found = [
        ("".join(map(str, one.expected)), "".join(map(str, one.actual))) for one in rule.violations(ASKED, ROW, context)
    ]
    return found[0] if found else None


def lacking(rule: ScoreRule, **values: float) -> str | None:
    return rule.lacking(ASKED, ROW, RowContext(settings=RuleSettings(k=5, metrics=METRICS), metrics=values))


def test_a_minimum_holds_at_the_limit_and_within_the_tolerance() -> None:
    rule = MinScore(metric="rating", value=4)
    assert judged(rule, rating=4.0) is None
    assert judged(rule, rating=4 - 1e-10) is None
    assert judged(rule, rating=3.999) == ("rating of at least 4.00", "3.999")


def test_a_maximum_holds_at_the_limit() -> None:
    rule = MaxScore(metric="toxicity", value=2)
    assert judged(rule, toxicity=2.0) is None
    assert judged(rule, toxicity=2.5) == ("toxicity of at most 2.00", "2.50")


def test_a_hallucination_risk_is_a_minimum_of_faithfulness() -> None:
    assert judged(MaxHallucinationRisk(), faithfulness=0.7) is None
    assert judged(MaxHallucinationRisk(), faithfulness=0.69) == ("faithfulness of at least 0.70", "0.69")
    assert judged(MaxHallucinationRisk(threshold=0.5), faithfulness=0.69) is None


def test_a_value_that_is_missing_cannot_be_judged() -> None:
    assert lacking(MinScore(metric="rating", value=4), toxicity=1.0) == "has no rating, which min_score needs"
    assert lacking(MaxHallucinationRisk()) == "has no faithfulness, which max_hallucination_risk needs"


def test_a_query_without_a_row_has_no_value_and_breaks_the_rule() -> None:
    context = RowContext(settings=RuleSettings(k=5, metrics=METRICS))
    (violation,) = MinScore(metric="rating", value=4).violations(ASKED, ROW, context)
    assert violation.actual == ("no value",)


@pytest.mark.parametrize(
    ("key", "value", "share"), [("rating", 1, 0), ("rating", 4, 0.75), ("toxicity", 0, 1), ("toxicity", 7.5, 0.25)]
)
def test_qualities_go_by_scale_and_direction(key: str, value: float, share: float) -> None:
    assert quality(METRICS[key], value) == share


def test_a_composite_is_the_mean_of_qualities() -> None:
    rule = CompositeMinimum(minimum=0.5, metrics=("faithfulness", "rating", "toxicity"))
    assert judged(rule, faithfulness=0.0, rating=4.0, toxicity=2.5) is None  # (0 + 0.75 + 0.75) / 3, exactly 0.5
    assert judged(rule, faithfulness=0.0, rating=3.0, toxicity=2.5) == (
        "a mean of faithfulness and rating and toxicity of at least 0.50",
        "0.42 (Faithfulness 0, Rating 3, Toxicity 2.5)",
    )


def test_a_composite_has_the_tolerance_of_every_limit() -> None:
    rule = CompositeMinimum(minimum=0.3, metrics=("faithfulness",))
    assert judged(rule, faithfulness=0.3 - 1e-10) is None
    assert judged(rule, faithfulness=0.3 - 1e-8) is not None


def test_a_composite_needs_all_of_its_metrics_or_none() -> None:
    rule = CompositeMinimum(minimum=0.5, metrics=("faithfulness", "rating"))
    assert judged(rule) is None
    assert lacking(rule, faithfulness=1.0) == "has no rating, which composite needs"
